"""Which build of torch the tests have: pip's for Linux has CUDA, that of torch's index for CPUs has not."""

from __future__ import annotations

import pytest
import torch

HAS_CUDA = torch.version.cuda is not None

plays_gpus = pytest.mark.skipif(
    HAS_CUDA and not torch.cuda.is_available(),
    reason="plays GPUs with a build that has none; this one asks its own driver, and finds none",
)
"""Tests that have torch believe in GPUs: a build with CUDA starts them for real."""

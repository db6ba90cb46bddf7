"""What several tests with torch lean on."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.torch.remapping import Net, Point, SubT


@pytest.fixture
def corpus_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `__main__` have the classes that the corpus was saved with."""
    for cls in (Net, Point, SubT):
        monkeypatch.setattr(sys.modules["__main__"], cls.__name__, cls, raising=False)


@pytest.fixture
def process_group(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A process group that sends nothing, as rank 0 of 2."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()
    caplog.clear()  # torch warns of meshes that are loaded before there are groups

"""What the tensors of a copy must look like when it is opened again."""

from __future__ import annotations

from inspector.model.checkpoint import Tensor
from inspector.model.tensors.views import TensorFacts

Description = tuple[object, ...]
"""Name, type, shape, stride, layout and whether gradients are asked for."""


def describe_row(row: Tensor, *, named: bool = True) -> Description:
    """Return what a tensor of the copy must look like, with its name or without."""
    name = row.keys[-1] if named and row.keys else ""
    return name, row.dtype, row.shape, row.stride, row.layout, row.requires_grad


def describe_facts(name: str, dtype: str, facts: TensorFacts) -> Description:
    """Return what the copy of a tensor must look like."""
    return name, dtype, facts.shape, facts.stride, facts.layout, facts.requires_grad

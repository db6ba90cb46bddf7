"""What two rows say of one tensor."""

from __future__ import annotations

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diff.facts.keys import are_same_ways
from inspector.model.checkpoint import Tensor


def compare_rows(
    one: Tensor, other: Tensor, *, has_pickles: bool, has_roles: bool = False, has_keys: bool = True
) -> tuple[str, ...]:
    """Return the facts that two rows differ in.

    What a file does not say is no difference: formats without a pickle name neither devices nor gradients.

    Args:
        one: The row of the first file.
        other: That of the second.
        has_pickles: Whether both files are of formats that say whether gradients were asked for.
        has_roles: Whether both files say themselves what a tensor is for. Elsewhere that is told by its
            place and by what stands beside it.
        has_keys: Whether both files tell a number that is a key from its text.
    """
    found = {
        "key": has_keys and one.path == other.path and not are_same_ways(one.keys, other.keys),
        "device": one.device != other.device and NO_DEVICE not in {one.device, other.device},
        "dtype": one.dtype != other.dtype,
        "shape": one.shape != other.shape,
        "stride": one.shape == other.shape and one.stride != other.stride and _steps(one) != _steps(other),
        "layout": one.layout != other.layout,
        "requires_grad": has_pickles and one.requires_grad != other.requires_grad,
        "role": one.role != other.role and has_roles,
        "problem": one.problem != other.problem,
    }
    return tuple(fact for fact, differs in found.items() if differs)


def _steps(row: Tensor) -> tuple[tuple[int, int], ...] | None:
    """Return size and step of the dimensions whose step matters; None where the file states none."""
    if row.stride is None:
        return _contiguous(row)
    return (
        tuple((size, step) for size, step in zip(row.shape, row.stride, strict=True) if size > 1)
        if 0 not in row.shape
        else ()
    )


def _contiguous(row: Tensor) -> tuple[tuple[int, int], ...]:
    found, step = [], 1
    for size in reversed(row.shape):
        if size > 1:
            found.append((size, step))
        step *= size
    return tuple(reversed(found)) if step else ()

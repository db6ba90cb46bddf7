"""Tensors as nearly all pickles describe them, many at once: each kind of fact by itself.

Calls of `_rebuild_tensor_v2` with arguments that are just what torch writes. `rebuild` and `views` tell what
anything else is, and what these are, one by one; here no call is made for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter, mul
from typing import Any, cast

from inspector.containers.persistent_ids import StorageId
from inspector.model.arguments.tensors import has_no_gradient
from inspector.model.tensors.dtypes import PLAIN_ITEMSIZES
from inspector.model.tensors.views import Known
from inspector.model.values.text import device_label
from inspector.pickles.values import Call, Global, PersistentId, Value
from inspector.tuples import NamedTuple

_REBUILD, _ARITY, _PID_PARTS = "torch._utils._rebuild_tensor_v2", 6, 5
_MOST = (1 << 63) - 1
_FEW_DIMENSIONS = 4
_MOST_LAID = 256
_ARGS, _PID = attrgetter("told"), attrgetter("pid")
_ADDED = attrgetter("state", "items", "pairs")
_NOTHING_ADDED = (None, None, None)
_UNUSUAL = frozenset({"uint8"})  # may be the state of a random generator
Sizes = tuple[int, ...]


class Columns(NamedTuple):
    """What tensors say, in the order of a row; see `Tensor`."""

    device: Sequence[str]
    dtype: Sequence[str]
    shape: Sequence[Sizes]
    stride: Sequence[Sizes]
    offset: Sequence[int]
    requires_grad: Sequence[bool]
    nbytes: Sequence[int]
    storage: Sequence[str]
    span: Sequence[tuple[int, int]]


def describe_alike(values: Sequence[Value], known: Known) -> Columns | None:
    """Describe values that are all plain tensors of known storages; None where any is not."""
    args = _arguments(values)
    if args is None:
        return None
    nodes, offsets, shapes, strides, grads, _ = zip(*args, strict=True)
    if (
        not _are(int, offsets)
        or not _are(tuple, shapes)
        or not _are(tuple, strides)
        or not _are(bool, grads)
        or not _are(int, chain(chain.from_iterable(shapes), chain.from_iterable(strides)))
        or max(map(len, chain(shapes, strides))) > _FEW_DIMENSIONS
    ):
        return None
    storages = _storages(nodes, known)
    if storages is None:
        return None
    keys, dtypes, itemsizes, locations, counts, _, _ = zip(*storages, strict=True)
    kinds, labels = set(dtypes), {location: device_label(location) for location in set(locations)}
    if (
        not all(map(PLAIN_ITEMSIZES.get, kinds))
        or not _UNUSUAL.isdisjoint(kinds)
        or any(grad and has_no_gradient(dtype) for dtype, grad in set(zip(dtypes, grads, strict=True)))
        or "meta" in labels
        or not "".join(labels.values()).isascii()
    ):
        return None
    sizes = [PLAIN_ITEMSIZES[dtype] for dtype in dtypes]
    laid = _lay_out(shapes, strides)
    starts = list(map(mul, offsets, sizes))
    ends = [start + reach * size for start, (_, reach), size in zip(starts, laid, sizes, strict=True)]
    room = map(mul, counts, itemsizes)
    if min(starts) < 0 or min(laid)[0] < 0 or any(end > most for end, most in zip(ends, room, strict=True)):
        return None
    return Columns(
        [labels[location] for location in locations],
        dtypes,
        shapes,
        strides,
        offsets,
        grads,
        [numel * size for (numel, _), size in zip(laid, sizes, strict=True)],
        keys,
        list(zip(starts, ends, strict=True)),
    )


def _are(kind: type, values: Iterable[object]) -> bool:
    """Return whether values are of just this type; True for none."""
    return {kind}.issuperset(map(type, values))


def _arguments(values: Sequence[Value]) -> list[tuple[Any, ...]] | None:
    """Return the arguments of calls that do nothing but rebuild a tensor."""
    if not _are(Call, values):
        return None
    calls = cast("Sequence[Call]", values)
    func = calls[0].func
    if type(func) is not Global or not func.common or func.dotted != _REBUILD:
        return None
    if any(call.func is not func for call in calls):
        return None
    if list(map(_ADDED, calls)).count(_NOTHING_ADDED) < len(calls):
        return None
    args = list(map(_ARGS, calls))
    return args if _are(tuple, args) and set(map(len, args)) == {_ARITY} else None


def _storages(nodes: Sequence[Value], known: Known) -> list[StorageId] | None:
    """Return the storages that persistent ids name, all of them with bytes and known; else None."""
    if not _are(PersistentId, nodes):
        return None
    pids = list(map(_PID, nodes))
    if not _are(tuple, pids) or set(map(len, pids)) != {_PID_PARTS}:
        return None
    _, _, keys, _, counts = zip(*pids, strict=True)
    if not _are(str, keys) or not all(counts):
        return None
    found = [one for one in map(known.storages.get, keys) if one is not None and one.numel]
    return found if len(found) == len(keys) else None


def _lay_out(shapes: Sequence[Sizes], strides: Sequence[Sizes]) -> list[tuple[int, int]]:
    """Return how many elements views have, -1 for what is none, and how far they reach.

    Many have one shape. A file can make their hashes collide, so only a few are remembered.
    """
    found: dict[tuple[Sizes, Sizes], tuple[int, int]] = {}
    pairs = list(zip(shapes, strides, strict=True))
    laid = []
    for pair in pairs:
        one = found.get(pair)
        if one is None:
            if len(found) >= _MOST_LAID:
                found.clear()
            one = found[pair] = _extent(*pair)
        laid.append(one)
    return laid


def _extent(shape: Sizes, stride: Sizes) -> tuple[int, int]:
    """Return the number of elements, -1 where the numbers are none, and that up to the last of them."""
    if len(shape) != len(stride) or not all(0 <= number <= _MOST for number in (*shape, *stride)):
        return -1, 0
    numel, reach = 1, 1
    for size, step in zip(shape, stride, strict=True):
        numel *= size
        reach += (size - 1) * step
    return (numel, reach if numel else 0) if numel <= _MOST else (-1, 0)

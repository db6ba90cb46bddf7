"""Which tensors are lost with the bytes of their storages, and the objects without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from inspector.containers.container import Container
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.checkpoint import Tensor
from inspector.model.tensors.views import Known
from inspector.model.values.parts import iter_values
from inspector.model.walk import walk
from inspector.pickles.values import Call, Dict, Set, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.objects.views import filled_pairs

PATIENT = replace(DEFAULT_LIMITS, seconds=600.0)
"""Limits for work that somebody asked for and can cancel."""

_ASK_EACH = 8192


class Lost(NamedTuple):
    """One tensor that cannot be saved.

    Attributes:
        path: Where it stands.
        why: Why it is not whole, in a few words.
        device: The device's text in the file.
        dtype: torch's name of the element type.
        shape: Sizes by dimension, in elements.
        nbytes: Elements times item size.
    """

    path: str
    why: str
    device: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


class Rows(NamedTuple):
    """The tensors of a checkpoint, sorted into what is saved and what is not.

    Attributes:
        kept: The rows that are whole, parts of composites among them.
        lost: The tensors that are not; a composite counts as one.
        lost_values: What these are in the pickle, by identity.
    """

    kept: tuple[Tensor, ...]
    lost: tuple[Lost, ...]
    lost_values: frozenset[int]


def list_rows(container: Container, lost: Mapping[str, str], limits: Limits, progress: Progress) -> Rows:
    """Sort the tensors of a container; `lost` says why a storage is not whole, by key."""
    progress.start("listing tensors")
    found = walk(container.root, limits.started(), progress, Known(container.storage_ids))
    tensors = found.tensors
    whys = _whys(tensors, lost)
    gone = [row for row, why in enumerate(whys) if why is not None and tensors[row].part_of is None]
    return Rows(
        kept=tuple(tensor for tensor, why in zip(tensors, whys, strict=True) if why is None),
        lost=tuple(_lost(tensors[row], whys[row] or "") for row in gone),
        lost_values=frozenset(id(found.sources[row]) for row in gone),
    )


def _whys(tensors: list[Tensor], lost: Mapping[str, str]) -> list[str | None]:
    """Return why each row is lost, or None. With a part the whole is lost, and with it all parts."""
    whys = [lost.get(tensor.storage or "", tensor.problem) for tensor in tensors]
    for row in range(len(tensors) - 1, -1, -1):  # a part stands behind its whole
        owner = tensors[row].part_of
        if owner is not None and whys[row] is not None:
            whys[owner] = whys[owner] or whys[row]
    for row, tensor in enumerate(tensors):
        if tensor.part_of is not None:
            whys[row] = whys[row] or whys[tensor.part_of]
    return whys


def _lost(tensor: Tensor, why: str) -> Lost:
    return Lost(tensor.path, why, tensor.device, tensor.dtype, tensor.shape, tensor.nbytes)


def drop_lost(root: Value, lost: frozenset[int], progress: Progress) -> Value:
    """Take what is lost out of the dictionaries that hold it, and put None in its place elsewhere.

    Objects that can be filled are changed where they are, so that what is shared stays shared; tuples are
    made anew.
    """
    return _LeavingOut(lost, progress).run(root) if lost else root


class _LeavingOut:
    def __init__(self, lost: frozenset[int], progress: Progress) -> None:
        self._lost = lost
        self._progress = progress
        self._tuples: dict[int, tuple[Value, ...]] = {}
        self._kept: list[Value] = []  # what is known by its identity must live on

    def run(self, root: Value) -> Value:
        root = self._mended(root)
        for step, value in enumerate(iter_values(root)):
            if step % _ASK_EACH == 0:
                self._progress.advance(0)
            self._enter(value)
        return root

    def _enter(self, value: Value) -> None:
        """Mend what is inside a value; a tuple was mended with what holds it."""
        if isinstance(value, list):
            value[:] = map(self._mended, value)
        elif isinstance(value, Set):
            value.items = list(map(self._mended, value.items))
        elif isinstance(value, Dict):
            value.pairs = self._pairs(value.pairs)
        elif isinstance(value, Call):
            self._enter_call(value)

    def _enter_call(self, call: Call) -> None:
        call.args, pairs = filled_pairs(call)
        call.pairs = self._pairs(pairs) if pairs or call.pairs is not None else None
        call.args, call.kwargs = self._mended(call.args), self._mended(call.kwargs)
        call.state = self._mended(call.state)
        call.items = None if call.items is None else list(map(self._mended, call.items))

    def _pairs(self, pairs: list[tuple[Value, Value]]) -> list[tuple[Value, Value]]:
        return [
            (self._mended(key), self._mended(value)) for key, value in pairs if id(value) not in self._lost
        ]

    def _mended(self, value: Value) -> Value:
        if type(value) is not tuple:
            return None if id(value) in self._lost else value
        stack = [value]
        while stack:
            waiting = [item for item in stack[-1] if type(item) is tuple and id(item) not in self._tuples]
            if waiting:
                stack += waiting
                continue
            top = stack.pop()
            made = tuple(map(self._item, top))
            is_new = any(after is not before for after, before in zip(made, top, strict=True))
            self._tuples[id(top)] = made if is_new else top
            self._kept.append(top)
        return self._tuples[id(value)]

    def _item(self, value: Value) -> Value:
        if type(value) is tuple:
            return self._tuples[id(value)]
        return None if id(value) in self._lost else value

"""Whether the bytes of a file are those that were saved, and which tensors are lost where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container, Extent, Extents
from inspector.containers.opening import open_path, read_extents
from inspector.containers.storage_reader import Sums, sum_extents
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.checkpoint import Tensor
from inspector.model.findings import Finding, finding
from inspector.model.tensors.views import Known
from inspector.model.values.children import iter_values
from inspector.model.walk import walk
from inspector.pickles.values import Call, Dict, Set, Value
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.pickle_writer import filled_pairs
from inspector.units import cut_text, escape_text, format_count

PATIENT = replace(DEFAULT_LIMITS, seconds=600.0)
"""Limits for work that somebody asked for and can cancel."""

_ASK_EACH = 8192


class Lost(NamedTuple):
    """One tensor that cannot be saved."""

    path: str
    why: str
    device: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


class Rows(NamedTuple):
    """The tensors of a checkpoint, sorted into what is saved and what is not.

    Attributes:
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


# ------------------------------------------------------------------------------------------------------------
# Whether the bytes of a file are those that were saved: all are read, and the checksums of a zip compared.
#
# torch.load compares none, so a file that lost a few bytes on its way loads, and has wrong numbers. Only zips
# have checksums (and not those saved with `set_crc32_options(False)`); of others it is known that they are as
# long as they should be.

_MOST_NAME_CHARS = 80


class DamagedRecord(NamedTuple):
    """A record of a zip that holds no tensor, and is damaged."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """What reading all of a file showed.

    Attributes:
        unchecked: How many are as long as they should be, while the file tells no checksum.
    """

    path: str
    nbytes: int
    checked: int
    unchecked: int
    lost: tuple[Lost, ...]
    records: tuple[DamagedRecord, ...]
    findings: tuple[Finding, ...]

    @property
    def is_intact(self) -> bool:
        """Whether nothing is wrong, as far as that can be told."""
        return not self.lost and not self.records


def check_file(path: str, progress: Progress | None = None, limits: Limits = PATIENT) -> FileCheck:
    """Read all of a checkpoint and say which tensors are damaged."""
    progress = progress or Progress()
    with open_path(path, limits) as source, collector_paused():
        extents = read_extents(source, limits.started(), progress)
        sums = sum_extents(source, extents.whole, progress)
        others = sum_extents(source, extents.records, progress)
        rows = list_rows(extents.container, extents.lost | sums.faults, limits, progress)
    damaged = tuple(DamagedRecord(_shown(name), why) for name, why in others.faults.items())
    return FileCheck(
        path=path,
        nbytes=_nbytes(extents.whole, sums) + _nbytes(extents.records, others),
        checked=_checked(extents.whole, sums) + _checked(extents.records, others),
        unchecked=len(sums.unchecked) + len(others.unchecked),
        lost=rows.lost,
        records=damaged,
        findings=tuple(_findings(extents, sums.faults, rows.lost, damaged)),
    )


def _nbytes(extents: Mapping[str, Extent], sums: Sums) -> int:
    return sum(extents[key].nbytes for key in sums.crcs)


def _checked(extents: Mapping[str, Extent], sums: Sums) -> int:
    return sum(key not in sums.unchecked and extents[key].nbytes > 0 for key in sums.crcs)


def _shown(name: str) -> str:
    return escape_text(cut_text(name, _MOST_NAME_CHARS))


def _findings(
    extents: Extents, faults: Mapping[str, str], lost: tuple[Lost, ...], records: tuple[DamagedRecord, ...]
) -> list[Finding]:
    missing, wrong = set(extents.lost.values()), set(faults.values())
    found = []
    gone = [row.path for row in lost if row.why in missing]
    if gone:
        found.append(
            finding(
                "truncated",
                "error",
                f"The bytes of {format_count(len(gone), 'tensor')} are not whole",
                "torch.load stops at the first of them. Fetch or copy the file again; where that cannot be, "
                "save what is left.",
                gone,
            )
        )
    changed = [row.path for row in lost if row.why in wrong]
    if changed or records:
        what = format_count(len(changed), "tensor") if changed else format_count(len(records), "record")
        found.append(
            finding(
                "bad-crc",
                "warning",
                f"The checksum of {what} is wrong",
                "Bytes of the file were changed or lost after it was saved. torch.load does not look, and "
                "gives wrong numbers. Fetch or copy the file again; where that cannot be, save what is left.",
                changed,
            )
        )
    return found

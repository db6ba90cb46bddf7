"""What is whole in a damaged file, saved as a checkpoint that torch loads.

All bytes are read and their checksums compared first, so that nothing damaged passes for whole. The objects
are then written again without the tensors that are lost: an entry of a dictionary is left out, so that
`load_state_dict(strict=False)` names it, and in lists and tuples None stands in its place.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container, Extent, Extents
from inspector.containers.copying import write_bytes
from inspector.containers.formats import refuse_step
from inspector.containers.notes import NoteKind
from inspector.containers.opening import open_path, read_container, read_extents
from inspector.containers.persistent_ids import NO_DEVICE, parse_storage_id
from inspector.containers.source import Source
from inspector.containers.storage_reader import ExtentReader, Sums, sum_extents
from inspector.diff.copies import digest_values
from inspector.errors import DamagedError, ExportError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.findings import Finding, finding
from inspector.model.tensors.views import Known
from inspector.model.values.children import iter_values
from inspector.model.walk import walk
from inspector.pickles.values import Call, Dict, PersistentId, Set, Value
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.files import OutFile, refuse_destination, writing
from inspector.remap.forms import refuse_suffix
from inspector.remap.objects import flat_program
from inspector.remap.pickle_writer import (
    Rebuilding,
    StorageName,
    Writing,
    as_written,
    filled_pairs,
    names_are_present,
    refuse_odd,
    storage_class,
    write_pickle,
)
from inspector.remap.verify import read_again
from inspector.remap.zip_layout import (
    DEFAULT_ALIGNMENT,
    FOLDER,
    torch_records,
    write_zip,
)
from inspector.safety.verdict import FileVerdict, judge
from inspector.units import cut_text, escape_text, format_count

# ------------------------------------------------------------------------------------------------------------
# Whether the bytes of a file are those that were saved, and which tensors are lost where they are not.

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


# --- what is whole, saved as a new checkpoint ---------------------------------------------------------------


class Numbering:
    """Numbers the storages in the order of their first use, as torch.save does.

    A storage that torch 0.x knew as a view of another becomes one of its own.
    """

    def __init__(self, container: Container, crcs: Mapping[str, int]) -> None:
        self._container = container
        self.crcs = crcs
        self._names: dict[str, StorageName] = {}

    @property
    def keys(self) -> list[str]:
        """The old keys in the order of the new ones."""
        return list(self._names)

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Return what is written for a storage."""
        own = parse_storage_id(node)
        if own is None:
            return None
        viewed = own.viewed()
        name = self._names.get(viewed.key)
        if name is None:
            if viewed.key not in self.crcs:
                raise ExportError(
                    "a lost tensor is nested so deeply that it cannot be left out",
                    where=f"storage {viewed.key[:40]!a}",
                )
            first = as_written(self._container.storage_ids.get(viewed.key, viewed))
            cls = storage_class(None if first.untyped else first.dtype)
            numel = viewed.numel if own.view is not None else first.numel
            place = "cpu" if first.location == NO_DEVICE else first.location
            name = StorageName(cls, str(len(self._names)), place, numel)
            self._names[viewed.key] = name
        return name

    def move_view(self, _call: Call) -> int | None:
        """Leave offsets as they are: storages are kept whole."""


def _write_archive(
    target: int, pickle: bytes, numbering: Numbering, source: Source, extents: Extents, *, progress: Progress
) -> None:
    """Write the objects and their storages, summed once more: what was whole must be so still."""
    reader, whole, keys = ExtentReader(source), extents.whole, numbering.keys

    def copy(key: str) -> int:
        crc = 0
        for data in reader.contents(whole[key]):
            crc = zlib.crc32(data, crc)
            progress.advance(write_bytes(target, data))
        if crc != numbering.crcs[key]:
            raise source.changed("read")
        return crc

    storages = [(str(number), whole[key].nbytes, partial(copy, key)) for number, key in enumerate(keys)]
    if source.gzipped:  # read forwards only
        storages.sort(key=lambda storage: whole[keys[int(storage[0])]].offset)
    records = torch_records(
        FOLDER,
        pickle,
        storages,
        byteorder="big" if ("byteorder", "big") in extents.container.versions else "little",
        serialization_id=b"%040d" % zlib.crc32(pickle),
        is_in_order_of_use=not source.gzipped,
    )
    progress.start("copying", sum(whole[key].nbytes for key in keys))
    write_zip(records, DEFAULT_ALIGNMENT, partial(write_bytes, target))


_NOT_WRITTEN = "what is left cannot be written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What was saved of a file.

    Attributes:
        tensors: How many tensors were saved; one that stands in two places counts twice.
        unchecked: How many of them the file has no checksum of: they are as long as they should be.
        verdict: What loading the new file would do: what is saved of the objects may run code as before.
        is_cut: Whether more stood in the file behind what is left, nobody knows what.
    """

    destination: Path
    nbytes: int
    tensors: int
    storages: int
    storage_nbytes: int
    unchecked: int
    lost: tuple[Lost, ...]
    verdict: FileVerdict
    is_cut: bool = False

    @property
    def lost_nbytes(self) -> int:
        """How many bytes the lost tensors would take."""
        return sum(row.nbytes for row in self.lost)


def recover(
    path: str,
    destination: Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    limits: Limits = PATIENT,
) -> Recovery:
    """Save every tensor of a file that is whole as a new checkpoint; the file itself is only read."""
    progress = progress or Progress()
    refuse_suffix(destination, "same")
    refuse_destination(path, destination, overwrite=overwrite)
    with open_path(path, limits) as source, collector_paused():
        extents = read_extents(source, limits.started(), progress)
        refuse_step(extents.container.format, "recover", path)
        for stream, _ in extents.container.objects:
            refuse_odd(stream)
        if extents.container.declared is not None:  # without its code, a program is a state dict
            named = replace(extents.container, root=flat_program(extents.container))
            extents = replace(extents, container=named)
        sums = sum_extents(source, extents.whole, progress)
        rows = list_rows(extents.container, extents.lost | sums.faults, limits, progress)
        if rows.lost and not rows.kept:
            raise _nothing_left(rows)
        numbering = Numbering(extents.container, sums.crcs)
        pickle, values = _write_objects(extents, rows, numbering, progress)
        with writing(destination, like=source.status, overwrite=overwrite, what=_NOT_WRITTEN) as out:
            _write_archive(out.fd, pickle, numbering, source, extents, progress=progress)
            source.refuse_changed("read")
            verdict = judge(_verify(out, rows, values, progress)).verdict
            nbytes = os.fstat(out.fd).st_size
            progress.start("waiting for the disk")
    keys = numbering.keys
    return Recovery(
        destination=destination,
        nbytes=nbytes,
        tensors=sum(tensor.part_of is None for tensor in rows.kept),
        storages=len(keys),
        storage_nbytes=sum(extents.whole[key].nbytes for key in keys),
        unchecked=sum(key in sums.unchecked for key in keys),
        lost=rows.lost,
        verdict=verdict,
        is_cut=any(note.kind is NoteKind.CUT_PICKLE for note in extents.container.notes),
    )


def _nothing_left(rows: Rows) -> DamagedError:
    first = rows.lost[0]
    return DamagedError(
        f"none of the file's {format_count(len(rows.lost), 'tensor')} is whole",
        where=f"{first.path or 'the tensor'}: {first.why}",
        remedy="fetch or copy the file again",
    )


def _write_objects(
    extents: Extents, rows: Rows, numbering: Numbering, progress: Progress
) -> tuple[bytes, bytes]:
    """Return the pickle of what is left, and what tells its objects from others."""
    progress.start("writing the objects")
    container = extents.container
    root = drop_lost(container.root, rows.lost_values, progress)
    how = Writing(
        naming=numbering,
        data=container.object_data,
        names_are_present=any(names_are_present(one) for one, _ in container.objects),
        rebuilt=Rebuilding(container.storage_ids).call_for,
        progress=progress,
    )
    return write_pickle(root, how), digest_values(container, root, progress, PATIENT)


def _verify(out: OutFile, rows: Rows, values: bytes, progress: Progress) -> Checkpoint:
    progress.start("waiting for the disk")
    out.settle()
    progress.start("checking the new file")
    with read_again("the new file"):
        container = read_container(str(out.path), PATIENT, progress)
        copy = build_checkpoint(container, PATIENT, progress)
    is_whole = not any(storage.missing or storage.expected_nbytes is not None for storage in copy.storages)
    if not is_whole or list(map(_looks, copy.tensors)) != list(map(_looks, rows.kept)):
        raise ExportError("the new file does not hold what it should")
    if digest_values(container, container.root, progress, PATIENT) != values:
        raise ExportError("the new file does not hold what it should")
    return copy


def _looks(tensor: Tensor) -> tuple[object, ...]:
    device = "cpu" if tensor.device == NO_DEVICE else tensor.device  # as it is written
    return tensor.path, device, tensor.dtype, tensor.shape, tensor.stride, tensor.storage_offset

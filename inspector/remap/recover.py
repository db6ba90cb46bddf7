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

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container, Extents
from inspector.containers.copying import write_bytes
from inspector.containers.formats import refuse_step
from inspector.containers.notes import NoteKind
from inspector.containers.opening import open_path, read_container, read_extents
from inspector.containers.persistent_ids import NO_DEVICE, parse_storage_id
from inspector.containers.source import Source
from inspector.containers.storage_reader import ExtentReader, sum_extents
from inspector.diff.copies import digest_values
from inspector.errors import DamagedError, ExportError
from inspector.limits import Limits
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.pickles.values import Call, PersistentId
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.files import OutFile, refuse_destination, writing
from inspector.remap.forms import refuse_suffix
from inspector.remap.integrity import PATIENT, Lost, Rows, drop_lost, list_rows
from inspector.remap.objects import flat_program
from inspector.remap.pickle_writer import (
    Rebuilding,
    StorageName,
    Writing,
    as_written,
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
from inspector.units import format_count


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
        byteorder=dict(extents.container.versions).get("byteorder", "little"),
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

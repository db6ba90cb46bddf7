"""The zip of Stable-Baselines3: files of torch for parameters, optimizers and variables, and attributes.

Written by `save_to_zip_file` in `stable_baselines3/common/save_util.py`. Its reader is Python's `zipfile`: of
records with one name the last counts, and every record named `.pth` is loaded.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from inspector.containers.container import Container, Extent, damage_note
from inspector.containers.inner.files import InnerFiles
from inspector.containers.notes import Note, NoteKind
from inspector.containers.sb3.attributes import RECORD, Attributes, read_attributes
from inspector.containers.source import Source
from inspector.containers.zip.directory import ZipEntry
from inspector.containers.zip.kinds import Records, records_of
from inspector.containers.zip.records import read_contents
from inspector.errors import CheckpointError, ContainerError, PickleError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text, format_count

if TYPE_CHECKING:
    from inspector.containers.extents import Extents

_PARAMETERS, _SUFFIX = "policy.pth", ".pth"
_VARIABLES = ("pytorch_variables.pth", "tensors.pth")
_VERSION, _SYSTEM = "_stable_baselines3_version", "system_info.txt"
_SHOWN = ("Python", "PyTorch", "Numpy", "Gymnasium", "OpenAI Gym", "GPU Enabled")
_MOST_TEXT_NBYTES = 1 << 14
_MOST_CHARS = 80
_FEW = 3
_NOWHERE = "its bytes are not in the file"


class Agent(NamedTuple):
    """An agent, taken apart: its container, and the files of torch in it."""

    container: Container
    files: InnerFiles


def read_sb3(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take the zip of an agent apart."""
    return open_sb3(source, records_of(source, limits, progress), limits, progress).container


def open_sb3(
    source: Source, records: Records, limits: Limits, progress: Progress, damage: tuple[Note, ...] = ()
) -> Agent:
    """Take a zip apart whose records are known; `damage` is what is wrong with its directory."""
    files = InnerFiles(source, limits, progress)
    entries = {entry.name: entry for entry in records.directory.entries}
    notes = [*map(Note, records.directory.doubts), *damage]
    if len(entries) < len(records.directory.entries):
        notes.append(Note(NoteKind.SHARED_NAME))
        _read_rivals(source, records, entries, limits, progress)
    attributes, unread = _attributes(source, entries, files, limits, progress)
    pairs: list[tuple[Value, Value]] = []
    for name in sorted(filter(_is_file, entries), key=_rank):
        progress.advance(0)
        try:
            pairs.append((name, files.read(name, entries[name])))
        except (ContainerError, PickleError) as error:
            unread.append((name, error))
            source.programs.absorb_failed(error, name)
    if not pairs and unread:
        raise unread[-1][1]
    if attributes is not None:
        pairs.append((RECORD, attributes.root))
    lost = damage_note(files.storage_ids, files.stored)
    notes += [Note(NoteKind.UNREAD_PART, (error.what,)).within(name) for name, error in unread]
    notes += [*files.notes, *_of_attributes(attributes), *((lost,) if lost is not None else ())]
    refusal = f"{unread[0][0]}: {unread[0][1].what}" if unread else files.refusal
    container = Container(
        path=source.path,
        format="stable-baselines3",
        file_nbytes=source.file_nbytes,
        root=Dict(pairs),
        pickles=tuple(files.pickles),
        programs=source.programs.all(),
        storage_ids=files.storage_ids,
        stored=files.stored,
        data=bytes(files.large),
        versions=tuple(_versions(source, entries, files.byteorder)),
        notes=tuple(notes),
        refusal=refusal,
        refused=tuple(files.refused),
    )
    return Agent(container, files)


def _read_rivals(
    source: Source, records: Records, entries: dict[str, ZipEntry], limits: Limits, progress: Progress
) -> None:
    """Read what the other records of one name run, which other readers take."""
    kept = set(entries.values())
    for entry in records.directory.entries:
        files = InnerFiles(source, limits, progress)
        with suppress(ContainerError, PickleError):
            if entry not in kept and entry.name == RECORD:
                read_attributes(source, entry, files, limits, progress)
            elif entry not in kept and _is_file(entry.name):
                files.read(entry.name, entry)


def _is_file(name: str) -> bool:
    return posixpath.splitext(name)[1] == _SUFFIX


def _rank(name: str) -> tuple[int, str]:
    """Sort the parameters before the optimizers, and variables behind."""
    return (name != _PARAMETERS) + (name in _VARIABLES), name


def _attributes(
    source: Source, entries: dict[str, ZipEntry], files: InnerFiles, limits: Limits, progress: Progress
) -> tuple[Attributes | None, list[tuple[str, CheckpointError]]]:
    """Return the attributes, and what stands in the way of reading them; first, since they run most."""
    if RECORD not in entries:
        return None, []
    try:
        return read_attributes(source, entries[RECORD], files, limits, progress), []
    except ContainerError as error:
        source.programs.absorb_failed(error, RECORD)
        return None, [(RECORD, error)]


def _of_attributes(found: Attributes | None) -> list[Note]:
    if found is None or not found.unread:
        return []
    named = ", ".join(found.unread[:_FEW])
    more = f" and {len(found.unread) - _FEW:,} more" if len(found.unread) > _FEW else ""
    amount = format_count(len(found.unread), "pickled attribute")
    return [Note(NoteKind.UNREAD_VALUES, (amount, RECORD, f"{named}{more}"))]


def _versions(source: Source, entries: dict[str, ZipEntry], byteorder: str) -> list[tuple[str, str]]:
    """Return what the file says of the programs that wrote it."""
    version = _text(source, entries, _VERSION)
    found = [("stable_baselines3", version)] if version else []
    lines = [line.lstrip("- ").partition(": ") for line in _text(source, entries, _SYSTEM).splitlines()]
    found += [(name, text) for name, _, text in lines if name in _SHOWN and text]
    return [*found, ("byteorder", byteorder)] if byteorder == "big" else found


def _text(source: Source, entries: dict[str, ZipEntry], name: str) -> str:
    """Return a short record as text that is fit for a screen; nothing of one that cannot be read."""
    try:
        data = read_contents(source, entries[name], _MOST_TEXT_NBYTES).data if name in entries else b""
    except ContainerError:
        return ""
    lines = data.decode("utf-8", "replace").splitlines()
    return "\n".join(cut_text(escape_text(line), _MOST_CHARS) for line in lines).strip()


def sb3_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    """Find the storages and the records of an agent; errors as those of `read_sb3`."""
    from inspector.containers.extents import Extents, record_extents  # noqa: PLC0415 - opening a file needs none

    records = records_of(source, limits, progress)
    container, files = open_sb3(source, records, limits, progress)
    found = files.extents()
    lost = {key: _NOWHERE for key in container.storage_ids if key not in found.whole} | found.lost
    own = [entry for entry in records.directory.entries if entry.name not in found.names]
    others = record_extents(source, own)
    return Extents(container=container, whole=found.whole, lost=lost, records=found.records | others)


def find_sb3_records(source: Source) -> Callable[[str], Extent | None]:
    """Return what finds the bytes of a storage by its key; errors as those of `read_sb3`."""
    records, progress = records_of(source, DEFAULT_LIMITS, Progress()), Progress()
    return open_sb3(source, records, DEFAULT_LIMITS, progress).files.extents().whole.get

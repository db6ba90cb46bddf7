"""The zip of Stable-Baselines3: files of torch for parameters, optimizers and variables, and attributes.

Written by `save_to_zip_file` in `stable_baselines3/common/save_util.py`. Its reader is Python's `zipfile`: of
records with one name the last counts, and every record named `.pth` is loaded. The attributes are JSON, in
which whatever JSON cannot hold is a pickle in Base64: `json_to_data` has cloudpickle load every value below
`:serialized:`, without asking what it runs. The storages of a file within are known under keys of their own:
the name of its record, a colon, their key in it.
"""

from __future__ import annotations

import binascii
import posixpath
import re
from contextlib import suppress
from typing import NamedTuple

from inspector.containers.base import Cannot, Find
from inspector.containers.container import Container, Extent, Extents, PickleRecord
from inspector.containers.joined import InnerFiles
from inspector.containers.legacy import Legacy, legacy_extents
from inspector.containers.lookalikes import refuse_lookalike
from inspector.containers.notes import Note, NoteKind, listed, shown
from inspector.containers.small_json import Members, read_json, value_of
from inspector.containers.source import BytesSource, Source
from inspector.containers.unread import programs_on_errors
from inspector.containers.zip.archive import read_torchzip, zip_extents
from inspector.containers.zip.directory import (
    DEFLATED,
    END,
    END_SIGNATURE,
    LOCAL_SIGNATURE,
    STORED,
    ZipEntry,
    payload_offset,
)
from inspector.containers.zip.records import (
    PICKLE,
    Archive,
    Records,
    ZipFormat,
    open_record,
    record_extents,
    records_of,
)
from inspector.containers.zip.storages import Metadata, Places, assemble
from inspector.errors import (
    CheckpointError,
    ContainerError,
    DamagedError,
    NotACheckpointError,
    PickleError,
    TooLargeError,
)
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.units import cut_text, format_count

# --- files of torch within it -------------------------------------------------------------------------------


_NO_FILE = "this is no file of torch.save"
TWICE = -1000
"""The method of bytes that are compressed in a file that is compressed itself: torch writes no such file."""


class _File(NamedTuple):
    entry: ZipEntry
    inside: Source
    is_zip: bool
    prefix: str


class Found(NamedTuple):
    """Where bytes are in the archive, all under the names that they have there."""

    whole: dict[str, Extent]
    lost: dict[str, str]
    records: dict[str, Extent]
    names: set[str]


class Files(InnerFiles):
    """Reads files of torch within one zip."""

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.limits)
        self.refused: dict[str, str] = {}
        self.refusal = ""  # what torch says to the first of them that it does not open
        self.byteorder = ""  # how they store numbers, where they say so
        self._source = archive.source
        self._progress = archive.progress
        self._files: list[_File] = []

    def read(self, name: str, entry: ZipEntry) -> Value:
        """Read the file in a record, and return its object."""
        self.count_file()
        inside = open_record(self._source, entry, self._limits)
        try:
            with programs_on_errors(inside, self._limits, self._progress):
                is_zip = inside.read_upto(0, len(LOCAL_SIGNATURE)) == LOCAL_SIGNATURE
                read = self._read_zip if is_zip else self._read_stream
                container = read(inside, name)
        finally:
            self._source.programs.adopt(inside.programs, name, "object")
        self._refuse_other_order(container, name)
        self._files.append(_File(entry, inside, is_zip, f"{name}:"))
        start = payload_offset(self._source, entry)
        self.take(name, container, start if entry.method == STORED else None)
        self.notes += [note.within(name) for note in container.notes if note.kind is not NoteKind.LOST_BYTES]
        self.refusal = self.refusal or container.refusal
        self.refused |= {f"{name}:{key}": words for key, words in container.refused}
        return container.root

    def _read_zip(self, inside: Source, name: str) -> Container:
        with suppress(DamagedError):  # which the reader sees to
            records = records_of(inside, self._limits, self._progress)
            if records.get(PICKLE) is None or records.lists("constants.pkl"):
                raise NotACheckpointError(_NO_FILE, where=name)
        return read_torchzip(inside, self._limits, self._progress)

    def _read_stream(self, inside: Source, name: str) -> Container:
        legacy = Legacy()
        if not legacy.matches(inside):
            refuse_lookalike(inside)
            raise NotACheckpointError(_NO_FILE, where=name)
        return legacy.read(inside, self._limits, self._progress)

    def extents(self) -> Found:
        """Return where the bytes of every storage are, and of every other record of the files."""
        found = Found({}, {}, {}, set())
        for file in self._files:
            read = zip_extents if file.is_zip else legacy_extents
            inner = read(file.inside, self._limits, self._progress)
            start = payload_offset(self._source, file.entry)
            found.names.add(file.entry.name)
            found.lost.update({file.prefix + key: why for key, why in inner.lost.items()})
            for own, whole in ((inner.whole, found.whole), (inner.records, found.records)):
                whole.update({file.prefix + key: _outer(one, start, file.entry) for key, one in own.items()})
        return found

    def _refuse_other_order(self, container: Container, name: str) -> None:
        order = dict(container.versions).get("byteorder", "little")
        if self._files and order != self.byteorder:
            what = "a file in the archive stores numbers in another order than those before it"
            raise ContainerError(what, where=name)
        self.byteorder = order


def _outer(own: Extent, start: int, entry: ZipEntry) -> Extent:
    if entry.method == STORED:
        return own._replace(offset=start + own.offset)
    if own.method != STORED:
        return own._replace(offset=start, method=TWICE)
    return Extent(start, entry.stored_nbytes, own.nbytes, DEFLATED, own.crc, skip=own.offset)


# --- its attributes -----------------------------------------------------------------------------------------


RECORD = "data"
_PICKLED = ":serialized:"
_MOST_NAME_CHARS = 60
_MOST_NBYTES = 64 << 20
_MOST_PICKLES = 4096


class Attributes(NamedTuple):
    """What was read of them."""

    root: Dict
    unread: tuple[str, ...]  # the names of those whose pickle cannot be read, fit for a screen


def read_attributes(archive: Archive, entry: ZipEntry, files: InnerFiles) -> Attributes:
    """Read the attributes; `files` takes over what their pickles refer to."""
    data = archive.contents(entry, _MOST_NBYTES).data
    members = read_json(BytesSource(data, RECORD), archive.limits)
    pairs: list[tuple[Value, Value]] = []
    unread: list[str] = []
    if sum(isinstance(found, Members) for _, found in members) > _MOST_PICKLES:
        raise TooLargeError(f"there are more than {_MOST_PICKLES:,} pickled attributes")
    for name, found in members:
        archive.progress.advance(0)
        where = f"{RECORD}: {cut_text(name, _MOST_NAME_CHARS)}"
        try:
            pairs.append((name, _value(name, found, where, archive, files)))
        except (PickleError, ContainerError, ValueError) as error:  # of a text that is no Base64
            archive.source.programs.miss(where, str(getattr(error, "what", error)))
            unread.append(shown(name, _MOST_NAME_CHARS))
    return Attributes(Dict(pairs), tuple(unread))


def _value(name: str, found: object, where: str, archive: Archive, files: InnerFiles) -> Value:
    if not isinstance(found, Members) or not any(key == _PICKLED for key, _ in found):
        return value_of(found)
    packed = dict(found)[_PICKLED]  # of several members of one name the last counts
    if not isinstance(packed, str):
        raise ContainerError("a pickle is no text", where=name)
    data = binascii.a2b_base64(packed.encode())  # whatever else stands in it is passed over, as in Python
    stream = archive.run(data, where, RECORD, "object")
    if stream.persistent_ids:  # cloudpickle finds nothing that they could mean, and stops
        raise ContainerError("a pickle refers to something outside of itself", where=name)
    files.add_pickle(PickleRecord(f"{RECORD}/{name}", stream))
    return stream.root


# --- the archive --------------------------------------------------------------------------------------------


_PARAMETERS, _SUFFIX = "policy.pth", ".pth"
_VARIABLES = ("pytorch_variables.pth", "tensors.pth")
_VERSION, _SYSTEM = "_stable_baselines3_version", "system_info.txt"
_SHOWN = ("Python", "PyTorch", "Numpy", "Gymnasium", "OpenAI Gym", "GPU Enabled")
_MOST_TEXT_NBYTES = 1 << 14
_TAIL_NBYTES = (1 << 16) + END.size  # in which Python looks for the end of a zip
_NOWHERE = "its bytes are not in the file"


def open_sb3(archive: Archive) -> tuple[Container, Files]:
    """Take an agent apart, and return the files of torch in it as well."""
    source, records, _, progress, _ = archive
    files = Files(archive)
    entries = {entry.name: entry for entry in records.directory.entries}
    shares = len(entries) < len(records.directory.entries)
    if shares:
        _read_rivals(archive, entries)
    attributes, unread = _attributes(archive, entries, files)
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
    notes = [Note(NoteKind.UNREAD_PART, (error.what,)).within(name) for name, error in unread]
    container = assemble(
        archive,
        "stable-baselines3",
        Dict(pairs),
        files.storage_ids,
        Places(files.stored, files.refused),
        Metadata(tuple(_versions(archive, entries, files.byteorder))),
        flags={NoteKind.SHARED_NAME: shares},
        more=[*notes, *files.notes, *_of_attributes(attributes)],
        pickles=tuple(files.pickles),
        data=bytes(files.large),
    )
    refusal = f"{unread[0][0]}: {unread[0][1].what}" if unread else files.refusal
    return replace(container, refusal=refusal), files


def _read_rivals(archive: Archive, entries: dict[str, ZipEntry]) -> None:
    """Read what the other records of one name run, which other readers take."""
    kept = set(entries.values())
    for entry in archive.records.directory.entries:
        files = Files(archive)
        with suppress(ContainerError, PickleError):
            if entry not in kept and entry.name == RECORD:
                read_attributes(archive, entry, files)
            elif entry not in kept and _is_file(entry.name):
                files.read(entry.name, entry)


def _is_file(name: str) -> bool:
    return posixpath.splitext(name)[1] == _SUFFIX


def _rank(name: str) -> tuple[int, str]:
    """Sort the parameters before the optimizers, and variables behind."""
    return (name != _PARAMETERS) + (name in _VARIABLES), name


def _attributes(
    archive: Archive, entries: dict[str, ZipEntry], files: InnerFiles
) -> tuple[Attributes | None, list[tuple[str, CheckpointError]]]:
    """Return the attributes, and what stands in the way of reading them; first, since they run most."""
    if RECORD not in entries:
        return None, []
    try:
        return read_attributes(archive, entries[RECORD], files), []
    except ContainerError as error:
        archive.source.programs.absorb_failed(error, RECORD)
        return None, [(RECORD, error)]


def _of_attributes(found: Attributes | None) -> list[Note]:
    if found is None or not found.unread:
        return []
    amount = format_count(len(found.unread), "pickled attribute")
    return [Note(NoteKind.UNREAD_VALUES, (amount, RECORD, listed(found.unread)))]


def _versions(archive: Archive, entries: dict[str, ZipEntry], byteorder: str) -> list[tuple[str, str]]:
    version = _text(archive, entries, _VERSION)
    found = [("stable_baselines3", version)] if version else []
    lines = [line.lstrip("- ").partition(": ") for line in _text(archive, entries, _SYSTEM).splitlines()]
    found += [(name, text) for name, _, text in lines if name in _SHOWN and text]
    return [*found, ("byteorder", byteorder)] if byteorder == "big" else found


def _text(archive: Archive, entries: dict[str, ZipEntry], name: str) -> str:
    """Return a short record as text that is fit for a screen; nothing of one that cannot be read."""
    try:
        data = archive.contents(entries[name], _MOST_TEXT_NBYTES).data if name in entries else b""
    except ContainerError:
        return ""
    return "\n".join(map(shown, data.decode("utf-8", "replace").splitlines())).strip()


class StableBaselines3(ZipFormat):
    """What BaseAlgorithm.save writes."""

    name = "stable-baselines3"
    what = "a Stable-Baselines3 agent"
    is_agent = True
    loader = "BaseAlgorithm.load"
    loader_maps = True
    unchecked = True
    copied_as = "state-dict"
    weights_at = _PARAMETERS
    cannot = (
        Cannot(
            ("remap", "in-place"),
            "Stable-Baselines3 sends all tensors to the device that load is given, so the saved ones "
            "decide nothing",
            'load it with device="cpu" or another one; for torch.load write one file: export -o policy.pth',
        ),
    )
    left = re.compile(r"policy\.pth$|_stable_baselines3_version$")

    @override
    def matches_records(self, records: Records) -> bool:
        return {RECORD, _PARAMETERS} <= set(records.names) or _VERSION in records.names

    @override
    def words_without_directory(self, source: Source, _words: str) -> str:
        """Return what its reader says, which takes the end of a file within for that of the zip."""
        tail = source.read_upto(max(source.nbytes - _TAIL_NBYTES, 0), _TAIL_NBYTES)
        if END_SIGNATURE in tail:
            return "AssertionError: No data found in the saved file"
        return f"ValueError: Error: the file {source.path} wasn't a zip-file"

    @override
    def finder(self, source: Source) -> Find:
        return open_sb3(self.opened(source))[1].extents().whole.get

    @override
    def extents(self, source: Source, limits: Limits, progress: Progress) -> Extents:
        archive = self.opened(source, limits, progress)
        container, files = open_sb3(archive)
        found = files.extents()
        lost = {key: _NOWHERE for key in container.storage_ids if key not in found.whole} | found.lost
        own = [entry for entry in archive.records.directory.entries if entry.name not in found.names]
        others = record_extents(source, own)
        return Extents(container=container, whole=found.whole, lost=lost, records=found.records | others)

    @override
    def take_apart(self, archive: Archive) -> Container:
        return open_sb3(archive)[0]

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
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from inspector.containers.container import Container, Extent, PickleRecord, StoredBytes, damage_note
from inspector.containers.formats import find_format
from inspector.containers.joined import shift_large_values
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, prefix_key, prefixed
from inspector.containers.small_json import Members, read_json, value_of
from inspector.containers.source import BytesSource, Source
from inspector.containers.unread import programs_on_errors
from inspector.containers.zip.directory import DEFLATED, STORED, ZipEntry, payload_offset
from inspector.containers.zip.records import Records, is_stored, open_record, read_contents, records_of
from inspector.errors import CheckpointError, ContainerError, NotACheckpointError, PickleError, TooLargeError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text, format_count

if TYPE_CHECKING:
    from inspector.containers.extents import Extents


# --- files of torch within it -------------------------------------------------------------------------------


_MOST_FILES = 256
TWICE = -1000
"""The method of bytes that are compressed in a file that is compressed itself: torch writes no such file."""


class _File(NamedTuple):
    """One file that was read, and where it stands."""

    entry: ZipEntry
    inside: Source
    is_zip: bool
    container: Container
    prefix: str


class Found(NamedTuple):
    """Where bytes are in the archive, all under the names that they have there.

    Attributes:
        whole: Each storage whose bytes are all there.
        lost: Why the others are not.
        records: What else stands in the files.
        names: The records that are these files.
    """

    whole: dict[str, Extent]
    lost: dict[str, str]
    records: dict[str, Extent]
    names: set[str]


class InnerFiles:
    """Reads files within one zip, and gathers what they hold.

    Attributes:
        storage_ids: As `Container` has it.
        stored: The same.
        pickles: The same.
        refused: The same.
        large: The data of pickles that left large values in it.
        notes: What there is to know of the files, each with the name of its record.
        refusal: What torch says to the first of them that it does not open.
        byteorder: How they store numbers, where they say so.
    """

    def __init__(self, source: Source, limits: Limits, progress: Progress) -> None:
        """Prepare to read files within `source`."""
        self.storage_ids: dict[str, StorageId] = {}
        self.stored: dict[str, StoredBytes] = {}
        self.pickles: list[PickleRecord] = []
        self.refused: list[tuple[str, str]] = []
        self.large = bytearray()
        self.notes: list[Note] = []
        self.refusal = ""
        self.byteorder = ""
        self._source = source
        self._limits = limits
        self._progress = progress
        self._files: list[_File] = []

    def read(self, name: str, entry: ZipEntry) -> Value:
        """Read the file in a record, and return its object."""
        if len(self._files) >= _MOST_FILES:
            raise ContainerError(f"the archive holds more than {_MOST_FILES:,} files of torch.save")
        inside = open_record(self._source, entry, self._limits)
        try:
            with programs_on_errors(inside, self._limits, self._progress):
                form = find_format(inside, self._limits, self._progress)
                if not (form.torch_loads and (form.has_records or form.is_stream)):
                    raise NotACheckpointError("this is no file of torch.save", where=name)
                container = form.reader_for(inside)(inside, self._limits, self._progress)
        finally:
            self._source.programs.adopt(inside.programs, name, "object")
        self._refuse_other_order(container, name)
        found = _File(entry, inside, form.has_records, container, f"{name}:")
        self._files.append(found)
        self._take(found, name)
        return container.root

    def add_pickle(self, name: str, stream: Stream) -> None:
        """Add a pickle that stands by itself, and refers to no storage."""
        self._keep_large(stream)
        self.pickles.append(PickleRecord(name, stream))

    def extents(self) -> Found:
        """Return where the bytes of every storage are, and of every other record of the files."""
        from inspector.containers.extents import legacy_extents, zip_extents  # noqa: PLC0415 - few ask

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

    def _take(self, file: _File, name: str) -> None:
        """Take over what a file holds."""
        container, prefix = file.container, file.prefix
        stream = container.pickle()
        for node in stream.persistent_ids:
            prefix_key(node, prefix)
        self.storage_ids |= {
            prefix + key: prefixed(one, prefix) for key, one in container.storage_ids.items()
        }
        if len(self.storage_ids) > self._limits.storages:
            raise ContainerError(f"the file has more than {self._limits.storages:,} storages")
        self._keep_large(stream)
        start = payload_offset(self._source, file.entry)
        is_plain = is_stored(file.entry)
        for key, place in container.stored.items():
            offset = start + place.offset if is_plain and place.offset is not None else None
            self.stored[prefix + key] = place._replace(offset=offset)
        self.notes += [note.within(name) for note in container.notes if note.kind is not NoteKind.LOST_BYTES]
        self.refusal = self.refusal or container.refusal
        self.refused += [(prefix + key, words) for key, words in container.refused]
        self.pickles.append(PickleRecord(name, stream, prefix))

    def _keep_large(self, stream: Stream) -> None:
        if shift_large_values(stream.root, stream, len(self.large), self._limits):
            self.large += stream.data


def _outer(own: Extent, start: int, entry: ZipEntry) -> Extent:
    """Return where bytes of a file within a record are in the archive."""
    if is_stored(entry):
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


class _Reading(NamedTuple):
    """What reading takes."""

    source: Source
    files: InnerFiles
    limits: Limits
    progress: Progress


class Attributes(NamedTuple):
    """What was read of them.

    Attributes:
        root: Their values by name.
        unread: The names of those whose pickle cannot be read, fit for a screen.
    """

    root: Dict
    unread: tuple[str, ...]


def read_attributes(
    source: Source, entry: ZipEntry, files: InnerFiles, limits: Limits, progress: Progress
) -> Attributes:
    """Read the attributes; `files` takes over what their pickles refer to."""
    data = read_contents(source, entry, _MOST_NBYTES).data
    members = read_json(BytesSource(data, RECORD), limits)
    reading = _Reading(source, files, limits, progress)
    pairs: list[tuple[Value, Value]] = []
    unread: list[str] = []
    if sum(isinstance(found, Members) for _, found in members) > _MOST_PICKLES:
        raise TooLargeError(f"there are more than {_MOST_PICKLES:,} pickled attributes")
    for name, found in members:
        progress.advance(0)
        try:
            pairs.append((name, _value(name, found, reading)))
        except (PickleError, ContainerError, ValueError) as error:  # of a text that is no Base64
            source.programs.miss(
                f"{RECORD}: {cut_text(name, _MOST_NAME_CHARS)}", str(getattr(error, "what", error))
            )
            unread.append(escape_text(cut_text(name, _MOST_NAME_CHARS)))
    return Attributes(Dict(pairs), tuple(unread))


def _value(name: str, found: object, reading: _Reading) -> Value:
    """Return one value."""
    if not isinstance(found, Members) or not any(key == _PICKLED for key, _ in found):
        return value_of(found)
    packed = dict(found)[_PICKLED]  # of several members of one name the last counts
    if not isinstance(packed, str):
        raise ContainerError("a pickle is no text", where=name)
    data = binascii.a2b_base64(packed.encode())  # whatever else stands in it is passed over, as in Python
    source, files, limits, progress = reading
    where = f"{RECORD}: {cut_text(name, _MOST_NAME_CHARS)}"
    machine = Machine(data, name=where, limits=limits, progress=progress)
    stream = source.programs.run(machine, RECORD, "object")
    if stream.persistent_ids:  # cloudpickle finds nothing that they could mean, and stops
        raise ContainerError("a pickle refers to something outside of itself", where=name)
    files.add_pickle(f"{RECORD}/{name}", stream)
    return stream.root


# --- the archive --------------------------------------------------------------------------------------------


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

"""A torch archive without its directory: the records are found again by walking over the file.

The directory of a zip stands at its end, so it is the first thing that a file loses which was not fetched or
written whole, while all that it points to may still be there. In front of each record stands a local header;
but torch writes records whose sizes it does not know yet, and leaves them to a descriptor behind the contents
(flag 8, APPNOTE.TXT 4.3.9). So the length of `data.pkl` is where its pickle stops, and the lengths of the
storages are what that pickle says. Where the file is damaged in its middle, the next header or descriptor is
searched for: every byte is looked at once at most.
"""

from __future__ import annotations

import re
import struct
import time
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from inspector.containers.container import Container, first_storage_ids
from inspector.containers.lookalikes import name_zip
from inspector.containers.notes import Note, NoteKind, shown
from inspector.containers.persistent_ids import StorageId
from inspector.containers.programs import Programs
from inspector.containers.source import Source
from inspector.containers.zip.directory import (
    DESCRIBED,
    DESCRIPTOR,
    DESCRIPTOR64,
    DESCRIPTOR_SIGNATURE,
    LOCAL,
    LOCAL_SIGNATURE,
    STORED,
    DirectoryError,
    MinizError,
    ZipDirectory,
    ZipEntry,
    miniz_words,
)
from inspector.containers.zip.records import PICKLE, Archive, Records, ZipFormat, read_zip_record
from inspector.containers.zip.rivals import namesakes, read_rivals
from inspector.containers.zip.storages import (
    Metadata,
    Places,
    assemble,
    find_storages,
    read_metadata,
    read_object,
)
from inspector.errors import CheckpointError, ContainerError, DamagedError, NotACheckpointError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import Machine, Stream, growing_machine
from inspector.progress import Progress
from inspector.records import replace
from inspector.units import format_count

# --- the search ---------------------------------------------------------------------------------------------


_SIGNATURES = re.compile(re.escape(LOCAL_SIGNATURE) + b"|" + re.escape(DESCRIPTOR_SIGNATURE))
_SEARCH_NBYTES = 4 << 20
_ASK_EACH = 1024
_ELSEWHERE = 0xFFFFFFFF  # the true size stands in the Zip64 extra field


class _Local(NamedTuple):
    name: str
    start: int
    payload: int
    nbytes: int  # the inflated size it tells; 0 where a descriptor tells it
    stored_nbytes: int
    method: int
    crc: int
    flags: int

    def entry(self, nbytes: int, stored_nbytes: int, crc: int) -> ZipEntry:
        """Return the record as a directory would tell it."""
        return ZipEntry(self.name, self.start, nbytes, stored_nbytes, self.method, crc, self.flags, -1)


class _End(NamedTuple):
    nbytes: int  # its inflated size; -1 where the next header came before any descriptor
    stored_nbytes: int
    crc: int
    behind: int  # where the next header may stand


class ZipWalk:
    """Goes from one local header to the next."""

    def __init__(self, source: Source, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._limits = limits
        self._progress = progress
        # Half of what there is: the tensors found must still be listed.
        now_s = time.thread_time()
        self._deadline_s = (now_s + limits.started().ends_s) / 2
        self._folder = ""
        self._room = limits.directory_nbytes  # for names, each character at least a byte of the file
        self.entries: list[ZipEntry] = []
        self.names: list[str] = []
        self.storage_ids: dict[str, StorageId] = {}
        self.stream: Stream | None = None
        self.pickle_error: CheckpointError | None = None
        self.gave_up = False

    def run(self) -> None:
        """Find what there is."""
        self._progress.start("looking for records", self._source.nbytes)
        pos: int | None = 0
        while pos is not None and pos < self._source.nbytes:
            self._progress.advance(max(pos - self._progress.done, 0))
            local = self._local_at(pos)
            if local is None:
                end = self._search(pos, None)
                pos = None if end is None else end.behind
            elif self._is_late():
                return
            else:
                self._meet(local.name)
                pos = self._take(local)
            if self.pickle_error is not None:
                return

    def _meet(self, name: str) -> None:
        """Remember the name of a header; the first one says which folder all others stand in."""
        limits = self._limits
        self._room -= len(name)
        if self._room < 0 or len(self.names) >= limits.records:
            raise ContainerError(f"the zip has more than {limits.records:,} records, or names without end")
        if not self.names:
            folder, slash, _ = name.partition("/")
            self._folder = folder + slash if slash else ""
        self.names.append(name)

    def _take(self, local: _Local) -> int | None:
        """Note a record, and say where the next header may be; None where the file ends."""
        if not local.flags & DESCRIBED:
            entry = local.entry(local.nbytes, local.stored_nbytes, local.crc)
            self.entries.append(entry)
            if self._is_pickle(local) and self._read_stream(local, entry) is None:
                return None
            return local.payload + local.stored_nbytes
        if self._is_pickle(local):
            return self._take_pickle(local)
        storage = self._storage_of(local.name)
        if storage is not None:
            return self._take_storage(local, storage.nbytes)
        end = self._search(local.payload, local)
        if end is None:
            return None
        self._note(local, end)
        return end.behind

    def _note(self, local: _Local, end: _End) -> None:
        """Note a record whose end was found; one without an end is as good as lost."""
        if end.nbytes >= 0:
            self.entries.append(local.entry(end.nbytes, end.stored_nbytes, end.crc))

    # --- the pickle -----------------------------------------------------------------------------------------

    def _is_pickle(self, local: _Local) -> bool:
        return self.stream is None and local.name == self._folder + PICKLE

    def _take_pickle(self, local: _Local) -> int | None:
        stream = self._read_stream(local)
        if stream is None:
            return None
        # Behind STOP there may be zeros, where a shorter pickle was written over a longer one.
        end = self._search(local.payload, local, stream.end)
        if end is None or end.nbytes < 0:
            end = _End(stream.end, stream.end, 0, self._source.nbytes if end is None else end.behind)
        self._note(local, end)
        return end.behind

    def _read_stream(self, local: _Local, entry: ZipEntry | None = None) -> Stream | None:
        where, limits = f"{PICKLE} at byte {local.payload:,}", self._limits
        if entry is None and local.method != STORED:
            self.pickle_error = PickleError("it is compressed, and its length is not known", where=where)
            return None
        try:
            if entry is not None:
                data = read_zip_record(self._source, entry, limits.pickle_nbytes)
                machine = Machine(data, name=where, limits=limits, progress=self._progress)
            else:
                machine = growing_machine(
                    lambda nbytes: self._source.read_upto(local.payload, nbytes),
                    name=where,
                    limits=limits,
                    progress=self._progress,
                )
            stream = self._source.programs.run(machine, PICKLE, "object")
        except (PickleError, ContainerError) as error:
            self.pickle_error = error
            return None
        self.stream = stream
        self.storage_ids = first_storage_ids(stream.persistent_ids, limits)
        return stream

    # --- storages -------------------------------------------------------------------------------------------

    def _storage_of(self, name: str) -> StorageId | None:
        below = name[len(self._folder) :]
        folder, _, key = below.partition("/")
        return self.storage_ids.get(key) if folder in {"data", "tensors"} else None

    def _take_storage(self, local: _Local, nbytes: int) -> int | None:
        end = local.payload + nbytes
        found = self._descriptor_at(end, nbytes, local.method)
        if found is not None:
            self._note(local, found)
            return found.behind
        if local.method == STORED and end + DESCRIPTOR.size > self._source.nbytes:
            # The file ends within it, or right behind it; which of the two is seen by its size.
            self.entries.append(local.entry(nbytes, nbytes, 0))
            return None
        other = self._search(local.payload, local)
        if other is None:
            return None
        self._note(local, other)
        return other.behind

    # --- places ---------------------------------------------------------------------------------------------

    def _local_at(self, pos: int) -> _Local | None:
        head = self._source.read_upto(pos, LOCAL.size)
        if len(head) < LOCAL.size or not head.startswith(LOCAL_SIGNATURE):
            return None
        _, _, flags, method, _, _, crc, packed, nbytes, name_nbytes, extra_nbytes = LOCAL.unpack(head)
        rest = self._source.read_upto(pos + LOCAL.size, name_nbytes + extra_nbytes)
        if len(rest) < name_nbytes + extra_nbytes:
            return None
        name = rest[:name_nbytes].decode("utf-8", "surrogateescape")
        if not name or not name.startswith(self._folder):
            return None
        nbytes, packed = _apply_zip64(rest[name_nbytes:], nbytes, packed)
        return _Local(name, pos, pos + LOCAL.size + len(rest), nbytes, packed, method, crc, flags)

    def _descriptor_at(self, pos: int, stored_nbytes: int, method: int) -> _End | None:
        """Return the end that a descriptor tells, if there is one and it tells this size in the file.

        It has wide sizes behind the first 4 GiB, too, where they begin as narrow ones would: only the second
        size tells the two apart.
        """
        data = self._source.read_upto(pos, DESCRIPTOR64.size)
        for form in (DESCRIPTOR, DESCRIPTOR64):
            if len(data) < form.size or not data.startswith(DESCRIPTOR_SIGNATURE):
                return None
            _, crc, told_nbytes, nbytes = form.unpack_from(data)
            if told_nbytes == stored_nbytes and (nbytes == stored_nbytes if method == STORED else nbytes):
                return _End(nbytes, stored_nbytes, crc, pos + form.size)
        return None

    def _search(self, start: int, local: _Local | None, skip: int = 0) -> _End | None:
        """Search for the end of a record, or for the next header alone; None if there is neither.

        The first `skip` bytes of the record are known to be its own.
        """
        pos, asked = start + skip, 0
        while pos < self._source.nbytes:
            pos = self._source.skip_hole(pos)
            self._progress.advance(max(pos - self._progress.done, 0))
            block = self._source.read_upto(pos, _SEARCH_NBYTES)
            for match in _SIGNATURES.finditer(block):
                asked += 1
                if asked % _ASK_EACH == 0 and self._is_late():
                    return None
                found = self._judge(pos + match.start(), match[0], start, local)
                if found is not None:
                    return found
            if self._is_late():
                return None
            # A signature may stand on the border of two blocks.
            pos += len(block) - (3 if len(block) == _SEARCH_NBYTES else 0)
        return None

    def _judge(self, at: int, signature: bytes, start: int, local: _Local | None) -> _End | None:
        if signature == LOCAL_SIGNATURE:
            return None if self._local_at(at) is None else _End(-1, 0, 0, at)
        return None if local is None else self._descriptor_at(at, at - start, local.method)

    def _is_late(self) -> bool:
        self._progress.advance(0)
        self.gave_up = time.thread_time() > self._deadline_s
        return self.gave_up


def _apply_zip64(extra: bytes, nbytes: int, packed: int) -> tuple[int, int]:
    """Replace the sizes that read 0xFFFFFFFF by those of the Zip64 extra field, which come in this order."""
    pos = 0
    while pos + 4 <= len(extra):
        tag, size = struct.unpack_from("<2H", extra, pos)
        pos += 4 + size
        if tag == 1:
            whole = extra[pos - size : pos]
            values = iter(struct.unpack_from(f"<{len(whole) // 8}Q", whole))
            nbytes, packed = (
                next(values, value) if value == _ELSEWHERE else value for value in (nbytes, packed)
            )
            break
    return nbytes, packed


# --- what it is ---------------------------------------------------------------------------------------------


_FETCH = "fetch or copy it again; nothing that is left has a name"
# Names by which TorchScript, torch.export and torch.package are told, before or instead of their own marks.
_OTHERS = re.compile(r"[^/]*/(code/|constants\.pkl|models/|data/weights/|\.data/\d+\.storage)")


def salvage_zip(
    source: Source, limits: Limits, progress: Progress, error: DamagedError, others: Iterable[ZipFormat]
) -> tuple[Container, Records]:
    """Take a zip apart whose directory is missing, or there but of no use, as an error says.

    Among the records that are returned with it is one that the end of the file cuts off.
    """
    walk = ZipWalk(source, limits, progress)
    walk.run()
    directory = ZipDirectory(entries=tuple(walk.entries), start=source.nbytes, end=source.nbytes)
    other = next((form for form in others if form.matches_names(walk.names)), None) if walk.entries else None
    own = (other.own, other.pattern) if other is not None else ("", "")
    records = Records(directory, own=own[0], pattern=own[1])
    archive = Archive(source, records, limits, progress, _damage(walk, error))
    if other is not None:
        return _salvage_other(walk, archive, other, error), records
    if walk.stream is None or any(map(_OTHERS.match, walk.names)):
        raise _hopeless(walk, source)
    pickle = next(entry for entry in walk.entries if entry.name == records.prefix + PICKLE)
    odd = read_rivals(
        pickle,
        namesakes(pickle, walk.entries),
        lambda rival: read_object(source, rival, limits, progress, "rival"),
    )
    crc = zlib.crc32(read_zip_record(source, pickle, limits.pickle_nbytes))
    container = assemble(
        archive,
        "zip",
        walk.stream.root,
        walk.storage_ids,
        Places(find_storages(source, records, walk.storage_ids, progress).stored),
        Metadata(read_metadata(source, records).versions),
        flags={NoteKind.WRONG_CHECKSUM: pickle.crc not in {0, crc}},
        stream=replace(walk.stream, oddities=(*walk.stream.oddities, *odd)),
    )
    return replace(container, refusal=_words(error)), records


def _damage(walk: ZipWalk, error: DamagedError) -> tuple[Note, ...]:
    is_missing = isinstance(error, DirectoryError) and error.miniz is MinizError.NO_DIRECTORY
    kind = NoteKind.NO_DIRECTORY if is_missing else NoteKind.BAD_DIRECTORY
    found = Note(kind, (format_count(len(walk.entries), "record"),))
    return (found, Note(NoteKind.SEARCH_ENDED)) if walk.gave_up else (found,)


def _salvage_other(walk: ZipWalk, archive: Archive, form: ZipFormat, error: DamagedError) -> Container:
    """Take another archive apart by the records that were found."""
    source = archive.source
    source.programs = Programs()  # its pickles are read once more
    try:
        container = form.take_apart(archive)
    except (ContainerError, PickleError):
        raise _hopeless(walk, source) from None
    if not container.storage_ids:
        raise _hopeless(walk, source)
    return replace(container, refusal=form.words_without_directory(source, _words(error)))


def _words(error: DamagedError) -> str:
    if isinstance(error, DirectoryError):
        return miniz_words("reading zip archive", error.miniz)
    return miniz_words(f"reading file {PICKLE}", MinizError.CORRUPTED)


def _hopeless(walk: ZipWalk, source: Source) -> CheckpointError:
    path, names = source.path, walk.names
    if any(map(_OTHERS.match, names)):
        return DamagedError(
            "this is an archive of TorchScript, torch.export or torch.package that is cut off",
            where=path,
            remedy="fetch or copy it again",
        )
    if walk.pickle_error is not None:
        what = "the file is cut off or damaged within data.pkl, which says what is in it"
        why = walk.pickle_error
        return DamagedError(f"{what}: {why.what}", where=why.where, remedy=_FETCH)
    error = name_zip(names, path)
    if names and error.form != "zip":
        return NotACheckpointError(f"{error.what}, cut off", where=path, remedy=error.remedy, form=error.form)
    first = f", the first is {shown(names[0])}" if names else ""
    return DamagedError(
        "the zip is cut off or damaged, and data.pkl, which says what is in it, is not among what is left",
        where=f"{source.nbytes:,} bytes, {format_count(len(names), 'record')}{first}",
        remedy=_FETCH,
    )

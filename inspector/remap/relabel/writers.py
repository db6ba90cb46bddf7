"""How the bytes of a copy come about, for each container: patched, laid out again, or streamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from inspector.containers.copying import write_bytes, write_over
from inspector.containers.legacy import read_layout
from inspector.containers.source import Source
from inspector.containers.zip.archive import find_pickle
from inspector.containers.zip.directory import ZipEntry, payload_offset, read_directory
from inspector.containers.zip.records import Records, read_zip_record
from inspector.diff.same_bytes import Span
from inspector.errors import ExportError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import dataclass, field
from inspector.remap.archive.zip_layout import Record, plain_record, write_zip
from inspector.remap.relabel.edits import Edit
from inspector.remap.relabel.padding import fit_pickle, unfit_pickle
from inspector.remap.relabel.patches import Patch, fits, refuse_doubles, storage_alignment, zip_pieces

_STEP_NBYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWriter:
    """Writes one copy.

    Attributes:
        source: The checkpoint.
        target: Descriptor of the empty file to write.
        pickle: The object's new pickle.
        limits: The bounds of reading.
        progress: Told of bytes copied, asked for cancellation.
        clone: Has the system copy the whole file where it does that by name; returns whether it did.
        copied: Which bytes were copied as they are, filled while that is done.
    """

    source: Source
    target: int
    pickle: bytes
    limits: Limits
    progress: Progress
    clone: Callable[[], bool] | None = None
    copied: list[Span] = field(default_factory=list)

    def write_legacy(self) -> bool:
        """Write a legacy file; return whether every byte outside the pickle kept its place."""
        layout = read_layout(self.source, self.limits, self.progress)
        fitted = fit_pickle(self.pickle, layout.object_end - layout.object_start)
        if fitted is not None and not self.source.gzipped:
            self._write_over([Patch(layout.object_start, fitted)])
            return True
        pickle = unfit_pickle(self.pickle)
        write_bytes(self.target, self.source.read(0, layout.object_start))
        write_bytes(self.target, pickle)
        if self.source.gzipped:
            self._inflate_from(layout.object_end)
            return False
        rest = self.source.nbytes - layout.object_end
        self.progress.start("copying", rest)
        start = layout.object_start + len(pickle)
        self.copied.append(Span(layout.object_end, start, rest))
        self.source.copy_to(self.target, layout.object_end, rest, self.progress)
        return False

    def write_tar(self, edits: Sequence[Edit]) -> bool:
        """Write a tar file with some bytes replaced; return whether every other byte kept its place."""
        fits = all(len(edit.data) == edit.end - edit.start for edit in edits)
        if fits:
            self._write_over([Patch(edit.start, edit.data) for edit in edits])
            return True
        self.progress.start("copying", self.source.nbytes)
        pos = done = 0
        for edit in (*edits, Edit(self.source.nbytes, self.source.nbytes, b"")):
            self.copied.append(Span(done, pos, edit.start - done))
            self.source.copy_to(self.target, done, edit.start - done, self.progress)
            pos += edit.start - done + write_bytes(self.target, edit.data)
            done = edit.end
        return False

    def write_zip(self) -> bool:
        """Write a zip; return whether every byte outside the pickle kept its place."""
        records = Records(read_directory(self.source, self.limits, self.progress))
        entry = find_pickle(records, self.source.path)
        refuse_doubles(self.source, records, entry)
        if read_zip_record(self.source, entry, self.limits.pickle_nbytes).startswith(self.pickle):
            self._copy_whole()  # nothing changes, so neither does what stands behind STOP
            self.copied.append(Span(0, 0, self.source.nbytes))
            return True
        return self.write_records(records, [(entry, self.pickle)])

    def write_records(self, records: Records, changed: Sequence[tuple[ZipEntry, bytes]]) -> bool:
        """Write a zip with other contents of some records; return whether every other byte kept its place."""
        if all(fits(entry, pickle) for entry, pickle in changed):  # torch ignores the zeros behind STOP
            pieces = [zip_pieces(self.source, entry, pickle) for entry, pickle in changed]
            self._write_over(chain.from_iterable(pieces))
            return True
        self._write_laid_out(records, {entry.header_offset: pickle for entry, pickle in changed})
        return False

    def _inflate_from(self, offset: int) -> None:
        self.progress.start("unpacking")
        start, written = offset, os.lseek(self.target, 0, os.SEEK_CUR)
        while data := self.source.read_upto(offset, _STEP_NBYTES):
            self.progress.advance(write_bytes(self.target, data))
            offset += len(data)
        self.copied.append(Span(start, written, offset - start))

    def _copy_whole(self) -> None:
        self.progress.start("copying", self.source.nbytes)
        if self.source.clone_to(self.target) or (self.clone is not None and self.clone()):
            self.progress.advance(self.source.nbytes)
        else:
            self.source.copy_to(self.target, 0, self.source.nbytes, self.progress)

    def _write_over(self, pieces: Iterable[Patch]) -> None:
        """Copy the whole file, then overwrite some of it."""
        self._copy_whole()
        done = 0
        for piece in sorted(pieces):
            write_over(self.target, piece.offset, piece.data)
            self.copied.append(Span(done, done, piece.offset - done))
            done = piece.offset + len(piece.data)
        self.copied.append(Span(done, done, self.source.nbytes - done))

    def _write_laid_out(self, records: Records, changed: Mapping[int, bytes]) -> None:
        entries = records.directory.entries
        if sum(entry.stored_nbytes for entry in entries) > self.source.nbytes:
            raise ExportError(
                "the records overlap or run past the end of the file",
                where=self.source.path,
                remedy="the file is damaged: fetch or copy it again",
            )
        others = sum(entry.stored_nbytes for entry in entries if entry.header_offset not in changed)
        self.progress.start("copying", others)
        rows = [
            plain_record(entry.name, changed[entry.header_offset], has_crc=bool(entry.crc))
            if entry.header_offset in changed
            else Record(
                entry.name, entry.nbytes, entry.stored_nbytes, partial(self._copy_record, entry), entry.method
            )
            for entry in entries
        ]
        write_zip(rows, storage_alignment(self.source, records), partial(write_bytes, self.target))

    def _copy_record(self, entry: ZipEntry) -> int:
        """Copy the contents of a record to the target's position; return their checksum as it was told."""
        pos = os.lseek(self.target, 0, os.SEEK_CUR)
        span = Span(payload_offset(self.source, entry), pos, entry.stored_nbytes)
        self.source.copy_to(self.target, span.offset, span.nbytes, self.progress)
        self.copied.append(span)
        return entry.crc

"""Whether bytes that were copied are the same in both files: all of them, or samples from all over them.

Nobody needs the whole of a large copy read again after the kernel has copied it: that would cost more than
the copy did. But a copy whose bytes landed in the wrong place shows at any place that is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from inspector.containers.legacy import read_layout
from inspector.containers.source import FileSource, Source
from inspector.containers.zip.directory import ZipEntry, payload_offsets
from inspector.containers.zip.records import records_of
from inspector.containers.zip.storages import find_pickle
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.progress import Progress

SAMPLE_NBYTES = 32 << 20
"""How much of a large copy is compared by default; what is smaller than this is compared whole."""
_STEP_NBYTES = 1 << 20
_ZIP = b"PK\x03\x04"
_WINDOW_NBYTES = 1 << 17

Read = Callable[[int, int], bytes]
"""Reads bytes of a file, by offset and length."""


class Span(NamedTuple):
    """Bytes of one file that stand in another, too: where in each, and how many."""

    offset: int
    copy_offset: int
    nbytes: int


def total_nbytes(spans: Iterable[Span]) -> int:
    """Return how many bytes spans hold together."""
    return sum(span.nbytes for span in spans)


def sample_spans(spans: list[Span], most_nbytes: int) -> list[Span]:
    """Return spans as they are if they hold no more than that, else so many bytes from all over them.

    The first and last bytes of all are among them, and windows at even distances between.
    """
    total = total_nbytes(spans)
    if total <= most_nbytes:
        return spans
    count = max(most_nbytes // _WINDOW_NBYTES, 2)
    starts = [(total - _WINDOW_NBYTES) * number // (count - 1) for number in range(count)]
    return list(_cut(spans, starts))


def end_spans(span: Span, most_nbytes: int) -> list[Span]:
    """Return the first and the last bytes of a span, at most so many of each."""
    nbytes = min(span.nbytes, most_nbytes)
    return [
        Span(span.offset + skipped, span.copy_offset + skipped, nbytes)
        for skipped in sorted({0, span.nbytes - nbytes})
    ]


def _cut(spans: list[Span], starts: list[int]) -> Iterator[Span]:
    """Cut out the window at each start, counted in bytes of all spans, which come in the same order."""
    wanted = iter(starts)
    start = next(wanted, None)
    passed = 0
    for span in spans:
        while start is not None and start < passed + span.nbytes:
            skipped = start - passed
            nbytes = min(_WINDOW_NBYTES, span.nbytes - skipped)
            yield Span(span.offset + skipped, span.copy_offset + skipped, nbytes)
            start = next(wanted, None)
        passed += span.nbytes


def find_difference(read: Read, read_copy: Read, spans: Iterable[Span], progress: Progress) -> Span | None:
    """Compare spans byte by byte; return the first step of at most 1 MB that differs, or None."""
    for span in spans:
        for done in range(0, span.nbytes, _STEP_NBYTES):
            step = Span(span.offset + done, span.copy_offset + done, min(_STEP_NBYTES, span.nbytes - done))
            if read(step.offset, step.nbytes) != read_copy(step.copy_offset, step.nbytes):
                return step
            progress.advance(step.nbytes)
    return None


# --- what has to be the same in two files: all but the pickles of their objects -----------------------------


def legacy_spans(source: Source, copy: Source, progress: Progress) -> list[Span]:
    """Pair everything but the object's pickle of two legacy files."""
    one, other = (read_layout(file, DEFAULT_LIMITS, progress) for file in (source, copy))
    copy.measure()
    rest = copy.nbytes - other.object_end
    if source.reaches(one.object_end + rest + 1) or not source.reaches(one.object_end + rest):
        raise ExportError("the files differ in length after their pickles")
    if one.object_start != other.object_start:
        raise ExportError("the files differ in length before their pickles")
    return [Span(0, 0, one.object_start), Span(one.object_end, other.object_end, rest)]


def whole_spans(source: Source, copy: Source, _progress: Progress) -> list[Span]:
    """Pair all bytes of two files of a format of which nothing is written but exact copies."""
    for file in (source, copy):
        file.measure()
    if source.nbytes != copy.nbytes:
        raise ExportError("the files differ in length")
    return [Span(0, 0, source.nbytes)]


def tar_spans(source: Source, copy: Source, progress: Progress) -> list[Span]:
    """Pair the storages and the other members of two tar files."""
    from inspector.containers.tar_archive import STORAGES, read_layout  # noqa: PLC0415 - files of 2017 are rare

    one, other = (read_layout(file, DEFAULT_LIMITS, progress) for file in (source, copy))
    names = one.members.keys() - {STORAGES}
    if names != other.members.keys() - {STORAGES} or one.views != other.views:
        raise ExportError("the members of the two files differ")
    pairs = [(one.members[name], other.members[name]) for name in sorted(names)]
    if any(first.nbytes != second.nbytes for first, second in pairs):
        raise ExportError("the members of the two files differ")
    spans = [Span(first.payload, second.payload, first.nbytes) for first, second in pairs]
    for first, second in zip_longest(one.storages, other.storages):
        if first is None or second is None or (first.key, first.nbytes) != (second.key, second.nbytes):
            raise ExportError("the storages of the two files differ")
        spans.append(Span(first.payload, second.payload, first.nbytes))
    return spans


def zip_spans(source: Source, copy: Source, progress: Progress) -> list[Span]:
    """Pair the contents of all records but the pickle of two archives."""
    rows, prefixes = [], []
    for file in (source, copy):
        records = records_of(file, DEFAULT_LIMITS, progress)
        pickle = find_pickle(records, file.path)
        rows.append([entry for entry in records.directory.entries if entry is not pickle])
        prefixes.append(records.prefix)
    return _paired(source, copy, (rows[0], rows[1]), (prefixes[0], prefixes[1]))


def archive_spans(*pickles: Iterable[str]) -> Callable[[Source, Source, Progress], list[Span]]:
    """Return what pairs the contents of all records of two archives but these, by their full names."""

    def pair(source: Source, copy: Source, progress: Progress) -> list[Span]:
        rows, prefixes = [], []
        for names, file in zip(map(frozenset, pickles), (source, copy), strict=True):
            records = records_of(file, DEFAULT_LIMITS, progress)
            rows.append([entry for entry in records.directory.entries if entry.name not in names])
            prefixes.append(records.prefix)
        return _paired(source, copy, (rows[0], rows[1]), (prefixes[0], prefixes[1]))

    return pair


def pickled_spans(source: Source, copy: Source, progress: Progress) -> list[Span]:
    """Pair everything of two plain pickles but the places of devices, and lengths that depend on those."""
    (one, frames), (other, others) = (_fixed_runs(file, progress) for file in (source, copy))
    if [end - start for start, end in one] != [end - start for start, end in other]:
        raise ExportError("the files differ in length outside of their devices")
    spans = [Span(first[0], second[0], first[1] - first[0]) for first, second in zip(one, other, strict=True)]
    if [_moved(spans, end) for end in frames] != others:
        raise ExportError("the frames of the pickles end elsewhere")
    return spans


def _moved(spans: list[Span], offset: int) -> int | None:
    """Return where a place between instructions is in the copy; None for one that is in none of the spans."""
    return next(
        (
            span.copy_offset + offset - span.offset
            for span in spans
            if span.offset <= offset <= span.offset + span.nbytes
        ),
        None,
    )


def _fixed_runs(source: Source, progress: Progress) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the runs of a plain pickle that no change of devices touches, and where its frames end."""
    from inspector.containers.codings import Within  # noqa: PLC0415 - as above
    from inspector.containers.pickled import open_pickled  # noqa: PLC0415 - plain pickles are rare

    opened = open_pickled(source, DEFAULT_LIMITS, progress)
    changing = [(place, place + 8) for place, _ in opened.frames]
    for nested in opened.files.found:
        place = nested.place
        inside = Within(source, place.offset, nested.nbytes, place.nbytes, place.spelling)
        changing.append((place.offset - place.width, place.offset))
        if inside.read_upto(0, len(_ZIP)) != _ZIP:
            layout = read_layout(inside, DEFAULT_LIMITS, progress)
            changing.append((inside.stored_at(layout.object_start), inside.stored_at(layout.object_end)))
    source.measure()
    runs, done = [], 0
    for start, end in sorted(changing):
        runs.append((done, start))
        done = end
    return [*runs, (done, source.nbytes)], [place + 8 + nbytes for place, nbytes in opened.frames]


def _paired(
    source: Source,
    copy: Source,
    rows: tuple[list[ZipEntry], list[ZipEntry]],
    prefixes: tuple[str, str],
) -> list[Span]:
    one, other = rows
    if [_looks(entry, prefixes[0]) for entry in one] != [_looks(entry, prefixes[1]) for entry in other]:
        raise ExportError("the records of the two archives differ in name, size or checksum")
    headers = [[entry.header_offset for entry in entries] for entries in (one, other)]
    starts = list(payload_offsets(source, headers[0])), list(payload_offsets(copy, headers[1]))
    spans = []
    for entry, start, copy_start in zip(one, *starts, strict=True):
        if start is not None and copy_start is not None:
            spans.append(Span(start, copy_start, entry.stored_nbytes))
        elif start is not copy_start:
            raise ExportError("a record of one archive is not where its directory says")
    return spans


def _looks(entry: ZipEntry, prefix: str) -> tuple[object, ...]:
    return (
        entry.name.removeprefix(prefix),
        entry.nbytes,
        entry.stored_nbytes,
        entry.method,
        entry.crc,
        entry.trouble,
    )


def hash_file(path: str, progress: Progress) -> str:
    """Return the SHA-256 of a file's bytes, as `sha256sum` does."""
    import hashlib  # noqa: PLC0415 - only a receipt needs it

    found = hashlib.sha256()
    with FileSource(path) as file:
        progress.start("hashing", file.nbytes)
        offset = 0
        while data := file.read_upto(offset, _STEP_NBYTES):
            found.update(data)
            offset += len(data)
            progress.advance(len(data))
    return found.hexdigest()

"""A file's devices changed in the file itself, and taken back: some kilobytes are written, whatever its size.

An undo record goes first, so that `undo_patch` gives the file back bit for bit, also after a crash half-way.
The file keeps its name, owner, permissions and links.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import operator
import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import get_args

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.copying import write_bytes, write_over
from inspector.containers.formats import find_format
from inspector.containers.opening import read_container
from inspector.containers.packed import looked_through
from inspector.containers.source import FileSource, Source, read_small
from inspector.errors import CancelledError, CheckpointError, ContainerError, ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.overriding import override
from inspector.progress import Progress
from inspector.quoting import command, file_word
from inspector.records import dataclass
from inspector.remap.files import explained, patched_path, record_path, settle, sync_folder, writing
from inspector.remap.plan import Plan, device_texts, plan_hidden, plan_moves, with_viewed
from inspector.remap.relabel import COPY, Patch, pieces_of
from inspector.remap.rules import Rule, check_destination
from inspector.remap.verify import check_copy
from inspector.safety.verdict import FileVerdict, judge
from inspector.safety.words import words_of


class Overlay(Source):
    """A source with pieces laid over it, cut off at a size."""

    def __init__(self, below: Source, pieces: Sequence[Patch], nbytes: int) -> None:
        super().__init__(below.path, min(nbytes, below.nbytes))
        self._below = below
        self._pieces = pieces

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        data = bytearray(self._below.read_at(offset, nbytes))
        end = offset + len(data)
        first = max(bisect_right(self._pieces, offset, key=attrgetter("offset")) - 1, 0)
        for number in range(first, len(self._pieces)):
            start, piece = self._pieces[number]
            if start >= end:
                break
            low, high = max(start, offset), min(start + len(piece), end)
            if low < high:
                data[low - offset : high - offset] = piece[low - start : high - start]
        return bytes(data)


# ------------------------------------------------------------------------------------------------------------
# The undo record: what stood in a file before it was patched, kept beside it as long as it is wanted.
#
# It is complete on the disk before the first byte of the file changes. So whatever happens then (a crash, a
# power cut), each byte of the file is the old one or the new one, and the record says which places are meant;
# bytes that are neither were written by somebody else, and then nothing is restored over them.
#
# A record may come with its file, so it is as untrusted: it is bounded and has no depth, and
# `inspector.remap.in_place` believes it only as far as it is of a change that this program makes.
# It therefore holds the plan as well.

REMEDY = "if the file is as it should be, delete the record"
_MAGIC = b"checkpoint-inspector undo record 2\n"
_ANY_MAGIC = b"checkpoint-inspector undo record "
_DIGEST_NBYTES = hashlib.sha256().digest_size
_HEAD = struct.Struct("<2Q32s3L")
"""The file's size, time and witness before; how many places and moves there are, how long the JSON is."""
_PLACE = struct.Struct("<3Q")
"""Where, how many bytes stood there, how many do now."""
_MOVE = struct.Struct("<2QL")
"""The first tensor of a run, the one behind its last, and the number of its device, or that it was kept."""
_KEPT = 0xFFFF_FFFF
_MOST_NBYTES = 160 << 20
_MOST_TEXT_NBYTES = 1 << 20
_MOST_PLACES = DEFAULT_LIMITS.storages + 8  # a tar file has one for each storage
_MOST_RUNS = DEFAULT_LIMITS.rows
_MOST_TIME_NS = 1 << 62
_WITNESS_NBYTES = 1 << 16
_PAGE_NBYTES = 1 << 12

Run = tuple[int, int, str]
"""The first tensor, the one behind the last, and where they go; the text is empty where they were kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRecord:
    """What a patch replaces, and the plan that it carries out.

    Attributes:
        witness: A hash of the file's beginning and end as they were, by which the file is known again.
        after: What is written, by its place; the last may stand behind the end.
    """

    nbytes: int
    mtime_ns: int
    witness: bytes
    before: tuple[Patch, ...]
    after: tuple[Patch, ...]
    rules: tuple[tuple[str, str], ...]
    runs: tuple[Run, ...]
    hidden: tuple[tuple[int, str], ...] = ()

    @property
    def nbytes_after(self) -> int:
        """The file's size when the patch is complete."""
        return max([self.nbytes, *(piece.offset + len(piece.data) for piece in self.after[-1:])])


def make_record(source: Source, pieces: Iterable[Patch], plan: Plan, mtime_ns: int) -> UndoRecord:
    """Note what stands where pieces are to be written."""
    after = tuple(sorted(pieces))
    over = [piece for piece in after if piece.offset < source.nbytes]
    moves = {**dict.fromkeys(plan.kept, ""), **plan.tensors}
    return UndoRecord(
        nbytes=source.nbytes,
        mtime_ns=min(max(mtime_ns, 0), _MOST_TIME_NS),
        witness=_witness(source),
        before=tuple(Patch(piece.offset, source.read(piece.offset, len(piece.data))) for piece in over),
        after=after,
        rules=tuple((rule.device, rule.to) for rule in plan.rules if rule.device is not None),
        runs=tuple(_runs(moves)),
        hidden=tuple(plan.hidden.items()),
    )


def _runs(moves: dict[int, str]) -> Iterator[Run]:
    start = end = 0
    device = None
    for index in sorted(moves):
        if device is None or index != end or moves[index] != device:
            if device is not None:
                yield start, end, device
            start, device = index, moves[index]
        end = index + 1
    if device is not None:
        yield start, end, device


def format_undo(record: UndoRecord) -> bytes:
    """Return a record's bytes."""
    devices = list(dict.fromkeys(device for _, _, device in record.runs if device))
    told = {"rules": record.rules, "devices": devices} | ({"hidden": record.hidden} if record.hidden else {})
    texts = json.dumps(told).encode()
    numbers = {device: number for number, device in enumerate(devices)} | {"": _KEPT}
    lengths = {piece.offset: len(piece.data) for piece in record.before}
    parts = [
        _HEAD.pack(
            record.nbytes,
            record.mtime_ns,
            record.witness,
            len(record.after),
            len(record.runs),
            len(texts),
        ),
        *(_PLACE.pack(at, lengths.get(at, 0), len(data)) for at, data in record.after),
        *(_MOVE.pack(start, end, numbers[device]) for start, end, device in record.runs),
        texts,
        *(piece.data for piece in record.before + record.after),
    ]
    body = b"".join(parts)
    if len(body) + len(_MAGIC) + _DIGEST_NBYTES > _MOST_NBYTES or len(texts) > _MOST_TEXT_NBYTES:
        raise ExportError("the undo record would be too large", remedy="write a copy instead, with -o")
    return _MAGIC + hashlib.sha256(body).digest() + body


def read_undo(path: Path) -> UndoRecord:
    """Read an undo record."""
    if path.is_symlink():
        raise ExportError("the undo record is a link to another place", where=str(path), remedy=REMEDY)
    try:
        data = read_small(path, _MOST_NBYTES)
    except ContainerError as error:
        raise ExportError(f"no undo record can be read: {error.what}", where=str(path)) from error
    if data.startswith(_ANY_MAGIC) and not data.startswith(_MAGIC):
        what = "the undo record was written by another version of this program"
        raise ExportError(what, where=str(path), remedy="undo the change with that version")
    try:
        return _parse(data)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, struct.error) as error:
        raise ExportError("the undo record is damaged", where=str(path), remedy=REMEDY) from error


def _parse(data: bytes) -> UndoRecord:
    pos = len(_MAGIC) + _DIGEST_NBYTES
    if not data.startswith(_MAGIC) or hashlib.sha256(data[pos:]).digest() != data[len(_MAGIC) : pos]:
        raise ValueError("not the bytes that were written")
    nbytes, mtime_ns, witness, place_count, run_count, text_nbytes = _HEAD.unpack_from(data, pos)
    pos += _HEAD.size
    tables = place_count * _PLACE.size + run_count * _MOVE.size + text_nbytes
    if max(place_count - _MOST_PLACES, run_count - _MOST_RUNS, text_nbytes - _MOST_TEXT_NBYTES) > 0:
        raise ValueError("it holds more than any change makes")
    if pos + tables > len(data) or mtime_ns > _MOST_TIME_NS:
        raise ValueError("it is shorter than it says")
    places = [_PLACE.unpack_from(data, pos + number * _PLACE.size) for number in range(place_count)]
    pos += place_count * _PLACE.size
    moves = [_MOVE.unpack_from(data, pos + number * _MOVE.size) for number in range(run_count)]
    pos += run_count * _MOVE.size
    rules, devices, hidden = _texts(json.loads(data[pos : pos + text_nbytes]))
    before, after = _pieces(data[pos + text_nbytes :], places, nbytes)
    return UndoRecord(
        nbytes=nbytes,
        mtime_ns=mtime_ns,
        witness=witness,
        before=before,
        after=after,
        rules=rules,
        runs=tuple((start, end, "" if to == _KEPT else devices[to]) for start, end, to in moves),
        hidden=hidden,
    )


def _texts(found: object) -> tuple[tuple[tuple[str, str], ...], list[str], tuple[tuple[int, str], ...]]:
    if not isinstance(found, dict):
        raise TypeError("no mapping")
    rules = tuple((_text(device), _text(to)) for device, to in found["rules"])
    hidden = tuple((operator.index(place), _text(to)) for place, to in found.get("hidden", ()))
    return rules, [_text(device) for device in found["devices"]], hidden


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError("no text")
    return found


def _pieces(
    data: bytes, places: list[tuple[int, int, int]], nbytes: int
) -> tuple[tuple[Patch, ...], tuple[Patch, ...]]:
    """Take the old and the new bytes apart: in order, apart from each other, over the file or at its end."""
    for (start, _, after), (following, _, _) in pairwise(places):
        if start + after > following:
            raise ValueError("two places overlap")
    for start, before, after in places:
        is_over = before == after and start + after <= nbytes
        is_behind = before == 0 and start == nbytes
        if after == 0 or not (is_over or is_behind):
            raise ValueError("a place is not in the file")
    if sum(before + after for _, before, after in places) != len(data):
        raise ValueError("not as many bytes as it says")
    spans = [(start, before) for start, before, _ in places if before]
    spans += [(start, after) for start, _, after in places]
    pieces, pos = [], 0
    for start, length in spans:
        pieces.append(Patch(start, data[pos : pos + length]))
        pos += length
    count = len(spans) - len(places)
    return tuple(pieces[:count]), tuple(pieces[count:])


def refuse_stranger(source: Source, record: UndoRecord) -> None:
    """Refuse to restore a file that is not the one patched, or that was changed by somebody since."""
    known = record.nbytes <= source.nbytes <= record.nbytes_after
    with Overlay(source, record.before, record.nbytes) as before_it:
        known = known and _witness(before_it) == record.witness
    if not known:
        raise ExportError(
            "the undo record belongs to another file, or this one was changed since",
            where=source.path,
            remedy=REMEDY,
        )
    old = {piece.offset: piece.data for piece in record.before}
    for start, new in record.after:
        now = source.read_upto(start, len(new))
        # What is appended stands behind the end: until it is written there is nothing, or zeros.
        before = old.get(start, bytes(len(now)))
        if not _is_mixture(now, before, new[: len(now)]):
            raise ExportError("the file was changed since it was patched", where=source.path, remedy=REMEDY)


def _is_mixture(now: bytes, before: bytes, after: bytes) -> bool:
    """Return whether each byte is the old or the new one: a write that broke off leaves both."""
    for start in range(0, len(now), _PAGE_NBYTES):
        page, old, new = (data[start : start + _PAGE_NBYTES] for data in (now, before, after))
        if page not in {old, new} and _differing(page, old) & _differing(page, new):
            return False
    return True


def _differing(one: bytes, other: bytes) -> int:
    """Return a number whose byte has its highest bit set wherever the two differ; no loop looks at each."""
    low = int.from_bytes(b"\x7f" * len(one), "little")
    bits = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return (((bits & low) + low) | bits) & ~low


def _witness(source: Source) -> bytes:
    found = hashlib.sha256(source.read_upto(0, _WITNESS_NBYTES))
    found.update(source.read_upto(max(source.nbytes - _WITNESS_NBYTES, 0), _WITNESS_NBYTES))
    return found.digest()


def restore(fd: int, record: UndoRecord) -> None:
    """Put the old bytes back where they stood, and wait until the disk has them."""
    for piece in record.before:
        write_over(fd, piece.offset, piece.data)
    os.ftruncate(fd, record.nbytes)
    os.fsync(fd)


# ------------------------------------------------------------------------------------------------------------
# Whether an undo record tells of a change that this program makes, and what the file would be then.
#
# A record lies beside a file and may come from where the file comes from. So nothing of it is trusted: the
# file as it would be is read like any other, the change is worked out again from the devices that the record
# names, and what would be written must be what the record says, byte for byte. What is given back then
# differs from what is there by the devices alone; whatever else is in it was in the file before.

_VERDICTS: tuple[FileVerdict, ...] = get_args(FileVerdict)  # the best first
_MOST_QUESTIONS = 10_000_000
"""How often a rule may be asked about a device: some seconds."""


def _anyhow(path: str) -> str:
    return f"if you made the change yourself, use: {command('remap', file_word(path), '--undo', '--force')}"


def refuse_foreign(source: Source, record: UndoRecord, progress: Progress) -> None:
    """Refuse a record that would do anything but take a change of devices back."""
    with collector_paused(), Overlay(source, record.before, record.nbytes) as old:
        try:
            container, checkpoint = _read(old, progress)
            plan = with_viewed(_plan_of(record, checkpoint), container.storage_ids.values())
            pieces = pieces_of(container, old, plan, progress)
        except CancelledError:
            raise
        except CheckpointError as error:
            what = f"the undo record is of no change that this program makes: {error.what}"
            raise ExportError(what, where=source.path, remedy=_anyhow(source.path)) from error
    if tuple(sorted(pieces)) != record.after:
        what = "the undo record is of no change that this program makes"
        raise ExportError(what, where=source.path, remedy=_anyhow(source.path))
    del container
    _refuse_worse(source.path, judge(checkpoint).verdict, progress)


def _read(source: Source, progress: Progress) -> tuple[Container, Checkpoint]:
    limits = DEFAULT_LIMITS.started()
    form = find_format(source, limits, progress)
    form.check(source)
    container = form.read(source, limits, progress)
    return container, build_checkpoint(container, limits, progress)


def _plan_of(record: UndoRecord, checkpoint: Checkpoint) -> Plan:
    count = len(checkpoint.tensors)
    moves: dict[int, str] = {}
    kept: list[int] = []
    last = 0
    for start, end, device in record.runs:
        if not last <= start < end <= count:
            raise PlanError("it moves tensors that are not there")
        last = end
        if device:
            moves |= dict.fromkeys(range(start, end), check_destination(device))
        else:
            kept += range(start, end)
    asked = len(record.rules) * (len(device_texts(checkpoint)) + checkpoint.needs.calls_made)
    if asked > _MOST_QUESTIONS:
        raise PlanError("it has too many rules")
    rules = [Rule(device=device, to=check_destination(to)) for device, to in record.rules]
    plan = plan_moves(checkpoint, rules or [Rule(role="", to="cpu")], moves, kept)
    return plan_hidden(checkpoint, plan, {index: check_destination(to) for index, to in record.hidden})


def _refuse_worse(path: str, will_be: FileVerdict, progress: Progress) -> None:
    """Refuse to make a file worse than it is; what a broken-off change made unreadable harms nobody yet."""
    try:
        now = judge(open_checkpoint(path, progress=progress)).verdict
    except CancelledError:
        raise
    except CheckpointError:
        now = _VERDICTS[0]
    if _VERDICTS.index(will_be) > _VERDICTS.index(now):
        what = f"the undo record gives back a worse file than the present one, {words_of(will_be)}"
        raise ExportError(what, where=path, remedy=_anyhow(path))


# --- the change and its undoing -----------------------------------------------------------------------------

_FILE = "the file cannot be changed"
_RECORD = "the undo record cannot be written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """A file that was changed."""

    path: Path
    record: Path | None
    nbytes: int
    written_nbytes: int
    appended: bool
    moved_tensors: int
    moved_hidden: int = 0
    kept_tensors: int
    verified: bool


def patch_in_place(
    path: str, plan: Plan, *, force: bool = False, verify: bool = True, progress: Progress | None = None
) -> Patched:
    """Change the devices in a file as a plan says that was made from it.

    Args:
        path: The file; of a link, what it points to.
        force: Change it even if it is write-protected or has other names (hard links), which change with it.
        verify: Open it again and compare; if it is not as planned it is restored.
    """
    progress = progress or Progress()
    record_at = record_path(Path(path))
    _refuse_patched(path, record_at)
    with _opened(path, force=force) as (fd, file), looked_through(file) as source:
        status = os.fstat(fd)
        with collector_paused():
            container = read_container(source, DEFAULT_LIMITS, progress)
            plan = with_viewed(plan, container.storage_ids.values())
            pieces = pieces_of(container, source, plan, progress)
        if pieces:
            record = make_record(source, pieces, plan, status.st_mtime_ns)
            source.refuse_changed("read")
            _write_record(record, record_at, status)
            with _restored_on_failure(fd, record, record_at), explained(Path(path), _FILE):
                _write(fd, pieces)
                if verify:
                    progress.start("checking the file")
                    _read_again(fd, path, pieces)
                    _verify(container, path, plan, progress)
        return Patched(
            path=Path(path),
            record=record_at if pieces else None,
            nbytes=os.fstat(fd).st_size,
            written_nbytes=sum(len(piece.data) for piece in pieces),
            appended=any(piece.offset >= status.st_size for piece in pieces),
            moved_tensors=len(plan.tensors) if pieces else 0,
            moved_hidden=len(plan.hidden) if pieces else 0,
            kept_tensors=len(plan.kept),
            verified=verify and bool(pieces),
        )


def undo_patch(path: str, *, force: bool = False, progress: Progress | None = None) -> int:
    """Restore a file that was patched, bit for bit, and remove its undo record; return its size.

    Args:
        path: The file; of a link, what it points to.
        force: Restore it even if it is write-protected or has other names, and whatever the record makes of
            it: records come with files, and are believed only as far as they take a change of devices back.
    """
    record_at = record_path(Path(path))
    if not os.path.lexists(record_at):
        raise ExportError("there is nothing to undo: the file has no undo record", where=str(record_at))
    with _opened(path, force=force) as (fd, source), source:
        record = read_undo(record_at)
        refuse_stranger(source, record)
        if not force:
            refuse_foreign(source, record, progress or Progress())
        source.refuse_changed("read")
        with explained(Path(path), _FILE):
            _give_back(fd, record, record_at)
    return record.nbytes


# --- what is written ----------------------------------------------------------------------------------------


def _write(fd: int, pieces: tuple[Patch, ...]) -> None:
    for piece in pieces:
        write_over(fd, piece.offset, piece.data)
    settle(fd)


def _read_again(fd: int, path: str, pieces: tuple[Patch, ...]) -> None:
    for piece in pieces:
        os.lseek(fd, piece.offset, os.SEEK_SET)
        if os.read(fd, len(piece.data)) != piece.data:
            raise ExportError(
                "the file does not hold what was written, and was restored",
                where=f"{path}: byte {piece.offset:,}",
                remedy="see whether the disk is sound",
            )


def _verify(container: Container, path: str, plan: Plan, progress: Progress) -> None:
    _, difference = check_copy(container, path, plan, progress, "the file")
    if difference:
        raise ExportError(f"the file is not as planned, and was restored: {difference}", where=path)


def _write_record(record: UndoRecord, record_at: Path, like: os.stat_result) -> None:
    """Have the record complete on the disk before anything changes."""
    try:
        with writing(record_at, like=like, overwrite=False, what=_RECORD) as out:
            write_bytes(out.fd, format_undo(record))
    except ExportError:  # it did not come to stand there
        raise
    except BaseException:  # a second Ctrl+C just then
        record_at.unlink(missing_ok=True)
        raise


# --- who may, and what if it fails --------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: str, *, force: bool) -> Iterator[tuple[int, FileSource]]:
    """Open a file for changing it, alone; yield its descriptor, and what reads it, which is to be closed."""
    if os.path.isdir(path):  # noqa: PTH112 - a text, as it was given
        raise ExportError("a folder cannot be changed in place", where=path, remedy=COPY)
    with explained(Path(path), _FILE):
        fd = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        _lock(fd, path)
        status = os.fstat(fd)
        if not status.st_mode & 0o222 and not force:  # root may write it all the same
            raise ExportError("the file is write-protected", where=path, remedy="use --force")
        if status.st_nlink > 1 and not force:
            raise ExportError(
                f"the file has {status.st_nlink} hard links, and would change under each of them",
                where=path,
                remedy=f"{COPY}, or use --force",
            )
        yield fd, FileSource(path, os.dup(fd))
    finally:
        os.close(fd)


def _lock(fd: int, path: str) -> None:
    """Keep a second run of this program out, where the system has locks that end with the process."""
    try:
        import fcntl  # noqa: PLC0415 - exists on Unix only
    except ImportError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ExportError(
            "another process of this program is changing the file", where=path, remedy="wait until it is done"
        ) from error
    except OSError:  # a file system without locks
        return


def _undo(path: str) -> str:
    return command("remap", file_word(path), "--undo")


def _refuse_patched(path: str, record_at: Path) -> None:
    if os.path.lexists(record_at):
        raise ExportError(
            "the file was changed before, and its undo record is still there",
            where=str(record_at),
            remedy=f"take that back with: {_undo(path)}; or delete the record if the file is as it should be",
        )


@contextlib.contextmanager
def _restored_on_failure(fd: int, record: UndoRecord, record_at: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as failure:
        try:
            _give_back(fd, record, record_at)
        except OSError as error:
            raise ExportError(
                f"{failure}; the file could not be restored: {error.strerror}",
                where=str(record_at),
                remedy=f"once it can be written, restore it with: {_undo(str(patched_path(record_at)))}",
            ) from failure
        raise


def _give_back(fd: int, record: UndoRecord, record_at: Path) -> None:
    restore(fd, record)
    with contextlib.suppress(OSError):  # a convenience for those who look at times
        os.utime(patched_path(record_at), ns=(os.fstat(fd).st_atime_ns, record.mtime_ns))
    record_at.unlink()
    with contextlib.suppress(OSError):
        sync_folder(record_at.parent)

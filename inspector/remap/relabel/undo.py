"""The undo record: what stood in a file before it was patched, kept beside it as long as it is wanted.

It is complete on the disk before the first byte of the file changes. So whatever happens then (a crash, a
power cut), each byte of the file is the old one or the new one, and the record says which places are meant;
bytes that are neither were written by somebody else, and then nothing is restored over them.

A record may come with its file, so it is as untrusted: it is bounded and has no depth, and
`inspector.remap.relabel.undo_check` believes it only as far as it is of a change that this program makes. It
therefore holds the plan as well.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
import struct
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from inspector.containers.copying import write_over
from inspector.containers.source import Source, read_small
from inspector.errors import ContainerError, ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.records import dataclass
from inspector.remap.plan import Plan
from inspector.remap.relabel.overlay import Overlay
from inspector.remap.relabel.patches import Patch

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
        nbytes: The file's size before.
        mtime_ns: When the file had been changed last, in nanoseconds.
        witness: A hash of the file's beginning and end as they were, by which the file is known again.
        before: The bytes that are written over, by their place.
        after: What is written, by its place; the last may stand behind the end.
        rules: The rules for devices alone, as (device, destination).
        runs: Where the tensors go.
        hidden: Where the devices outside of tensors go, by their index.
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
    """Hash the first and last bytes of a file."""
    found = hashlib.sha256(source.read_upto(0, _WITNESS_NBYTES))
    found.update(source.read_upto(max(source.nbytes - _WITNESS_NBYTES, 0), _WITNESS_NBYTES))
    return found.digest()


def restore(fd: int, record: UndoRecord) -> None:
    """Put the old bytes back where they stood, and wait until the disk has them."""
    for piece in record.before:
        write_over(fd, piece.offset, piece.data)
    os.ftruncate(fd, record.nbytes)
    os.fsync(fd)

"""What two checkpoints hold besides the tensors and values of rows: records of archives, and other storages.

Two archives can hold the same weights and compute different things: code, graphs and compiled libraries stand
in records of their own. Storages that no tensor shows are loaded like all others.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from inspector.containers.container import Extent
from inspector.containers.extents import record_extents
from inspector.containers.formats import format_of
from inspector.containers.storage_reader import ExtentReader
from inspector.containers.zip.directory import read_directory
from inspector.containers.zip.kinds import PICKLE, Records
from inspector.diff.records import Pair, RecordChange, TensorChange
from inspector.diff.side import Side
from inspector.errors import CancelledError, CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.checkpoint import Storage
from inspector.progress import Progress
from inspector.tuples import NamedTuple
from inspector.units import cut_text, escape_text, format_nbytes

_DESCRIBING = frozenset(
    {"version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id"}
)
"""Records that say how the archive itself was written: other ones are no other checkpoint."""
_MOST_NBYTES = 1 << 30
_STEP_NBYTES = 1 << 20
_MOST_CHARS = 80
_UNREAD = b"unread"


class Rest(NamedTuple):
    """What became of what no row shows.

    Attributes:
        changed: Records and storages that differ.
        uncompared: What was not compared, or does not count, in words.
    """

    changed: tuple[RecordChange, ...] = ()
    uncompared: tuple[str, ...] = ()


# --- records of archives ------------------------------------------------------------------------------------


def compare_records(a: Side, b: Side, progress: Progress) -> Rest:
    """Compare all records of two archives of one format but those of storages and of pickles with rows.

    Raises:
        CancelledError: The work was cancelled.
    """
    if a.checkpoint.format != b.checkpoint.format or not format_of(a.checkpoint.format).is_archive:
        return Rest()
    progress.start("comparing records")
    try:
        one, other = _records(a, progress), _records(b, progress)
    except CancelledError:
        raise
    except CheckpointError as error:  # what is whole of a damaged one was read without its directory
        return Rest((), (f"the records: {error.what}",))
    readers = ExtentReader(a.source), ExtentReader(b.source)
    found, unread = [], []
    left = _MOST_NBYTES
    for name in dict.fromkeys((*one, *other)):
        progress.advance(0)
        if name not in other or name not in one:
            found.append(RecordChange(name, "removed" if name in one else "added"))
            continue
        pair = one[name], other[name]
        if _stand_alike((a, b), pair):
            continue
        left -= pair[0].nbytes
        if left < 0:
            unread.append(f"the record {_shown(name)}, which is too large")
        elif not _hold_the_same(readers, pair, progress):
            found.append(RecordChange(name, "changed"))
    describing = [change.name for change in found if change.name in _DESCRIBING]
    if describing:
        unread.append(f"what the archives say of themselves ({', '.join(describing)})")
    return Rest(tuple(one for one in found if one.name not in _DESCRIBING), tuple(unread))


def _records(side: Side, progress: Progress) -> dict[str, Extent]:
    """Return the records that hold no storage and no pickle with rows, by their names in the folder of all."""
    container = side.container
    directory = read_directory(side.source, DEFAULT_LIMITS, progress)
    records = Records(directory)
    pickles = {pickle.name for pickle in container.pickles}
    if container.stream is not None and (entry := records.get(PICKLE)) is not None:
        pickles.add(entry.name)
    find = format_of(container.format).storage_extents(side.source)
    extents = (find(key) for key in container.stored)
    starts = sorted(extent.offset for extent in extents if extent is not None)
    found: dict[str, Extent] = {}
    entries = [entry for entry in directory.entries if entry.name not in pickles]
    for name, extent in record_extents(side.source, entries).items():
        near = bisect_right(starts, extent.offset + max(extent.stored_nbytes, 1) - 1)
        if not near or starts[near - 1] < extent.offset:
            found[name.removeprefix(records.prefix)] = extent
    return found


def _stand_alike(sides: tuple[Side, Side], pair: tuple[Extent, Extent]) -> bool:
    """Return whether two records are the same as they stand in the files, packed or not."""
    one, other = pair
    if (one.method, one.stored_nbytes, one.nbytes) != (other.method, other.stored_nbytes, other.nbytes):
        return False
    steps = range(0, one.stored_nbytes, _STEP_NBYTES)
    return all(
        sides[0].source.read_upto(one.offset + step, min(_STEP_NBYTES, one.stored_nbytes - step))
        == sides[1].source.read_upto(other.offset + step, min(_STEP_NBYTES, one.stored_nbytes - step))
        for step in steps
    )


def _hold_the_same(
    readers: tuple[ExtentReader, ExtentReader], pair: tuple[Extent, Extent], progress: Progress
) -> bool:
    if pair[0].nbytes != pair[1].nbytes:
        return False
    try:
        digests = [
            _digest(reader.contents(extent), progress) for reader, extent in zip(readers, pair, strict=True)
        ]
    except CancelledError:
        raise
    except CheckpointError:  # damaged, and not in the same way
        return False
    return digests[0] == digests[1]


# --- storages -----------------------------------------------------------------------------------------------


class StorageDigests:
    """Digests the bytes of the storages of one side, each once."""

    def __init__(self, side: Side, progress: Progress) -> None:
        """Begin with none."""
        self._side = side
        self._progress = progress
        self._known: dict[str, bytes] = {}

    def of(self, key: str) -> bytes:
        """Return the digest of a storage.

        Raises:
            CancelledError: The work was cancelled.
        """
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(key)
        return found

    def _read(self, key: str) -> bytes:
        reader = self._side.reader
        try:
            return _digest(reader.steps(key, 0, reader.nbytes(key), self._progress), self._progress)
        except CancelledError:
            raise
        except CheckpointError:
            return _UNREAD


def compare_storages(
    a: Side,
    b: Side,
    pairs: Iterable[Pair],
    changes: Iterable[TensorChange],
    digests: tuple[StorageDigests, StorageDigests],
) -> Rest:
    """Compare the bytes of storages that no tensor shows.

    Args:
        a: The first file.
        b: The second.
        pairs: The tensors of both.
        changes: Those that differ: no more is said of their storages.
        digests: What digests the storages of each.
    """
    if a.is_swapped != b.is_swapped:
        unseen = [*_unseen(a), *_unseen(b), *_partly(a), *_partly(b)]
        words = (f"storages that no tensor shows whole ({len(unseen):,})",) if unseen else ()
        return Rest((), words)
    found = list(_alone(a, b, digests))
    rows, others = a.checkpoint.tensors, b.checkpoint.tensors
    known = {rows[change.pair.a].storage for change in changes if not _SAID.issuperset(change.what)}
    partners = {rows[pair.a].storage: others[pair.b].storage for pair in pairs}
    one, other = _partly(a), _partly(b)
    unread = []
    for key, partner in partners.items():
        if key is None or partner is None or key in known or not (key in one or partner in other):
            continue
        sizes = a.reader.nbytes(key), b.reader.nbytes(partner)
        name = f"bytes of storage {_shown(key)} that no tensor shows"
        if sizes[0] != sizes[1]:
            unread.append(f"{name} ({format_nbytes(sizes[0])} here, {format_nbytes(sizes[1])} there)")
        elif digests[0].of(key) != digests[1].of(partner):
            found.append(RecordChange(name, "changed"))
    return Rest(tuple(found), tuple(unread))


_SAID = frozenset({"key", "device", "stride", "requires_grad", "role", "class", "metadata"})
"""What differs in tensors and says nothing of their bytes."""


def _alone(a: Side, b: Side, digests: tuple[StorageDigests, StorageDigests]) -> Iterator[RecordChange]:
    """Yield the storages without any tensor that the other file does not have, by their bytes."""
    one, other = (
        [(row, (row.dtype, row.nbytes, digest.of(row.key))) for row in _unseen(side)]
        for side, digest in zip((a, b), digests, strict=True)
    )
    for rows, others, what in ((one, other, "removed"), (other, one, "added")):
        left = Counter(content for _, content in others)
        for row, content in rows:
            left[content] -= 1
            if left[content] < 0:
                yield RecordChange(f"storage {_shown(row.key)}", what)


def _unseen(side: Side) -> list[Storage]:
    """Return the storages that no row of a tensor shows; those that views of others stand for are shown."""
    ids = side.container.storage_ids
    viewed = {one.key for key, one in ids.items() if one.view is not None and one.view[0] == key != one.key}
    return [
        row
        for row in side.checkpoint.storages
        if not row.tensors and not row.missing and row.key not in viewed and row.nbytes
    ]


def _partly(side: Side) -> Mapping[str, Storage]:
    return {
        row.key: row for row in side.checkpoint.storages if row.tensors and row.viewed_nbytes < row.nbytes
    }


def _digest(blocks: Iterable[bytes], progress: Progress) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for block in blocks:
        progress.advance(0)
        found.update(block)
    return found.digest()


def _shown(name: str) -> str:
    return escape_text(cut_text(name, _MOST_CHARS))

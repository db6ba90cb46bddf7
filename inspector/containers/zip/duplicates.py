"""Several records that pass for the pickle: which of them is read differs, so all of them are looked at.

miniz compares names without case and takes whichever of equals its search hits on, Python's zipfile takes the
last one, and a library in C ends a name at a NUL. Where readers find different directories, each of them may
lead to a pickle of its own. Scanners have been fooled with each of these. What is shown is one record; what
any of them would import and call is part of the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from inspector.containers.source import Source
from inspector.containers.zip.directory import CENTRAL, CENTRAL_SIGNATURE, ZipEntry
from inspector.containers.zip.end import directories_elsewhere
from inspector.errors import CancelledError, CheckpointError
from inspector.pickles.oddities import Oddity, OddityKind

_MOST_READ = 8
_MOST_RECORDS = 10_000
_MOST_NBYTES = 1 << 22
_PICKLE = "/data.pkl"


def read_rivals(
    pickle: ZipEntry, others: Iterable[ZipEntry], read: Callable[[ZipEntry], object]
) -> tuple[Oddity, ...]:
    """Read the rivals of the pickle, and return what is odd about that; nothing where there are none.

    Args:
        pickle: The record of the pickle.
        others: The records that pass for it; it may be among them.
        read: Reads the pickle in any of them, and keeps it among the programs of the file.
    """
    rivals = [entry for entry in others if entry[:7] != pickle[:7]]
    if not rivals:
        return ()
    oddities = [Oddity(OddityKind.RIVAL_RECORD, 0)]
    for entry in rivals[:_MOST_READ]:
        try:
            read(entry)
        except CancelledError:
            raise
        except CheckpointError as error:
            oddities.append(Oddity(OddityKind.UNREAD_RIVAL, 0, (str(error),)))
    if len(rivals) > _MOST_READ:
        counts = str(_MOST_READ), f"{len(rivals):,}"
        oddities.append(Oddity(OddityKind.UNREAD_RIVALS, 0, counts))
    return tuple(oddities)


def namesakes(pickle: ZipEntry, entries: Iterable[ZipEntry]) -> Iterator[ZipEntry]:
    """Yield the records of one directory that pass for the pickle, itself among them."""
    wanted = pickle.name.lower()
    return (entry for entry in entries if entry.name.partition("\0")[0].lower() == wanted)


def pickles_elsewhere(source: Source) -> Iterator[ZipEntry]:
    """Yield the records that pass for the pickle in the directories that other readers find."""
    met: set[ZipEntry] = set()
    for start, nbytes, moved in directories_elsewhere(source):
        for entry in _entries_at(source.read_upto(start, min(nbytes, _MOST_NBYTES)), start, moved):
            is_pickle = ("/" + entry.name.partition("\0")[0].lower()).endswith(_PICKLE)
            if is_pickle and entry not in met:
                met.add(entry)
                yield entry


def _entries_at(data: bytes, start: int, moved: int) -> Iterator[ZipEntry]:
    """Yield the first records of a directory, whatever miniz would say to them."""
    pos = 0
    for _ in range(_MOST_RECORDS):
        if len(data) < pos + CENTRAL.size or not data.startswith(CENTRAL_SIGNATURE, pos):
            return
        fields = CENTRAL.unpack_from(data, pos)
        flags, method, crc, packed, nbytes, name_n, extra_n, comment_n = (*fields[3:5], *fields[7:13])
        name = data[pos + CENTRAL.size : pos + CENTRAL.size + name_n].decode("utf-8", "surrogateescape")
        yield ZipEntry(name, fields[-1] + moved, nbytes, packed, method, crc, flags, start + pos)
        pos += CENTRAL.size + name_n + extra_n + comment_n

"""Entries of a zip's directory that are all alike, read many at once and kept in columns.

A checkpoint of a million tensors has as many records, whose entries differ in the key of the storage, place,
size and checksum. In columns they take a tenth of the memory. Nothing but what torch writes to the last byte
is taken so; the directory reads all else entry by entry, and judges it.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate, islice, takewhile
from operator import add, attrgetter, or_

from inspector.containers.zip.directory import FOLDER, MASKED
from inspector.tuples import NamedTuple

_DATA = "data/"
_ELSEWHERE = b"\xff\xff\xff\xff"  # the true figure stands in the Zip64 extra field
_WIDE, _WIDE_NBYTES = b"\x0c\0", 12  # the length of that field with one figure
_ENTRY_NBYTES, _LOCAL_NBYTES = 46, 30
_MOST_SPREAD, _SPREAD = 2, 1 << 12
_DIGITS = 9
_SAME_LAST = struct.Struct("<2xH2xL")  # length of the comment, disk, attributes inside and outside
_LAST_GROUP = attrgetter("lastindex")  # None of a match that is nothing
Row = tuple[str, int, int, int, int, int, int, int]
"""Name, place, size, size in the file, method, checksum, flags, and the place of the entry."""


class _Columns(NamedTuple):
    """The fields of some entries, each kind by itself."""

    first: tuple[bytes, ...]
    flags: tuple[bytes, ...]
    how: tuple[bytes, ...]
    crc: tuple[bytes, ...]
    packed: tuple[bytes, ...]
    nbytes: tuple[bytes, ...]
    name_nbytes: tuple[bytes, ...]
    extra_nbytes: tuple[bytes, ...]
    last: tuple[bytes, ...]
    place: tuple[bytes, ...]
    number: tuple[bytes, ...]
    wide: tuple[bytes, ...]


class Alike:
    """Records of storages whose keys are numbers, one behind the other.

    Attributes:
        prefix: What their names begin with.
        offsets: Where the local header of each starts.
        sizes: How long each is, in the file as well as inflated.
        method: 0 stored, 8 deflated.
        flags: General purpose bits that any of them has.
    """

    def __init__(self, folder: str, file_nbytes: int, disk: int) -> None:
        """Expect records below the folder of an archive.

        Args:
            folder: Its name with the slash.
            file_nbytes: Size of the file.
            disk: The number of the disk that the end of the directory names.
        """
        self.prefix = folder + _DATA
        self.offsets = array("Q")
        self.sizes = array("I")
        self.method = self.flags = 0
        self._numbers, self._crcs, self._places = array("I"), array("I"), array("I")
        self._flags = array("H")
        self._index = array("I")
        self._kind: tuple[bytes, ...] | None = None
        self._file_nbytes, self._disk = file_nbytes, disk
        name = self.prefix.encode("utf-8", "surrogateescape")
        self._name_nbytes = len(name)
        self._row = re.compile(
            # Versions, flags, method to date, checksum, two sizes, lengths of name and extra field, the rest.
            rb"PK\x01\x02(.{4})(..)(.{6})(.{4})(.{4})(.{4})(..)(..)(.{10})"
            # The place, the name with the key, and the place again where it is too large for its field.
            rb"(.{4})%b(0|[1-9][0-9]{0,8})(?:\x01\0\x08\0(.{8}))?|" % re.escape(name),
            re.DOTALL,
        )

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._numbers)

    def row(self, index: int, start: int) -> Row:
        """Return one of them, where the directory starts there in the file."""
        nbytes = self.sizes[index]
        name, place = f"{self.prefix}{self._numbers[index]}", start + self._places[index]
        return (
            name,
            self.offsets[index],
            nbytes,
            nbytes,
            self.method,
            self._crcs[index],
            self._flags[index],
            place,
        )

    def read(self, data: bytes, pos: int, most: int) -> int:
        """Read entries for as long as they are alike, and return the place behind them."""
        matches = list(islice(takewhile(_LAST_GROUP, self._row.finditer(data, pos)), most))
        if not matches:
            return pos
        columns = _Columns(*zip(*[one.groups(b"") for one in matches], strict=True))
        lengths = [self._name_nbytes + len(number) for number in columns.number]
        offsets = _offsets(columns) if self._is_usual(columns, lengths) else None
        if offsets is None:
            return pos
        sizes = _figures(columns.nbytes)
        if max(map(add, offsets, sizes)) + _LOCAL_NBYTES > self._file_nbytes:
            return pos
        self._kind = columns.first[0], columns.how[0], columns.last[0]
        self.method = int.from_bytes(columns.how[0][:2], "little")
        extras = [len(extra) and _WIDE_NBYTES for extra in columns.wide]
        steps = [_ENTRY_NBYTES + length + extra for length, extra in zip(lengths, extras, strict=True)]
        ends = list(accumulate(steps, initial=pos))
        self.offsets.extend(offsets)
        self.sizes.extend(sizes)
        kinds = {raw: int.from_bytes(raw, "little") for raw in set(columns.flags)}
        self._flags.extend(map(kinds.__getitem__, columns.flags))
        self.flags = reduce(or_, kinds.values(), self.flags)
        self._crcs.extend(_figures(columns.crc))
        self._numbers.extend(map(int, columns.number))
        self._places.extend(ends[:-1])
        return ends[-1]

    def _is_usual(self, columns: _Columns, lengths: Sequence[int]) -> bool:
        """Return whether entries are those of records that nothing is odd about, and all of one kind."""
        kinds = set(zip(columns.first, columns.how, columns.last, strict=True))
        kind = self._kind or (columns.first[0], columns.how[0], columns.last[0])
        disk, attributes = _SAME_LAST.unpack(kind[2])
        return (
            kinds == {kind}
            and kind[2].startswith(b"\0\0")
            and disk == self._disk
            and not attributes & FOLDER
            and not any(int.from_bytes(flags, "little") & MASKED for flags in set(columns.flags))
            and columns.packed == columns.nbytes
            and _ELSEWHERE not in columns.nbytes
            and b"".join(columns.name_nbytes) == struct.pack(f"<{len(lengths)}H", *lengths)
        )

    def end(self) -> bool:
        """Prepare to find records by their keys; return False where those have no order, or are doubled."""
        most = max(self._numbers)
        if most > _MOST_SPREAD * len(self) + _SPREAD:
            return False
        self._index = array("I", bytes(4 * (most + 1)))
        for row, number in enumerate(self._numbers, 1):
            self._index[number] = row
        return len(self._index) - self._index.count(0) == len(self)

    def find(self, key: str) -> int | None:
        """Return which of them has a key, which is compared as it is written; None where none has."""
        try:
            number = int(key) if len(key) <= _DIGITS else -1
        except ValueError:
            return None
        row = self._index[number] if 0 <= number < len(self._index) else 0
        return row - 1 if row and str(number) == key else None


def _offsets(columns: _Columns) -> Sequence[int] | None:
    """Return the places of records; None where one is not told as it should be."""
    if not any(columns.wide):
        is_told = _ELSEWHERE not in columns.place and set(columns.extra_nbytes) == {b"\0\0"}
        return _figures(columns.place) if is_told else None
    found = []
    for place, wide, extra_nbytes in zip(columns.place, columns.wide, columns.extra_nbytes, strict=True):
        if (place == _ELSEWHERE) is not bool(wide) or extra_nbytes != (_WIDE if wide else b"\0\0"):
            return None
        found.append(int.from_bytes(wide or place, "little"))
    return found


def _figures(column: Iterable[bytes]) -> Sequence[int]:
    """Return numbers of 32 bits that stand with their lowest byte first."""
    whole = b"".join(column)
    return struct.unpack(f"<{len(whole) // 4}I", whole)

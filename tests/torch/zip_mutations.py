"""Archives whose structure lies: honest ones with fields, names or bytes changed, the same every time."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator

from inspector.containers.zip.directory import END, LOCATOR64_SIGNATURE
from tests.builders.pickles import STOP, proto, storage, text, tuple_
from tests.builders.zips import Record, ZipBuilder

CENTRAL, LOCAL, END_RECORD = b"PK\1\2", b"PK\3\4", b"PK\5\6"
# Where the fields of a record's entry in the directory, of the end and of the Zip64 end stand, and how long.
_CENTRAL_FIELDS = ((6, 2), (8, 2), (10, 2), (12, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2))
_CENTRAL_FIELDS += ((34, 2), (36, 2), (38, 4), (42, 4))
_LOCAL_FIELDS = ((0, 4), (4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2))
_END_FIELDS = ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2))
_END64_FIELDS = ((0, 4), (4, 8), (16, 4), (20, 4), (24, 8), (32, 8), (40, 8), (48, 8))
_LOCATOR_FIELDS = ((0, 4), (4, 4), (8, 8), (16, 4))
_VALUES = (0, 1, 2, 3, 7, 8, 9, 16, 22, 32, 46, 64, 76, 98, 0x800, 0x2000, 0x7FFF, 0xFFFE, 0xFFFF, 0xFFFFFFFF)
_TRAILS = (
    1,
    21,
    22,
    23,
    3000,
    4093,
    4096,
    8192,
    60_000,
    65_513,
    65_535,
    65_536,
    69_561,
    69_562,
    69_563,
    70_000,
)
EIGHT = {"0": b"00000000", "1": b"11111111"}


def pickle(marker: str) -> bytes:
    """A pickle that says which one it is, and asks for both storages."""
    return proto() + tuple_(text(marker), storage("0", numel=2), storage("1", numel=2)) + STOP


def archives(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        yield f"{seed}-{number:05}", archive(random.Random(f"{seed}-{number}"))


def archive(rng: random.Random) -> bytes:
    records = _records(rng)
    builder = ZipBuilder()
    for record in records:
        builder.add(record)
    comment = rng.choice((*[b""] * 9, b"note", END.pack(END_RECORD, 0, 0, 3, 3, 150, 0, 0)))
    data = bytearray(builder.finish(comment=comment, zip64=rng.random() < 0.4))
    if rng.random() < 0.15:
        _append_other(rng, data)
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        rng.choice(_CHANGES)(rng, data)
    data[:4] = LOCAL
    return bytes(data)


def _records(rng: random.Random) -> list[Record]:
    folder = rng.choice((*["a/"] * 9, "A/", "/", "", "b" * 505 + "/"))
    method = rng.choice((0, 0, 8))
    records = [Record(name=f"{folder}data.pkl", data=pickle("first"), method=method)]
    records += [Record(name=f"{folder}data/{key}", data=data) for key, data in EIGHT.items()]
    records.append(Record(name=f"{folder}version", data=rng.choice((*[b"3\n"] * 30, *_ODD_VERSIONS))))
    for _ in range(rng.choice((0, 0, 1, 2))):
        records.insert(rng.randrange(len(records) + 1), _extra_record(rng, folder))
    if rng.random() < 0.2:
        rng.shuffle(records)
    return records


_ODD_VERSIONS = (b"10", b" 3x", b"+3", b"-3", b"\x1c3", b"11", b"0x3", b"", b"9" * 25, b"003\0\n")


def _extra_record(rng: random.Random, folder: str) -> Record:
    name = rng.choice(
        (
            "data.pkl", "DATA.PKL", "Data.pkl", "data.pkl\0x", "data.pkl/", "data/0", "DATA/1", "data/", "x",
            "constants.pkl", "CONSTANTS.PKL", "constants.pkl\0", "byteorder", "BYTEORDER", ".data/version",
            ".format_version", ".storage_alignment", ".data/serialization_id", "\u00e9", "tensors/0",
            "archive_format", ".data/extern_modules",
        )
    )  # fmt: skip
    data = rng.choice((pickle("other"), b"little", b"big", b"3", b"1", b"64", b"\xff", b"", EIGHT["0"]))
    if name.lower().startswith("data.pkl"):
        data = pickle("other")
    elsewhere = rng.random() < 0.1
    return Record(name=("else/" if elsewhere else folder) + name, data=data, method=rng.choice((0, 0, 8)))


def _append_other(rng: random.Random, data: bytearray) -> None:
    """Append a whole archive with another pickle, whose places are right for the file or for itself."""
    builder = ZipBuilder()
    if rng.random() < 0.5:
        builder.body += data
    for record in (
        Record(name="a/data.pkl", data=pickle("appended")),
        Record(name="a/version", data=b"3\n"),
        *(Record(name=f"a/data/{key}", data=stored) for key, stored in EIGHT.items()),
    ):
        builder.add(record)
    other = builder.finish(zip64=rng.random() < 0.3)
    data += other.removeprefix(data)


# --- changes ------------------------------------------------------------------------------------------------


def _places(data: bytearray, signature: bytes) -> list[int]:
    found, at = [], data.find(signature)
    while at >= 0:
        found.append(at)
        at = data.find(signature, at + 1)
    return found


def _set_field(rng: random.Random, data: bytearray, at: int, fields: tuple[tuple[int, int], ...]) -> None:
    offset, size = rng.choice(fields)
    place = at + offset
    if place + size > len(data):
        return
    before = int.from_bytes(data[place : place + size], "little")
    near = before + rng.choice((-46, -22, -8, -2, -1, 1, 2, 8, 22, 46))
    value = rng.choice(
        (near, near, rng.choice(_VALUES), rng.randrange(len(data) + 1), (1 << 64) - 1 - rng.randrange(99))
    )
    data[place : place + size] = (value % (1 << 8 * size)).to_bytes(size, "little")


def _of(signature: bytes, fields: tuple[tuple[int, int], ...]) -> Callable[[random.Random, bytearray], None]:
    def change(rng: random.Random, data: bytearray) -> None:
        places = _places(data, signature)
        if places:
            _set_field(rng, data, rng.choice(places), fields)

    return change


def _trail(rng: random.Random, data: bytearray) -> None:
    data += bytes(rng.choice(_TRAILS))


def _fake_end(rng: random.Random, data: bytearray) -> None:
    _trail(rng, data)
    at = rng.randrange(max(len(data) - 70_000, 0), len(data) + 1)
    start = rng.choice(_places(data, CENTRAL) or [0])
    count = rng.choice((1, 2, 4))
    data[at:at] = END.pack(
        END_RECORD,
        0,
        0,
        count,
        count,
        rng.choice((98, 200, 220)),
        start,
        rng.choice((0, min(len(data) - at, 0xFFFF))),
    )


def _locator(rng: random.Random, data: bytearray) -> None:
    ends = _places(data, END_RECORD)
    if ends:
        target = rng.choice((0, ends[-1] - 56, rng.randrange(len(data)), len(data)))
        data[ends[-1] : ends[-1]] = struct.pack(
            "<4sLQL", LOCATOR64_SIGNATURE, 0, max(target, 0), rng.choice((0, 1, 2))
        )


def _move_names(rng: random.Random, data: bytearray) -> None:
    """Change the case of a letter in the names of the directory."""
    names = _places(data, CENTRAL)
    if names:
        at = rng.choice(names) + 46 + rng.randrange(12)
        if at < len(data) and chr(data[at]).isalpha():
            data[at] ^= 0x20


def _insert(rng: random.Random, data: bytearray) -> None:
    """Put some bytes somewhere, so that places behind are wrong."""
    at = rng.randrange(4, len(data))
    data[at:at] = rng.choice((b"\0", b"\0" * 20, LOCAL, CENTRAL + bytes(42), zlib.compress(b"x")))


def _cut(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(4, len(data))
    del data[at : at + rng.choice((1, 2, 20))]


def _flip(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(4, len(data))] = rng.randrange(256)


_CHANGES: tuple[Callable[[random.Random, bytearray], None], ...] = (
    *[_of(CENTRAL, _CENTRAL_FIELDS)] * 6,
    *[_of(LOCAL, _LOCAL_FIELDS)] * 2,
    *[_of(END_RECORD, _END_FIELDS)] * 3,
    *[_of(b"PK\6\6", _END64_FIELDS)] * 2,
    *[_of(LOCATOR64_SIGNATURE, _LOCATOR_FIELDS)] * 2,
    _trail,
    _fake_end,
    _locator,
    _move_names,
    _insert,
    _cut,
    _flip,
)

"""Files that hold too much of something, each as large as the limits let through or larger.

They are what the limits are measured with: each ends within 10 s and 1 GB.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.builders import zips
from tests.builders.pickles import MARK, NONE, name, number, op, proto, stream, text, tuple_
from tests.hostile.crowds_shared import SHARED_CROWDS
from tests.hostile.crowds_tensors import TENSOR_CROWDS

MANY = 8_000_000


def wrapped(*parts: bytes) -> bytes:
    return zips.checkpoint(stream(proto(), *parts))


def repeated(count: int, *items: bytes, into: str = "EMPTY_LIST", by: str = "APPENDS") -> bytes:
    """A container filled with the same instructions again and again."""
    return wrapped(op(into) + MARK + b"".join(items) * count + op(by))


def counted(
    count: int, make: Callable[[int], bytes], *, into: str = "EMPTY_LIST", by: str = "APPENDS"
) -> bytes:
    """A container filled with instructions made for each number."""
    return wrapped(op(into) + MARK + b"".join(map(make, range(count))) + op(by))


def _short_text(at: int) -> bytes:
    return b"X\x0f\0\0\0" + b"%015d" % at


def _storage(at: int) -> bytes:
    return b"h\x01h\x02X\x08\0\0\0%08dh\x03K\x04t" % at


def _many_storages(count: int) -> bytes:
    head = text("storage") + op("BINPUT", b"\1") + name("torch.FloatStorage") + op("BINPUT", b"\2")
    head += text("cpu") + op("BINPUT", b"\3") + op("EMPTY_LIST") + MARK
    return wrapped(head + b"".join(b"(" + _storage(at) + b"Q" for at in range(count)) + op("APPENDS"))


def _many_tensors(count: int) -> bytes:
    """As compact as tensors can be written: all of one storage, all parts from the memo."""
    storage = tuple_(text("storage"), name("torch.FloatStorage"), text("0"), text("cpu"), number(4))
    args = tuple_(storage + op("BINPERSID"), number(0), tuple_(number(4)), tuple_(number(1)))
    head = name("torch._utils._rebuild_tensor") + op("BINPUT", b"\0") + args + op("BINPUT", b"\1")
    items = b"".join(b"X\x08\0\0\0%08dh\0h\1R" % at for at in range(count))
    return zips.checkpoint(
        stream(proto(), head, op("EMPTY_DICT"), MARK, items, op("SETITEMS")), {"0": bytes(16)}
    )


def _wide_objects(count: int) -> bytes:
    """Objects with arguments, state, items and pairs, all of them one."""
    head = name("a.B") + op("BINPUT", b"\0")
    return wrapped(head + op("EMPTY_LIST") + MARK + (b"h\0)R]bNaNNs") * count + op("APPENDS"))


def _long_names(count: int) -> bytes:
    """Nested dictionaries whose keys have 900 KB each, with many numbers at the bottom."""
    key = text("x" * 900_000)
    down = op("EMPTY_DICT") + key
    bottom = op("EMPTY_DICT") + MARK + b"".join(number(at) + NONE for at in range(count)) + op("SETITEMS")
    return wrapped(down * 50 + bottom + op("SETITEM") * 50)


def _entries(count: int) -> bytes:
    """A directory of a million entries that all stand for one record."""
    first = zips.checkpoint(stream(proto(), NONE))
    end = first.rfind(b"PK\5\6")
    start = struct.unpack_from("<I", first, end + 16)[0]
    builder = zips.ZipBuilder()
    builder.body += first[:start]
    builder.central += first[start:end]
    entry = zips.CENTRAL.pack(b"PK\1\2", 0, 20, 0, 0, 0, 0, 0, 0, 0, 22, 0, 0, 0, 0, 0, 0)
    builder.central += b"".join(b"%barchive/data/%09d" % (entry, at) for at in range(count - 2))
    builder.count = count
    return builder.finish(zip64=True)


def _listed(count: int, shape: Callable[[int], bytes]) -> bytes:
    row = b'"l.%07d":{"dtype":"F32","shape":[%b],"data_offsets":[%d,%d]}'
    rows = b",".join(row % (at, shape(at), 16 * at, 16 * at + 16) for at in range(count))
    return struct.pack("<Q", len(rows) + 2) + b"{" + rows + b"}" + bytes(4096)


def _many_devices(count: int) -> bytes:
    head = text("storage") + op("BINPUT", b"\1") + name("torch.FloatStorage") + op("BINPUT", b"\2")
    head += op("EMPTY_LIST") + MARK
    parts = (b"(h\1h\2X\x08\0\0\0%08dX\x0d\0\0\0cuda:%08dK\4tQ" % (at, at) for at in range(count))
    return wrapped(head + b"".join(parts) + op("APPENDS"))


def _many_optimizers(count: int) -> bytes:
    group = op("EMPTY_DICT") + text("params") + op("EMPTY_LIST") + number(0) + op("APPEND") + op("SETITEM")
    groups = op("EMPTY_LIST") + group + op("APPEND")
    state = text("state") + op("EMPTY_DICT") + text("param_groups") + groups
    return wrapped(
        op("EMPTY_LIST") + MARK + (op("EMPTY_DICT") + MARK + state + op("SETITEMS")) * count + op("APPENDS")
    )


CROWDS: dict[str, Callable[[], bytes]] = {
    **SHARED_CROWDS,
    **TENSOR_CROWDS,
    "8 million pairs of one dictionary": lambda: repeated(MANY, b"K\1N", into="EMPTY_DICT", by="SETITEMS"),
    "4 million pairs, one by one": lambda: wrapped(op("EMPTY_DICT") + b"K\1Ns" * 4_000_000),
    "3 million pairs with texts as keys": lambda: counted(
        3_000_000, lambda at: _short_text(at) + NONE, into="EMPTY_DICT", by="SETITEMS"
    ),
    "2 million pairs of lists": lambda: repeated(2_000_000, b"K\1]", into="EMPTY_DICT", by="SETITEMS"),
    "900,000 numbered values": lambda: counted(
        900_000, lambda at: number(1000 + at) + NONE, into="EMPTY_DICT", by="SETITEMS"
    ),
    "8 million short texts": lambda: counted(MANY, lambda at: b"X\2\0\0\0ab"),
    "8 million short texts beside a list": lambda: wrapped(
        op("EMPTY_LIST") + MARK + b"X\2\0\0\0ab" * MANY + op("EMPTY_LIST") + op("APPENDS")
    ),
    "2 million texts of 15 characters": lambda: counted(2_000_000, _short_text),
    "20 million times nothing": lambda: wrapped(MARK + NONE * 19_000_000 + op("LIST")),
    "19 million times nothing beside a list": lambda: wrapped(
        MARK + NONE * 19_000_000 + op("EMPTY_LIST") + op("LIST")
    ),
    "4 million empty dictionaries": lambda: repeated(4_000_000, op("EMPTY_DICT")),
    "4 million empty sets": lambda: repeated(4_000_000, op("EMPTY_SET")),
    "4 million lists of one": lambda: repeated(3_900_000, b"]Na"),
    "4 million sets of one": lambda: repeated(1_900_000, b"\x8f(N\x90"),
    "4 million tuples in each other": lambda: wrapped(op("EMPTY_TUPLE") + op("TUPLE1") * 3_900_000),
    "3 million calls": lambda: wrapped(name("a.B") + b"q\0]" + MARK + b"h\0)R" * 3_000_000 + op("APPENDS")),
    "1 million objects with everything": lambda: _wide_objects(900_000),
    "8 million numbers": lambda: repeated(7_900_000, b"J\1\2\3\4"),
    "7 million floats": lambda: repeated(7_900_000, b"G\1\2\3\4\5\6\7\x08"),
    "4 million memo slots with gaps": lambda: wrapped(
        NONE + b"".join(b"r" + struct.pack("<I", 2 * at) for at in range(3_900_000))
    ),
    "18 million memo slots in order": lambda: wrapped(
        NONE + b"".join(b"r" + struct.pack("<I", at) for at in range(18_000_000))
    ),
    "1 million marks": lambda: wrapped(MARK * 999_000 + NONE),
    "700,000 storages": lambda: _many_storages(700_000),
    "700,000 compact tensors": lambda: _many_tensors(700_000),
    "a header of a million tensors": lambda: _listed(1_000_000, lambda at: b"4,4"),
    "a header of a million tensors, each of another shape": lambda: _listed(
        1_040_000, lambda at: b"%d,1,1,1" % at
    ),
    "a header of 1,100,000 tensors": lambda: _listed(1_100_000, lambda at: b"4"),
    "300,000 devices": lambda: _many_devices(300_000),
    "100,000 optimizers": lambda: _many_optimizers(100_000),
    "90,000 distinct names to import": lambda: counted(90_000, lambda at: b"ca\n%06d\n" % at),
    "keys of 45 MB above 10,000 values": lambda: _long_names(10_000),
    "100,000 extension codes": lambda: counted(100_000, lambda at: op("EXT4", struct.pack("<i", at))),
    "a directory of 1,000,000 records": lambda: _entries(1_000_000),
    "a directory of 1,100,000 records": lambda: _entries(1_100_000),
    "200,000 dictionaries in dictionaries": lambda: wrapped(b"}N" * 200_000 + NONE + b"s" * 200_000),
    "500,000 calls of getattr": lambda: wrapped(
        name("builtins.getattr") + b"q\0]" + MARK + b"h\0NN\x86R" * 500_000 + op("APPENDS")
    ),
    "500,000 calls within calls": lambda: wrapped(
        name("builtins.getattr")
        + b"q\0"
        + NONE
        + op("POP")
        + b"h\0" * 500_000
        + op("EMPTY_TUPLE")
        + op("REDUCE") * 500_000
    ),
}

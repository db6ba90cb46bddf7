"""Files that hold too much of something, each as large as the limits let through or larger.

They are what the limits are measured with: each ends within 25 s of processor time and 1.25 GB. Where few
bytes stand for much, the pickle is compressed, so that the size of a file bounds nothing. What is wide and
stands again and again is tried in each run of the tests, in small: `tests/property/crowds.py`.
"""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from inspector.overriding import override
from tests.builders import legacy, zips
from tests.builders.pickles import (
    MARK,
    NONE,
    call,
    dict_,
    legacy_storage,
    list_,
    name,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)

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


# --- few bytes that stand for much: one wide thing referred to again and again, long names, bombs -----------

WIDE = 1_000_000
SLOT = 7  # where the shared thing lies in the memo
GET = op("BINGET", bytes([SLOT]))


def packed(*parts: bytes) -> bytes:
    record = zips.Record(name="archive/data.pkl", data=stream(proto(), *parts), method=zips.DEFLATED)
    return zips.build_zip(record, zips.Record(name="archive/version", data=b"3\n"))


def numbers(count: int) -> bytes:
    return MARK + b"K\1" * count


def wide_tuple(count: int = WIDE) -> bytes:
    return numbers(count) + op("TUPLE")


def wide_dict(count: int = WIDE) -> bytes:
    items = b"".join(b"M" + struct.pack("<H", at % 65536) + NONE for at in range(count))
    return op("EMPTY_DICT") + MARK + items + op("SETITEMS")


def pairs(count: int = WIDE) -> bytes:
    """A list of pairs, as Python 2 hands it to OrderedDict."""
    return op("EMPTY_LIST") + MARK + b"K\1N\x86" * count + op("APPENDS")


def shared(thing: bytes, count: int, wrap: bytes = b"") -> bytes:
    """A list of references to one thing; `wrap` stands behind each."""
    return (
        op("EMPTY_LIST")
        + MARK
        + thing
        + op("BINPUT", bytes([SLOT]))
        + wrap
        + (GET + wrap) * count
        + op("APPENDS")
    )


def below(inside: bytes, depth: int = 254) -> bytes:
    """The same within so many dictionaries, whose items are too deep to be entered."""
    return (op("EMPTY_DICT") + text("a")) * depth + inside + op("SETITEM") * depth


def numbered_group(count: int) -> bytes:
    ids = op("EMPTY_LIST") + MARK + b"".join(map(number, range(count))) + op("APPENDS")
    return list_(dict_((text("params"), ids)))


def models(count: int, parameters: int) -> bytes:
    """State dicts, each with as many tensors of its own."""
    parts = []
    for at in range(count):
        rows = (
            (text(f"p{row}"), tensor(storage(f"{at * parameters + row}", numel=4), 4))
            for row in range(parameters)
        )
        parts.append(dict_(*rows))
    return list_(*parts)


def models_and_optimizers(count: int, parameters: int) -> bytes:
    """As many optimizers as models, each with all the parameters of one."""
    state = dict_(
        *(
            (number(at), dict_((text("exp_avg"), tensor(storage("0", numel=4), 4))))
            for at in range(parameters)
        )
    )
    groups = numbered_group(parameters)
    made = b"".join(dict_((text("state"), state), (text("param_groups"), groups)) for _ in range(count))
    return list_(models(count, parameters), op("EMPTY_LIST") + MARK + made + op("APPENDS"))


def tagged(count: int, chars: int) -> bytes:
    parts = (tensor(storage(f"{at}", location=f"{at:0{chars}d}", numel=1), 1) for at in range(count))
    return op("EMPTY_LIST") + MARK + b"".join(parts) + op("APPENDS")


def wide_shapes(count: int, wide: int, value: bytes = b"K\1") -> bytes:
    """Tensors that share a shape and strides of many dimensions."""
    shape = MARK + value * wide + op("TUPLE")
    one = name("torch._utils._rebuild_tensor_v2") + tuple_(
        storage(numel=4), number(0), shape, shape, op("NEWFALSE"), call("collections.OrderedDict")
    )
    head = one + op("BINPUT", bytes([SLOT])) + op("POP") + op("BINPUT", b"\1") + op("POP")
    return head + op("EMPTY_LIST") + MARK + (b"h\1" + GET + b"R") * count + op("APPENDS")


def names_of(count: int, nbytes: int) -> bytes:
    """A directory of records with long names that are no text."""
    first = zips.checkpoint(stream(proto(), NONE))
    end = first.rfind(b"PK\5\6")
    start = struct.unpack_from("<I", first, end + 16)[0]
    builder = zips.ZipBuilder()
    builder.body += first[:start]
    builder.central += first[start:end]
    entry = zips.CENTRAL.pack(b"PK\1\2", 0, 20, 0, 0, 0, 0, 0, 0, 0, nbytes, 0, 0, 0, 0, 0, 0)
    filling = b"\xff" * (nbytes - 8)
    builder.central += b"".join(b"%b%08d%b" % (entry, at, filling) for at in range(count))
    builder.count = count + 2
    return builder.finish(zip64=True)


def headers(count: int, nbytes: int = 9) -> bytes:
    """Local headers one behind the other, and no directory."""
    head = zips.LOCAL.pack(b"PK\3\4", 20, 0, 0, 0, 0, 0, 0, 0, nbytes, 0)
    first = zips.checkpoint(stream(proto(), NONE))
    start = struct.unpack_from("<I", first, first.rfind(b"PK\5\6") + 16)[0]
    return first[:start] + b"".join(b"%barchive/%0*d" % (head, nbytes - 8, at) for at in range(count))


def gzipped(count: int, nbytes: int) -> bytes:
    """A legacy file within gzip: a large storage, then small ones, each with another length than is said."""
    keys = [f"{at}" for at in range(count)]
    made = list_(*(tensor(legacy_storage(key, numel=nbytes // 4), nbytes // 4) for key in keys))
    first = (keys[0], nbytes // 4, bytes(nbytes))
    plain = legacy.checkpoint(stream(proto(), made), first, *((key, 1, bytes(4)) for key in keys[1:]))
    return gzip.compress(plain + bytes(nbytes), 9)


def calls_of(function: str, args: bytes, count: int) -> bytes:
    """As many calls of one function, all of the same arguments."""
    head = name(function) + op("BINPUT", b"\1") + op("POP") + args + op("BINPUT", bytes([SLOT])) + op("POP")
    return head + op("EMPTY_LIST") + MARK + (b"h\1" + GET + b"R") * count + op("APPENDS")


def built_with(function: str, state: bytes, count: int) -> bytes:
    """As many objects that share their state."""
    head = name(function) + op("BINPUT", b"\1") + op("POP") + state + op("BINPUT", bytes([SLOT])) + op("POP")
    return head + op("EMPTY_LIST") + MARK + (b"h\1)R" + GET + b"b") * count + op("APPENDS")


# --- as many tensors as are read, and more, as torch writes them --------------------------------------------

_MANY = 360_000
_PUTS = 8  # of each tensor behind the first


def _rebuild() -> None:
    """Stand for torch's function."""


class _Kind:
    """Stand for a class of storages."""


class _Storage:
    __slots__ = ("pid",)

    def __init__(self, key: int) -> None:
        self.pid = ("storage", _Kind, str(key), "cpu", 4)


class _Tensor:
    __slots__ = ("args",)

    def __init__(self, key: int, shape: tuple[int, ...], strides: tuple[int, ...], *, grad: bool) -> None:
        # Sizes of its own: one that several share comes out of the memo, which no genuine tensor does.
        own = (*shape, 0)[:-1], (*strides, 0)[:-1]
        self.args = (_Storage(key), 0, *own, grad, OrderedDict())  # type: ignore[var-annotated]

    @override
    def __reduce__(self) -> Any:
        return _rebuild, self.args


class _Pickler(pickle.Pickler):
    @override
    def persistent_id(self, value: Any) -> Any:
        return value.pid if type(value) is _Storage else None


def _pickled(root: object, kind: bytes) -> bytes:
    out = io.BytesIO()
    pickler = _Pickler(out, 2)
    pickler.dump(root)
    here = __name__.encode()
    data = out.getvalue().replace(b"c%b\n_rebuild\n" % here, b"ctorch._utils\n_rebuild_tensor_v2\n", 1)
    return data.replace(b"c%b\n_Kind\n" % here, b"ctorch\n%b\n" % kind, 1)


def _named(count: int, kind: bytes = b"FloatStorage", **how: Any) -> bytes:
    grad, strides = how.get("grad", False), how.get("strides", (2, 1))
    tensors = {
        f"model.layers.{at // 10}.block.{at % 10}.weight": _Tensor(at, (2, 2), strides, grad=grad)
        for at in range(count)
    }
    return _pickled(tensors, kind)


def _zipped(data: bytes, count: int) -> bytes:
    """A zip with a record for each storage, of which all stand for one."""
    first = zips.checkpoint(data, {"0": bytes(16)})
    end = first.rfind(b"PK\5\6")
    start = struct.unpack_from("<I", first, end + 16)[0]
    central = first[start:end]
    at = central.rindex(b"PK\1\2", 0, central.index(b"archive/data/0"))
    entry, name = central[at : at + 46], b"archive/data/0"
    builder = zips.ZipBuilder()
    builder.body += first[:start]
    builder.central += central[: at + 46] + name
    kept = central[at + 46 + len(name) :]
    for key in range(1, count):
        own = b"archive/data/%d" % key
        builder.central += entry[:28] + struct.pack("<H", len(own)) + entry[30:] + own
    builder.central += kept
    builder.count = count + central.count(b"PK\1\2") - 1
    return builder.finish(zip64=True)


def _asked(data: bytes, count: int) -> bytes:
    """The same, with each place of the memo asked for at the end."""
    gets = b"".join(b"j" + struct.pack("<I", slot) + b"0" for slot in range(300, _PUTS * count, 2))
    return data[:-1] + gets + b"."


def _slots(count: int) -> bytes:
    """The state of AdamW for as many parameters, and they."""
    parameters = {f"layers.{at}.weight": _Tensor(at, (2, 2), (2, 1), grad=False) for at in range(count)}
    state = {
        at: {
            name: _Tensor((place + 1) * count + at, shape, (2, 1)[: len(shape)], grad=False)
            for place, (name, shape) in enumerate(
                {"step": (), "exp_avg": (2, 2), "exp_avg_sq": (2, 2)}.items()
            )
        }
        for at in range(count)
    }
    groups = [{"lr": 0.1, "params": list(range(count))}]
    return _pickled(
        {"model": parameters, "optimizer": {"state": state, "param_groups": groups}}, b"FloatStorage"
    )


CROWDS: dict[str, Callable[[], bytes]] = {
    "a torch.device of a million parts, 300,000 times": lambda: packed(
        shared(name("torch.device") + wide_tuple() + op("REDUCE"), 300_000)
    ),
    "300,000 OrderedDicts of the same million pairs": lambda: packed(
        calls_of("collections.OrderedDict", tuple_(pairs(500_000)), 300_000)
    ),
    "300,000 OrderedDicts of the same million pairs, deep": lambda: packed(
        below(calls_of("collections.OrderedDict", tuple_(pairs(500_000)), 300_000))
    ),
    "300,000 objects of the same million attributes": lambda: packed(
        built_with("a.B", wide_dict(300_000), 300_000)
    ),
    "300,000 objects of the same million attributes, deep": lambda: packed(
        below(built_with("a.B", wide_dict(300_000), 300_000))
    ),
    "800 leaves below long astral keys": lambda: packed(
        (op("EMPTY_DICT") + text("\U0001f600" * 512)) * 250
        + op("EMPTY_DICT")
        + MARK
        + b"".join(number(at) + NONE for at in range(800))
        + op("SETITEMS")
        + op("SETITEM") * 250
    ),
    "800,000 values of 200 astral characters": lambda: packed(
        op("EMPTY_LIST")
        + MARK
        + text("\U000e0001" * 200)
        + op("BINPUT", b"\7")
        + GET * 800_000
        + op("APPENDS")
    ),
    "800,000 keys of 100 control characters": lambda: packed(
        op("EMPTY_DICT")
        + MARK
        + text("\x01" * 100)
        + op("BINPUT", b"\7")
        + NONE
        + (GET + NONE) * 800_000
        + op("SETITEMS")
    ),
    "800,000 empty models under keys of 100 astral characters": lambda: packed(
        op("EMPTY_DICT")
        + MARK
        + text("\U0001f600" * 100)
        + op("BINPUT", b"\7")
        + op("EMPTY_DICT")
        + (GET + op("EMPTY_DICT")) * 800_000
        + op("SETITEMS")
    ),
    "100,000 location tags of 100 characters": lambda: packed(tagged(100_000, 100)),
    "500 models and 500 optimizers": lambda: packed(models_and_optimizers(500, 200)),
    "20,000 models and 20,000 optimizers": lambda: packed(models_and_optimizers(20_000, 3)),
    "700,000 tensors of 256 dimensions": lambda: packed(wide_shapes(700_000, 256)),
    "700,000 tensors of 256 large dimensions": lambda: packed(
        wide_shapes(700_000, 256, op("LONG1", b"\x08" + b"\xff" * 7 + b"\x7f"))
    ),
    "300,000 tensors of 100,000 dimensions": lambda: packed(wide_shapes(300_000, 100_000)),
    "names of 180 MB in a directory": lambda: names_of(3_000, 60_000),
    "1,500,000 headers without a directory": lambda: headers(1_500_000, 15),
    "3,000 headers of 60 KB without a directory": lambda: headers(3_000, 60_000),
    "a gzip of 40 storages that lie about 200 MB": lambda: gzipped(40, 200_000_000),
    "a gzip of 20,000 storages that lie about 40 MB": lambda: gzipped(20_000, 40_000_000),
    "360,000 tensors of torch": lambda: _zipped(_named(_MANY), _MANY),
    "360,000 tensors of bytes": lambda: _zipped(_named(_MANY, b"ByteStorage"), _MANY),
    "360,000 tensors past their storages": lambda: _zipped(_named(_MANY, strides=(9, 9)), _MANY),
    "360,000 tensors that torch does not take": lambda: _zipped(
        _named(_MANY, b"LongStorage", grad=True), _MANY
    ),
    "360,000 tensors whose arguments are asked for": lambda: _zipped(_asked(_named(_MANY), _MANY), _MANY),
    "100,000 parameters with the state of AdamW": lambda: _zipped(_slots(100_000), 400_000),
    "110,000 parameters with the state of AdamW": lambda: _zipped(_slots(110_000), 440_000),
    "a million tensors of torch": lambda: _zipped(_named(1_000_000), 1_000_000),
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

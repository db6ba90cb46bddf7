"""Files in which few bytes stand for much: one wide thing referred to again and again, long names, bombs.

Their pickles are compressed where that makes them smaller, so that the size of a file bounds nothing.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable

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


def wide_list(count: int = WIDE) -> bytes:
    return op("EMPTY_LIST") + numbers(count) + op("APPENDS")


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


def built(made: bytes, state: bytes) -> bytes:
    return made + state + op("BUILD")


def optimizers(count: int, state: bytes, groups: bytes) -> bytes:
    head = state + op("BINPUT", b"\1") + groups + op("BINPUT", b"\2") + text("state") + op("BINPUT", b"\3")
    head += text("param_groups") + op("BINPUT", b"\4") + op("POP") * 4
    one = op("EMPTY_DICT") + b"(h\3h\1h\4h\2u"
    return head + op("EMPTY_LIST") + MARK + one * count + op("APPENDS")


def numbered_group(count: int) -> bytes:
    ids = op("EMPTY_LIST") + MARK + b"".join(map(number, range(count))) + op("APPENDS")
    return list_(dict_((text("params"), ids)))


def numbered_state(count: int) -> bytes:
    """The state of an optimizer whose parameters have a number each, and nothing more."""
    items = b"".join(number(at) + op("EMPTY_DICT") for at in range(count))
    return op("EMPTY_DICT") + MARK + items + op("SETITEMS")


def scalar_of(dtype: bytes) -> bytes:
    return name("numpy.core.multiarray.scalar") + dtype


def dtype_named(code: str) -> bytes:
    return call("numpy.dtype", text(code), op("NEWFALSE"), op("NEWTRUE"))


def dropped(count: int) -> bytes:
    head = name("numpy.core.multiarray.scalar") + op("BINPUT", b"\1") + op("POP")
    head += dtype_named("f" + "9" * WIDE) + op("BINPUT", bytes([SLOT])) + op("POP")
    return head + (b"h\1" + GET + NONE + b"\x86R0") * count + NONE


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


def object_array(count: int) -> bytes:
    made = call("numpy.core.multiarray._reconstruct", name("numpy.ndarray"), tuple_(number(0)), text("b"))
    items = op("EMPTY_LIST") + MARK + b"K\1" * count + op("APPENDS")
    return built(made, tuple_(number(1), tuple_(number(count)), dtype_named("O8"), op("NEWFALSE"), items))


def mesh(count: int) -> bytes:
    made = op("EMPTY_TUPLE")
    head = name("torch.distributed.device_mesh.DeviceMesh") + made + op("NEWOBJ")
    items = b"".join(text(f"a{at}") + NONE for at in range(count))
    return built(head, op("EMPTY_DICT") + MARK + items + op("SETITEMS"))


def tensors_of_state(count: int, wide: int) -> bytes:
    """Tensors that share wide attributes, each an object of its own."""
    state = op("EMPTY_DICT") + MARK + b"".join(text(f"a{at}") + NONE for at in range(wide)) + op("SETITEMS")
    args = tuple_(tensor(storage(numel=4), 4), op("NEWTRUE"), call("collections.OrderedDict"), state)
    head = name("torch._utils._rebuild_parameter_with_state") + op("BINPUT", b"\1") + op("POP")
    head += args + op("BINPUT", bytes([SLOT])) + op("POP")
    return head + op("EMPTY_LIST") + MARK + (b"h\1" + GET + b"R") * count + op("APPENDS")


def deep_tensors_of_state(count: int, wide: int) -> bytes:
    """The same, too deep to be entered."""
    inside = tensors_of_state(count, wide)
    return below(inside)


def calls_of(function: str, args: bytes, count: int) -> bytes:
    """As many calls of one function, all of the same arguments."""
    head = name(function) + op("BINPUT", b"\1") + op("POP") + args + op("BINPUT", bytes([SLOT])) + op("POP")
    return head + op("EMPTY_LIST") + MARK + (b"h\1" + GET + b"R") * count + op("APPENDS")


def built_with(function: str, state: bytes, count: int) -> bytes:
    """As many objects that share their state."""
    head = name(function) + op("BINPUT", b"\1") + op("POP") + state + op("BINPUT", bytes([SLOT])) + op("POP")
    return head + op("EMPTY_LIST") + MARK + (b"h\1)R" + GET + b"b") * count + op("APPENDS")


SHARED_CROWDS: dict[str, Callable[[], bytes]] = {
    "a torch.Size of a million, 300,000 times": lambda: packed(
        shared(call("torch.Size", wide_tuple()), 300_000)
    ),
    "a torch.device of a million parts, 300,000 times": lambda: packed(
        shared(name("torch.device") + wide_tuple() + op("REDUCE"), 300_000)
    ),
    "an OrderedDict of a million pairs, 300,000 times": lambda: packed(
        shared(call("collections.OrderedDict", pairs()), 300_000)
    ),
    "an OrderedDict of a million pairs, 300,000 times, deep": lambda: packed(
        below(shared(call("collections.OrderedDict", pairs()), 300_000))
    ),
    "300,000 OrderedDicts of the same million pairs": lambda: packed(
        calls_of("collections.OrderedDict", tuple_(pairs(500_000)), 300_000)
    ),
    "300,000 OrderedDicts of the same million pairs, deep": lambda: packed(
        below(calls_of("collections.OrderedDict", tuple_(pairs(500_000)), 300_000))
    ),
    "300,000 sets of the same million numbers": lambda: packed(
        calls_of("builtins.set", tuple_(wide_list()), 300_000)
    ),
    "300,000 sizes of the same million numbers": lambda: packed(
        calls_of("torch.Size", tuple_(wide_list()), 300_000)
    ),
    "300,000 objects of the same million arguments": lambda: packed(calls_of("a.B", wide_tuple(), 300_000)),
    "300,000 objects of the same million attributes": lambda: packed(
        built_with("a.B", wide_dict(300_000), 300_000)
    ),
    "300,000 objects of the same million attributes, deep": lambda: packed(
        below(built_with("a.B", wide_dict(300_000), 300_000))
    ),
    "a list of a million numbers, 300,000 times": lambda: packed(shared(wide_list(), 300_000)),
    "a tuple of a million numbers as a key, 300,000 times": lambda: packed(
        op("EMPTY_DICT")
        + MARK
        + wide_tuple()
        + op("BINPUT", bytes([SLOT]))
        + NONE
        + (GET + NONE) * 300_000
        + op("SETITEMS")
    ),
    "a set of a million numbers, 300,000 times": lambda: packed(
        shared(op("EMPTY_SET") + numbers(WIDE) + op("ADDITEMS"), 300_000)
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
    "4,000 optimizers of one state of 300,000": lambda: packed(
        optimizers(4_000, numbered_state(300_000), numbered_group(2))
    ),
    "4,000 optimizers of one group of 300,000": lambda: packed(
        optimizers(4_000, numbered_state(2), numbered_group(300_000))
    ),
    "100,000 optimizers of one state and group of 300": lambda: packed(
        optimizers(100_000, numbered_state(300), numbered_group(300))
    ),
    "a DeviceMesh of 300,000 attributes, 10,000 times": lambda: packed(shared(mesh(300_000), 10_000)),
    "a DeviceMesh of 300,000 attributes, 10,000 times, deep": lambda: packed(
        below(shared(mesh(300_000), 10_000))
    ),
    "20,000 tensors of the same 100,000 attributes": lambda: packed(tensors_of_state(20_000, 100_000)),
    "20,000 tensors of the same 100,000 attributes, deep": lambda: packed(
        deep_tensors_of_state(20_000, 100_000)
    ),
    "300,000 scalars of a type of a million digits": lambda: packed(
        calls_of("numpy.core.multiarray.scalar", tuple_(dtype_named("f" + "9" * WIDE), NONE), 300_000)
    ),
    "300,000 dropped scalars of a type of a million digits": lambda: packed(dropped(300_000)),
    "an array of a million objects, 300,000 times": lambda: packed(shared(object_array(WIDE), 300_000)),
    "an array of 400,000 objects, 1,000 times": lambda: zips.checkpoint(
        stream(proto(), shared(object_array(400_000), 1_000))
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
}

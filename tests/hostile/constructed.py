"""Files by the thousand, each with one thing that torch may take or refuse, the same in every run.

Each is known by its theme and by what is in it, so that a disagreement with torch names its reason.
"""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Callable, Iterator
from itertools import islice

from inspector.pickles.instructions import OPCODES as ALL_OPCODES
from tests.builders import tars
from tests.builders.pickles import (
    MARK,
    NONE,
    STOP,
    call,
    dict_,
    list_,
    name,
    number,
    op,
    proto,
    stream,
    text,
    tuple_,
)
from tests.hostile.making_arguments import combinations
from tests.hostile.palette import (
    FALSE,
    OD,
    STORAGES,
    TRUE,
    floating,
    legacy_file,
    legacy_of,
    made,
    palette,
    stored,
    zip_file,
    zip_of,
)

SEED = 20261122
_CALLS = 900  # of the 22,000 calls of `combinations`
Files = Iterator[tuple[str, bytes]]

OPCODES: dict[str, bytes] = {
    "SHORT_BINUNICODE": op("SHORT_BINUNICODE", b"\1x"),
    "BINUNICODE8": op("BINUNICODE8", struct.pack("<Q", 1) + b"x"),
    "SHORT_BINBYTES": op("SHORT_BINBYTES", b"\1x"),
    "BINBYTES": op("BINBYTES", struct.pack("<I", 1) + b"x"),
    "BYTEARRAY8": op("BYTEARRAY8", struct.pack("<Q", 1) + b"x"),
    "INT": op("INT", b"5\n"),
    "LONG": op("LONG", b"5L\n"),
    "LONG4": op("LONG4", struct.pack("<i", 1) + b"\5"),
    "FLOAT": op("FLOAT", b"1.5\n"),
    "STRING": op("STRING", b"'a'\n"),
    "UNICODE": op("UNICODE", b"a\n"),
    "BINSTRING": op("BINSTRING", struct.pack("<i", 1) + b"x"),
    "POP": number(1) + op("POP") + NONE,
    "DUP": number(1) + op("DUP") + op("TUPLE2"),
    "MEMOIZE": list_() + op("MEMOIZE"),
    "PUT": list_() + op("PUT", b"77\n"),
    "FRAME": op("FRAME", struct.pack("<Q", 1)) + NONE,
    "FROZENSET": MARK + op("FROZENSET"),
    "ADDITEMS": op("EMPTY_SET") + MARK + number(1) + op("ADDITEMS"),
    "LIST": MARK + number(1) + op("LIST"),
    "DICT": MARK + number(1) + NONE + op("DICT"),
    "STACK_GLOBAL": text("torch") + text("float32") + op("STACK_GLOBAL"),
    "NEWOBJ_EX": name("collections.OrderedDict") + tuple_() + dict_() + op("NEWOBJ_EX"),
    "INST": MARK + op("INST", b"collections\nOrderedDict\n"),
    "OBJ": MARK + name("collections.OrderedDict") + op("OBJ"),
}
GLOBALS: dict[str, bytes] = {
    dotted: name(dotted)
    for dotted in (
        *("argparse.Namespace", "mine.Config", "datetime.timedelta", "pathlib.PosixPath", "numpy.dtype"),
        *("builtins.slice", "collections.defaultdict", "torch.nn.modules.linear.Linear", "torch.Generator"),
        *(
            "posix.system",
            "os.getcwd",
            "sys.exit",
            "builtins.eval",
            "__builtin__.getattr",
            "subprocess.Popen",
        ),
        *("torch.load", "torch.hub.load", "functools.partial", "types.FunctionType", "_io.FileIO"),
    )
}
OBJECTS: dict[str, bytes] = {
    "object made": call("mine.Config", number(1)),
    "object made anew": name("mine.Config") + tuple_() + op("NEWOBJ"),
    "object with state": call("mine.Config") + dict_((text("a"), number(1))) + op("BUILD"),
    "object appended to": call("mine.List") + number(1) + op("APPEND"),
    "object with items": call("mine.Dict") + text("k") + number(1) + op("SETITEM"),
    "two classes": list_(call("mine.A"), call("mine.B")),
}
MISUSES: dict[str, bytes] = {
    "append to a dictionary": OD + number(1) + op("APPEND"),
    "append to a tuple": tuple_() + number(1) + op("APPEND"),
    "item of a list": list_() + text("k") + number(1) + op("SETITEM"),
    "item of a set": call("__builtin__.set") + text("k") + number(1) + op("SETITEM"),
    "state of a set": call("__builtin__.set") + dict_((text("a"), NONE)) + op("BUILD"),
    "empty state of a set": call("__builtin__.set") + dict_() + op("BUILD"),
    "state of a list": list_() + dict_() + op("BUILD"),
    "state of a name": name("torch.float32") + dict_() + op("BUILD"),
    "call of a text": text("x") + tuple_() + op("REDUCE"),
    "call of a result": OD + tuple_() + op("REDUCE"),
    "call of a type": call("torch.float32"),
    "call of a storage class": call("torch.FloatStorage"),
    "function made anew": name("_codecs.encode") + tuple_(text("a")) + op("NEWOBJ"),
    "class made anew": name("collections.OrderedDict") + tuple_() + op("NEWOBJ"),
    "odd dictionary": op("EMPTY_DICT") + MARK + number(1) + op("SETITEMS"),
    "list as key": dict_((list_(), NONE)),
    "dictionary as key": dict_((tuple_(dict_()), NONE)),
    "wrong argument of OrderedDict": call("collections.OrderedDict", number(5)),
    "wrong argument of set": call("__builtin__.set", number(5)),
    "wrong argument of Size": call("torch.Size", text("a")),
    "wrong argument of device": call("torch.device", text("nonsense")),
    "wrong argument of complex": call("__builtin__.complex", list_()),
    "arguments that are a list": name("collections.OrderedDict") + list_() + op("REDUCE"),
    "persistent id of a text": text("x") + op("BINPERSID"),
    "persistent id of a module": tuple_(text("module"), number(1)) + op("BINPERSID"),
    "persistent id of nothing": tuple_() + op("BINPERSID"),
    "persistent id without a class": tuple_(text("storage"), NONE, text("0"), text("cpu"), number(2))
    + op("BINPERSID"),
    "memo slot that is empty": op("BINGET", b"\xfe"),
    "stack that is empty": op("TUPLE3") + op("REDUCE") + op("BUILD") * 9,
    "mark that is missing": op("TUPLE") * 9,
    "a byte that is no opcode": b"\xff",
    "text that is no text": op("BINUNICODE", struct.pack("<I", 1) + b"\xff"),
    "old text that is no text": op("SHORT_BINSTRING", b"\1\xff"),
    "name that is no text": op("GLOBAL", b"a\xff\nb\n"),
}
SPOILED: dict[str, bytes] = {**OPCODES, **GLOBALS, **OBJECTS, **MISUSES}


def calls() -> Files:
    """Calls of listed names, drawn from all combinations."""
    drawn = random.Random(SEED).sample([one for one in combinations() if "cuda" not in one.callable], _CALLS)
    for one in drawn:
        yield f"{one.callable} {one.what}", zip_file(one.push)


def receivers() -> Files:
    """Everything that can be done to a value, with a value of each kind."""
    deeds = {
        "APPEND": number(1) + op("APPEND"),
        "APPENDS": MARK + number(1) + op("APPENDS"),
        "APPENDS of nothing": MARK + op("APPENDS"),
        "SETITEM": text("k") + number(1) + op("SETITEM"),
        "SETITEMS": MARK + text("k") + number(1) + op("SETITEMS"),
        "SETITEMS of nothing": MARK + op("SETITEMS"),
        "SETITEMS of a key": MARK + text("k") + op("SETITEMS"),
        "BUILD of None": NONE + op("BUILD"),
        "BUILD of {}": dict_() + op("BUILD"),
        "BUILD of a dict": dict_((text("a"), number(1))) + op("BUILD"),
        "BUILD of ()": tuple_() + op("BUILD"),
        "BUILD of a pair": tuple_(NONE, dict_((text("a"), number(1)))) + op("BUILD"),
        "BUILD of three": tuple_(FALSE, NONE, OD) + op("BUILD"),
        "BUILD of a view": tuple_(stored("s-float"), number(0), tuple_(number(4)), tuple_(number(1)))
        + op("BUILD"),
        "BUILD of five": tuple_(made(), NONE, NONE, FALSE, OD) + op("BUILD"),
        "REDUCE": tuple_() + op("REDUCE"),
        "NEWOBJ": tuple_() + op("NEWOBJ"),
        "BINPERSID": op("BINPERSID"),
    }
    for color, push in palette().items():
        for deed, instructions in deeds.items():
            yield f"{deed} on {color}", zip_file(push + instructions)


def keys() -> Files:
    for color, push in palette().items():
        yield f"{color} as key", zip_file(dict_((push, NONE)))
        yield f"{color} in a tuple as key", zip_file(dict_((tuple_(push), NONE)))
        yield f"{color} as key of an OrderedDict", zip_file(OD + push + NONE + op("SETITEM"))


def storages() -> Files:
    """Persistent ids with one part exchanged, left out or added; in both forms."""
    yield from _storages("zip", zip_file, [])
    yield from _storages("legacy", legacy_file, [NONE])


def _storages(form: str, wrap: Callable[[bytes], bytes], tail: list[bytes]) -> Files:
    # No other value has this storage: a key that torch has read before is looked at no further.
    right = [text("storage"), name("torch.DoubleStorage"), text("s-double"), text("cpu"), number(4), *tail]
    given = {f"{count} parts": (right + [NONE] * 8)[:count] for count in range(8)}
    given |= {repr(word): [text(word), *right[1:]] for word in ("Storage", "storage ", "module", "STORAGE")}
    for old in (b"\7storage", b"\6module"):
        given[f"{old!r} of Python 2"] = [op("SHORT_BINSTRING", old), *right[1:]]
    colors = palette(legacy=form == "legacy")
    for place in range(len(right)):
        # What the list of keys does not name has whatever bytes are in memory: a few files will do.
        few = ("'cpu'", "4", "(1,)") if (form, place) == ("legacy", 2) else colors
        for color in few:
            given[f"part {place} is {color}"] = [*right[:place], colors[color], *right[place + 1 :]]
    for title, parts in given.items():
        yield f"{form}: {title}", wrap(tuple_(*parts) + op("BINPERSID"))
    for key in STORAGES:
        yield f"{form}: storage {key}", wrap(stored(key, legacy=form == "legacy"))
        yield f"{form}: tensor of {key}", wrap(made(key, legacy=form == "legacy"))


def opcodes() -> Files:
    pushes = {**OPCODES}
    for version in (None, 0, 1, 2, 3, 4, 5, 6, 255):
        yield f"protocol {version}", zip_file(number(1), protocol=version)
        yield f"legacy protocol {version}", legacy_file(number(1), begin=version)
    for title, push in pushes.items():
        for version in (2, 4):
            yield f"{title} under protocol {version}", zip_file(push, protocol=version)
        yield f"legacy {title}", legacy_file(push)
        yield f"{title} behind an unlisted name", zip_file(list_(name("mine.Config"), push))
        yield f"{title} before an unlisted name", zip_file(list_(push, name("mine.Config")))
    for code, info in ALL_OPCODES.items():
        yield f"{info.name} on nothing", zip_file(bytes([code]))
        yield (
            f"{info.name} on little",
            zip_file(number(1) + text("a") + MARK + bytes([code]) + b"\1\0\0\0a\n"),
        )


def protocols() -> Files:
    """What CPython's own pickler writes of plain values, in every protocol and both forms."""
    values = {
        "dict": {"a": 1, 2: [1.5, None, True], "t": (1, 2, 3, 4)},
        "bytes": b"ab",
        "long": 1 << 70,
        "negative": -5,
        "text": "\u00e9" * 300,
        "set": {1},
        "frozenset": frozenset({1}),
        "complex": 1j,
        "bytearray": bytearray(b"ab"),
        "shared": [[1]] * 2,
        "nested": [[[[]]]],
    }
    for title, value in values.items():
        for version in range(6):
            data = pickle.dumps(value, version)
            yield f"{title} in protocol {version}", zip_of(data)
            yield f"legacy {title} in protocol {version}", legacy_of(data)
            yield f"legacy {title} all in protocol {version}", legacy_of(data, protocol=version)


_SPELLED = """
    collections|OrderedDict __builtin__|set builtins|set builtins|list builtins|dict __builtin__|long
    __builtin__|unicode copy_reg|_reconstructor itertools|imap torch|float32 torch|float torch.|float32
    torch|torch.float32 torch|Size torch|Tensor torch._utils|_rebuild_tensor_v2
    torch|_utils._rebuild_tensor_v2 torch._utils|_rebuild_x torch.storage|_LegacyStorage
    torch.storage|UntypedStorage torch|UntypedStorage torch.nn|Parameter torch.nn.parameter|Parameter
    torch.nn.parameter|Buffer torch.cuda|FloatStorage torch.cuda|UntypedStorage torch|DoubleStorage
    torch|QInt8Storage torch|ComplexFloatStorage torch|strided torch|sparse_coo torch|per_tensor_affine
    torch.serialization|_get_layout torch._C|Generator torch|uint7 torch|int8 torch|bits8
    torch|float8_e4m3fn torch|float4_e2m1fn_x2 torch.utils|_rebuild_tensor _codecs|encode codecs|encode
    os|system os.path|join posix|system nt|system sys|exit OS|system builtins|eval builtins|getattr
    __builtin__|eval subprocess|Popen torch.nested._internal.nested_tensor|_rebuild_njt
    torch._dynamo.decorators|_DimRange torch.distributed.device_mesh|DeviceMesh
    torch.distributed.tensor|DTensor torchevil._utils|_rebuild_tensor_v2 collections|ordereddict
    collections.abc|Set __builtin__|reduce __builtin__|xrange UserDict|UserDict Queue|Queue
    StringIO|StringIO mine|<lambda> mine|A.B.C
"""


def names() -> Files:
    spelled = [word.replace("|", "\n") for word in _SPELLED.split()]
    spelled += [
        "torch\n float32",
        "torch\nfloat32 ",
        "\ntorch.float32",
        "torch\n",
        "\n",
        "sys \nexit",
        "\xe9\n\u20ac",
        "a" * 300 + "\nb",
    ]
    for spelling in spelled:
        push = op("GLOBAL", f"{spelling}\n".encode())
        yield f"name {spelling!r}", zip_file(push)
        yield f"call of {spelling!r}", zip_file(push + tuple_() + op("REDUCE"))
        yield f"legacy name {spelling!r}", legacy_file(push)
    yield "name that is no text", zip_file(op("GLOBAL", b"a\xff\nb\n"))
    yield "name that ends in \\r", zip_file(op("GLOBAL", b"collections\r\nOrderedDict\r\n"))
    for title, push in {**GLOBALS, **OBJECTS, **MISUSES}.items():
        yield title, zip_file(push)
        yield f"legacy {title}", legacy_file(push)
        yield f"{title} behind a bad call", zip_file(list_(call("torch.device", text("nope")), push))


def geometries() -> Files:
    """Views with odd offsets, sizes and strides of storages of several types."""
    big, huge = 1 << 40, 1 << 62
    offsets = [
        number(0),
        number(1),
        number(4),
        number(5),
        number(-1),
        number(huge),
        NONE,
        TRUE,
        floating(1.0),
    ]
    shapes = [*((), (4,), (2, 2), (5,), (0,), (-1,), (big,), (huge, 4), (1, 1, 4), (4, 0), (1,) * 70)]
    strides = [(), (1,), (2, 1), (0,), (-1,), (1, 1), (big,), (1,) * 70, (4, 4, 1), (1, 4)]
    chance = random.Random(SEED)
    grid = [(offset, shape, stride) for offset in offsets for shape in shapes for stride in strides]
    for offset, shape, stride in chance.sample(grid, 260):
        for form, wrap in (("zip", zip_file), ("legacy", legacy_file)):
            key = chance.choice(("s-float", "s-long", "s-byte", "s-complex", "s-quint4", "s-empty"))
            view = call(
                *("torch._utils._rebuild_tensor_v2", stored(key, legacy=form == "legacy"), offset),
                *(tuple_(*map(number, shape)), tuple_(*map(number, stride)), FALSE, OD),
            )
            yield f"{form}: {key} at {offset!r} of {shape[:4]} by {stride[:4]}", wrap(view)


def records() -> Files:
    """Facts beside the pickle, and storages whose record does not fit."""
    body = dict_((text("w"), made()))
    for order in (b"little", b"big", b"Little", b"little\n", b"", b"\xff"):
        yield f"byteorder {order!r}", zip_file(body, byteorder=order)
    for version in (
        b"3",
        b"1\n",
        b"0",
        b"10",
        b"11",
        b"x",
        b"",
        b" 3",
        b"3 ",
        b"-1",
        b"03",
        b"3.0",
        b"99" * 12,
    ):
        yield f"version {version!r}", zip_file(body, version=version)
    for fact in (".format_version", ".storage_alignment", "constants.pkl", ".data/version", "code/x.py"):
        yield f"record {fact}", zip_file(body, **{fact: b"1"})
    yield "alignment x", zip_file(body, **{".storage_alignment": b"x"})
    for key in STORAGES:
        for numel in (0, 1, 3, 4, 5, -1, 1 << 20, 1 << 62, (1 << 63) - 1, 1 << 63):
            cls, _, _ = STORAGES[key]
            pid = tuple_(text("storage"), name(cls), text(key), text("cpu"), number(numel))
            yield f"{key} of {numel} elements", zip_file(pid + op("BINPERSID"))
    for location in ("", "cpu", "cpu:0", "CPU", "meta", "nowhere", "cuda", "\u00e9"):
        pid = tuple_(text("storage"), name("torch.FloatStorage"), text("s-float"), text(location), number(4))
        yield f"location {location!r}", zip_file(pid + op("BINPERSID"))


def old_files() -> Files:
    """The pickles around the object of a legacy file, and its views."""
    body = dict_((text("w"), made(legacy=True)))
    for version in (0, 1, 2, 3, 4, 5):
        yield f"all in protocol {version}", legacy_file(body, protocol=version)
    for magic in (0, None, "x", b"", 1.5, [], 0x1950A86A20F9469CFC6C + 1):
        yield f"magic {magic!r}", legacy_file(body, magic=magic)
    for version in (1000, 1001.0, True, None, "1001", [1001], 1 << 70):
        yield f"version {version!r}", legacy_of(stream(proto(), body), version=version)
    for info in (None, {}, 5, "x", {"a": [1]}, object):
        yield f"facts {info!r}", legacy_file(body, info=info)
    for listed in (
        *(["s-float"], ("s-float",), {"s-float"}, {"s-float": 1}, "s-float", [], [b"s-float"], None, 5),
        *(["s-float", "s-float"], ["other"], ["s-float", "other"], [["s-float"]], [None], ""),
    ):
        yield f"keys {listed!r}", legacy_file(body, keys=listed)
    views = [
        ("v", 0, 4),
        ("v", 1, 2),
        ("v", 0, 5),
        ("v", -1, 2),
        ("v", 5, 1),
        ("s-float", 0, 2),
        ("v", 0, -1),
    ]
    for view in views:
        pid = tuple_(
            *(text("storage"), name("torch.FloatStorage"), text("s-float"), text("cpu"), number(4)),
            tuple_(text(view[0]), number(view[1]), number(view[2])),
        )
        yield f"view {view}", legacy_file(pid + op("BINPERSID"))
        yield (
            f"tensor of view {view}",
            legacy_file(
                call(
                    *("torch._utils._rebuild_tensor_v2", pid + op("BINPERSID"), number(0)),
                    *(tuple_(number(2)), tuple_(number(1)), FALSE, OD),
                )
            ),
        )
    yield from {
        "no storages behind": legacy_file(body)[:-24],
        "short storages": legacy_file(body)[:-4],
        "more behind": legacy_file(body) + b"more",
        "a module": legacy_file(
            tuple_(text("module"), name("mine.Net"), NONE, NONE) + op("BINPERSID") + tuple_() + op("REDUCE")
        ),
        "a tar file": tars.checkpoint(
            stream(proto(), dict_((text("w"), tars.reference(1)))),
            [tars.Storage(7, "cpu", bytes(16))],
            [tars.Tensor(1, 7, (4,), (1,))],
        ),
    }.items()


def memos() -> Files:
    """The memo: slots filled, empty, filled twice, and read by each instruction."""
    put, get = op("BINPUT", b"\1"), op("BINGET", b"\1")
    for title, push in {
        "put and got": list_() + put + op("BINGET", b"\1") + op("TUPLE2"),
        "long": list_() + op("LONG_BINPUT", b"\0\1\0\0") + op("LONG_BINGET", b"\0\1\0\0") + op("TUPLE2"),
        "never put": get,
        "long, never put": op("LONG_BINGET", b"\0\0\0\1"),
        "put twice": number(1) + put + number(2) + put + get + op("TUPLE3"),
        "put of nothing": put,
        "GET": number(1) + put + op("GET", b"1\n") + op("TUPLE2"),
        "PUT": number(1) + op("PUT", b"1\n"),
        "put across a mark": MARK + number(1) + put + op("TUPLE") + get + op("TUPLE2"),
        "list in itself": list_() + put + get + op("APPEND"),
        "dict in itself": dict_() + put + text("a") + get + op("SETITEM"),
        "name": name("torch.float32") + put + get + op("TUPLE2"),
        "tensor": made() + put + get + op("TUPLE2"),
        "storage": stored("s-float") + put + get + op("TUPLE2"),
        "filled later": list_()
        + put
        + call("builtins.set", get)
        + op("TUPLE2")
        + get
        + number(1)
        + op("APPEND"),
        "left below": number(1) + number(2),
        "bad call left below": call("torch.device", text("nope")) + number(2),
        "name left below": name("mine.Config") + number(2),
    }.items():
        yield f"memo: {title}", zip_file(push)
        if title not in {"tensor", "storage"}:
            yield f"legacy memo: {title}", legacy_file(push)


def broken() -> Files:
    """Streams that end early, go on, or have odd operands."""
    whole = stream(proto(), dict_((text("w"), made()), (text("b"), number(70_000))))
    for cut in range(0, len(whole), 7):
        yield f"cut at {cut}", zip_of(whole[:cut])
        yield f"legacy, cut at {cut}", legacy_of(whole[:cut])
    yield "more behind", zip_of(whole + whole)
    for title, push in {
        "text past the end": op("BINUNICODE", struct.pack("<I", 999)) + b"x",
        "surrogates": op("BINUNICODE", b"\3\0\0\0\xed\xa0\x80"),
        "text that is no text": op("BINUNICODE", b"\1\0\0\0\xff"),
        "long of nothing": op("LONG1", b"\0"),
        "long of 255": op("LONG1", b"\xff" + b"\1" * 255),
        "old text that is no text": op("SHORT_BINSTRING", b"\1\xff"),
        "two protocols": proto(3) + number(1) + proto(9),
        "no values": b"",
        "a mark": MARK,
        "marks": MARK * 3 + number(1),
        "value under a mark": number(1) + MARK,
    }.items():
        yield title, zip_file(push)
        yield f"legacy {title}", legacy_file(push)
    yield "nothing", zip_of(b"")
    yield "STOP", zip_of(STOP)


def mixtures() -> Files:
    """Honest values in a tree, then what is spoiled among them."""
    chance = random.Random(SEED + 1)
    honest = list(palette().values())
    for count in [*range(150), *SPOILED]:
        parts = chance.choices(honest, k=chance.randint(2, 7))
        if count in SPOILED:
            parts.insert(chance.randint(0, len(parts)), SPOILED[count])
        tree = dict_(*((text(f"k{at}"), part) for at, part in enumerate(parts)))
        deep = chance.choice((tree, list_(tree), tuple_(tree, tree), OD + text("m") + tree + op("SETITEM")))
        yield f"mixture {count}", zip_file(deep, protocol=chance.choice((2, 2, 3)))


THEMES = {
    theme.__name__: theme
    for theme in (
        *(calls, receivers, keys, storages, opcodes, protocols, names, geometries, records, old_files),
        *(memos, broken, mixtures),
    )
}


def constructed(step: int = 1) -> dict[str, bytes]:
    """All files, or one in so many of each theme."""
    return {
        f"{theme}: {title}": data
        for theme, make in THEMES.items()
        for title, data in islice(make(), 0, None, step)
    }

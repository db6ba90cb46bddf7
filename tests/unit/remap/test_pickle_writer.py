from __future__ import annotations

import collections
import dbm
import io
import pickle
import struct
from typing import Any

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.persistent_ids import NO_DEVICE, StorageId, parse_storage_id
from inspector.errors import CancelledError, DamagedError, ExportError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.walk import walk
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, StoredTensor, Value
from inspector.progress import Progress
from inspector.remap.pickle_writer import (
    Rebuilding,
    StorageName,
    Writing,
    filled_pairs,
    is_usual,
    names_are_present,
    refuse_name,
    refuse_odd,
    refuse_stored,
    view_of,
    write_pickle,
)
from inspector.remap.storages import Storages, Viewed
from tests.builders import pickles
from tests.sweep import table

NODE = PersistentId(("storage",))
VIEW = Global("torch._utils", "_rebuild_tensor_v2")


@table(
    ("call", "expected"),
    [
        (Call(VIEW, (NODE, 0, (), ()), "reduce"), NODE),
        (Call(Global("torch._utils", "_rebuild_qtensor"), (NODE, 3, (), ()), "reduce"), NODE),
        (Call(VIEW, (NODE, 0, ()), "reduce"), None),
        (Call(VIEW, ("storage", 0, (), ()), "reduce"), None),
        (Call(VIEW, (NODE, "0", (), ()), "reduce"), None),
        (Call(VIEW, [NODE, 0, (), ()], "reduce"), None),
        (Call(Global("mine", "_rebuild_tensor_v2"), (NODE, 0, (), ()), "reduce"), None),
        (Call(Global("torch._utils", "_rebuild_parameter"), (NODE, 0, (), ()), "reduce"), None),
        (Call("_rebuild_tensor_v2", (NODE, 0, (), ()), "reduce"), None),
    ],
)
def test_views_are_calls_of_torch_with_a_storage(call, expected) -> None:
    assert view_of(call) is expected


HOOKS = Call(Global("collections", "OrderedDict"), (), "reduce")
STORAGE = PersistentId(("storage", Global("torch", "FloatStorage"), "0", "cpu", 4))


def hooks(**how: object) -> Call:
    made = Call(HOOKS.func, (), "reduce")
    for name, value in how.items():
        setattr(made, name, value)
    return made


@table(
    ("arguments", "expected"),
    [
        ((STORAGE, 0, (2, 2), (2, 1), False, HOOKS), True),
        ((STORAGE, 0, (), (), True, HOOKS), True),
        ((STORAGE, 0, (), (), False, HOOKS, Dict([])), False),
        ((STORAGE, 0, (), (), None, HOOKS), False),
        ((STORAGE, 0, (), (), False, None), False),
        ((STORAGE, 0, (), (), False, hooks(state=1)), False),
        ((STORAGE, 0, (), (), False, hooks(pairs=[(1, 1)])), False),
        ((STORAGE, 0, (), (), False, hooks(args=(1,))), False),
        ((STORAGE, 0, (), (), False, hooks(func=None)), False),
        ((NODE, 0, (), (), False, HOOKS), False),
        ((STORAGE, 0, [2], (1,), False, HOOKS), False),
        ((STORAGE, 0, (2.0,), (1,), False, HOOKS), False),
    ],
)
def test_usual_views_are_told_from_others(arguments, expected) -> None:
    assert is_usual(arguments) is expected


ORDERED = Global("collections", "OrderedDict")


@table(
    ("func", "args", "kind", "expected"),
    [
        (ORDERED, (), "reduce", ((), [("b", 2)])),
        (ORDERED, ([["a", 1], ("c", 3)],), "reduce", ((), [("a", 1), ("c", 3), ("b", 2)])),
        (ORDERED, (Dict([("a", 1)]),), "reduce", ((), [("a", 1), ("b", 2)])),
        (ORDERED, ([["a", 1, 1]],), "reduce", (([["a", 1, 1]],), [("b", 2)])),
        (ORDERED, ("ab",), "reduce", (("ab",), [("b", 2)])),
        (ORDERED, ([["a", 1]],), "newobj", (([["a", 1]],), [("b", 2)])),
        (ORDERED, None, "reduce", (None, [("b", 2)])),
        (Global("collections", "Counter"), ([["a", 1]],), "reduce", (([["a", 1]],), [("b", 2)])),
    ],
)
def test_what_fills_an_ordered_dictionary_is_pairs_wherever_it_is_written(func, args, kind, expected) -> None:
    made = Call(func, args, kind)
    made.pairs = [("b", 2)]
    assert filled_pairs(made) == expected


def test_bytes_that_stayed_in_the_file_are_not_made_up() -> None:
    how = Writing(data=b"abcdef")
    assert how.bytes_of(Blob("bytes", 1, 3)) == b"bcd"
    with pytest.raises(ExportError, match="a value of 30 bytes, which is no tensor, is too large"):
        how.bytes_of(Blob("bytes", 1, 30))


@table(
    ("module", "name", "match"),
    [
        ("a\nb", "c", "a name of two lines"),
        ("a", "b\nc", "a name of two lines"),
        ("a", "\ud800", r"no text: 'a.\\ud800'"),
        ("caf\\xe9", "b", "no text"),
        ("copyreg", "extension_300", "extension code"),
        ("copyreg", "extension_-3", "extension code"),
    ],
)
def test_names_without_a_spelling_are_refused(module, name, match) -> None:
    with pytest.raises(ExportError, match=match):
        refuse_name(module, name)


def test_streams_that_readers_differ_about_are_refused() -> None:
    refuse_odd(pickles.read(b"]"))
    with pytest.raises(DamagedError, match="differently"):
        refuse_odd(pickles.read(pickles.op("EXT1", b"\x05")))


@table(
    ("data", "expected"),
    [
        (b"\x80\x04\x8c\x03dbm\x8c\x05error\x93.", True),
        (b"\x80\x03cdbm\nerror\n.", True),
        (b"\x80\x02cdbm\nerror\n.", False),
        (b"\x80\x03citertools\nizip\n.", True),
        (b"\x80\x03citertools\nchain\n.", False),
        (pickle.dumps({1}, 4), False),
    ],
)
def test_names_of_python_2_are_told_by_the_protocol(data, expected) -> None:
    assert names_are_present(read_pickle(data)) is expected


FLOATS = StorageId("w", "float32", 4, NO_DEVICE, 16, False, None)
EIGHTS = StorageId("q", "float8_e4m3fn", 1, NO_DEVICE, 8, False, None)
SHORTS = StorageId("s", "uint16", 2, NO_DEVICE, 4, False, None)


def container(root: Value) -> Container:
    ids = {one.key: one for one in (FLOATS, EIGHTS, SHORTS)}
    return Container(
        path="x",
        format="tiny",
        file_nbytes=0,
        root=root,
        storage_ids=ids,
        stored={key: StoredBytes(0, 0, one.nbytes) for key, one in ids.items()},
    )


def written(*tensors: StoredTensor, compact: bool = False) -> tuple[list[tuple[object, ...]], Storages]:
    """What this program reads of the tensors once they are written as a pickle, and their storages."""
    root = Dict([(str(number), one) for number, one in enumerate(tensors)])
    source = container(root)
    viewed = Viewed(source)
    how = Writing(naming=viewed, rebuilt=Rebuilding(source.storage_ids).call_for)
    write_pickle(root, how)
    named = Storages(source, lambda _key, _tag: "cpu", str, viewed.cuts() if compact else {})
    how = Writing(naming=named, rebuilt=Rebuilding(source.storage_ids).call_for)
    stream = read_pickle(write_pickle(root, how))
    rows = walk(stream.root, DEFAULT_LIMITS, Progress()).tensors
    return [(row.dtype, row.shape, row.stride, row.storage_offset, row.problem) for row in rows], named


def test_tensor_is_a_call_of_the_function_that_torch_writes() -> None:
    rows, named = written(
        StoredTensor("w", "float32", (2, 3)),
        StoredTensor("w", "float32", (3, 2), (1, 3), 2),
        StoredTensor("q", "float8_e4m3fn", (2, 4)),
        StoredTensor("s", "uint16", (4,)),
        StoredTensor("w", "int32", (16,)),
    )
    assert rows == [
        ("float32", (2, 3), (3, 1), 0, None),
        ("float32", (3, 2), (1, 3), 2, None),
        ("float8_e4m3fn", (2, 4), (4, 1), 0, None),
        ("uint16", (4,), (1,), 0, None),
        ("int32", (16,), (1,), 0, None),
    ]
    names = {piece.source: (piece.name.cls[1], piece.name.numel) for piece in named.pieces.values()}
    assert names == {"w": ("FloatStorage", 16), "q": ("UntypedStorage", 8), "s": ("UntypedStorage", 8)}


def test_only_what_is_viewed_is_kept_where_that_is_asked_for() -> None:
    rows, named = written(StoredTensor("w", "float32", (2,), offset=12), compact=True)
    assert rows == [("float32", (2,), (1,), 0, None)]
    assert [piece.ranges for piece in named.pieces.values()] == [((48, 56),)]


def test_one_tensor_in_two_places_is_one_object() -> None:
    shared = StoredTensor("w", "float32", (2,))
    root = Dict([("a", shared), ("b", shared)])
    source = container(root)
    how = Writing(
        naming=Storages(source, lambda _key, _tag: "cpu", str),
        rebuilt=Rebuilding(source.storage_ids).call_for,
    )
    pairs = read_pickle(write_pickle(root, how)).root.pairs
    assert pairs[0][1] is pairs[1][1]


@table(
    "tensor",
    [
        StoredTensor("lost", "float32", (1,)),
        StoredTensor("w", "float6_e2m3", (1,)),
        StoredTensor("w", "float32", (1,), layout="q4_0"),
    ],
)
def test_what_torch_has_no_tensors_of_is_refused(tensor: StoredTensor) -> None:
    with pytest.raises(ExportError, match=r"torch has no (strided|q4_0) tensors of"):
        written(tensor)


def test_tensor_needs_its_storages() -> None:
    with pytest.raises(ExportError, match="where none can be written"):
        write_pickle(StoredTensor("w", "float32", (1,)), Writing(rebuilt=refuse_stored))
    with pytest.raises(ExportError, match="where none can be written"):
        write_pickle([StoredTensor("w", "float32", (1,))], Writing())


class Point:
    """Made by NEWOBJ, its attributes set as state."""

    def __init__(self, x: object = None) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    class Inner:
        pass


class Named:
    """Made with keyword arguments."""

    def __new__(cls, *, size: int) -> Any:
        self = super().__new__(cls)
        self.size = size
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int]]:
        return (), {"size": self.size}


def again(value: object, protocol: int, **limits: Any) -> Any:
    """Pickle, read into inert values, write, and unpickle."""
    data = pickle.dumps(value, protocol)
    stream = read_pickle(data, limits=Limits(**limits))
    written = write_pickle(stream.root, Writing(data=stream.data))
    assert written.startswith(b"\x80\x02")
    # What protocol 2 has no instruction for is a call from now on, and then nothing changes any more.
    more = write_pickle(read_pickle(written).root, Writing())
    assert write_pickle(read_pickle(more).root, Writing()) == more
    return pickle.loads(written)


VALUES = [
    None,
    [True, False],
    [0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), 2**31, -(2**63), 2**200, -(2**2100)],
    [0.0, -1.5, float("inf"), 1e-300],
    ["", "text", "ключ", "a\nb", "\ud800", "x" * 300],
    [b"", b"bytes", bytes(range(256))],
    [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    {"a": [1, {"b": ()}], 2: "two", (1, 2): None},
    [{1, 2}, frozenset({"a"}), set()],
    collections.OrderedDict([("a", 1), ("b", collections.OrderedDict())]),
    collections.Counter("abca"),
    collections.defaultdict(list, {"x": [1]}),
    collections.deque([1, 2], 5),
    [Point(3), Point([Point()]), Named(size=3).size, complex(1, 2), range(3), bytearray(b"ab")],
    [Point, Point.Inner, int, len],
]


@table("protocol", [0, 1, 2, 3, 4])
@table("value", VALUES, ids=range(len(VALUES)))
def test_python_gets_the_same_objects(value: object, protocol: int) -> None:
    found = again(value, protocol)
    assert found == value
    assert type(found) is type(value)


def test_objects_made_with_keywords() -> None:
    for protocol in (2, 4):
        assert again(Named(size=3), protocol).size == 3


def test_shared_and_recursive_objects_stay_so() -> None:
    inner = [1]
    outer: dict[str, Any] = {"a": inner, "b": inner, "t": (inner, inner)}
    outer["self"] = outer
    point = Point()
    point.x = [point]
    both = {1, 2}
    found, point, one, other = again([outer, point, both, both], 4)
    assert one is other
    assert found["a"] is found["b"] is found["t"][0]
    assert found["self"] is found
    assert point.x[0] is point


def test_deep_nesting_needs_no_stack_of_python() -> None:
    value = read_pickle(b"\x80\x02" + b"]" * 5001 + b"a" * 5000 + b".").root
    written = write_pickle(value, Writing())
    depth = 0
    inner: Any = read_pickle(written).root
    while inner:
        (inner,) = inner
        depth += 1
    assert depth == 5000


def test_many_objects_fill_slots_beyond_a_byte() -> None:
    value = [[[number]] for number in range(300)]
    assert again([value, value], 2) == [value, value]


def test_large_texts_are_fetched_from_the_stream() -> None:
    value = ["t" * 5000, b"b" * 5000, "ё\ud800" * 5000, 2**80000, -(2**9000)]
    assert again(value, 3, text_nbytes=1000, long_nbytes=100) == value
    one, other = again([value[0]] * 2, 3, text_nbytes=1000)
    assert one is other
    line = b"Vab\\u0451\n0Vab\\u0451\n."
    stream = read_pickle(line, limits=Limits(text_nbytes=2))
    assert pickle.loads(write_pickle(stream.root, Writing(data=line))) == "abё"


@pytest.mark.parametrize(
    ("data", "where"),
    [(b"I" + b"1" * 5000 + b"\n.", "an integer of 5,000 digits"), (b"\x97.", "a buffer that is not")],
)
def test_large_values_that_have_no_spelling_are_refused(data, where) -> None:
    with pytest.raises(ExportError, match=where):
        write_pickle(read_pickle(data).root, Writing(data=data))


def test_objects_of_python_2() -> None:
    old = b"(ccopy_reg\n_reconstructor\n(c__builtin__\nobject\nc__builtin__\nobject\nNtR(S'text'\nt."
    root = read_pickle(old[:-1] + b"t.").root
    assert write_pickle(root, Writing()).count(b"_reconstructor") == 1
    inst = read_pickle(b"(S'x'\ni" + f"{__name__}\nPoint\n".encode() + b".").root
    assert write_pickle(inst, Writing()).endswith(b"oq\x02.")
    bare = read_pickle(b"(i" + f"{__name__}\nPoint\n".encode() + b".").root
    written = write_pickle(bare, Writing())
    assert written.endswith(b"oq\x01.")
    assert vars(pickle.loads(written)) == {}


RAW = [b"", b"plain", b"caf\xe9", bytes(range(256)), b"\xff" * 300]


@table("encoding", ["latin1", "bytes", "cp1251"])
@table("text_nbytes", [1, 1 << 20])
def test_byte_strings_of_python_2_are_written_as_they_were(encoding, text_nbytes) -> None:
    raw = RAW if encoding != "cp1251" else RAW[:3]
    parts = [b"U" + bytes([len(text)]) + text for text in raw if len(text) < 256]
    parts += [b"T" + struct.pack("<i", len(text)) + text for text in raw]
    parts += [b"S" + repr(text)[1:].encode() + b"\n" for text in raw]
    data = b"(" + b"".join(parts) + b"X\x05\0\0\0plainVplai\\u006e\nt."
    root = read_pickle(data, limits=Limits(text_nbytes=text_nbytes)).root
    found = pickle.loads(write_pickle(root, Writing(data=data)), encoding=encoding)
    expected = pickle.loads(data, encoding=encoding)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


@table("protocol", [2, 5])
@table("text_nbytes", [1, 1 << 20])
def test_byte_arrays_stay_byte_arrays_and_as_many_as_they_were(protocol, text_nbytes) -> None:
    one, empty = bytearray(b"\x00\xff"), bytearray()
    value = [one, one, bytearray(one), empty, bytearray(), bytes(one)]
    found = again(value, protocol, text_nbytes=text_nbytes)
    assert found == value
    assert [type(item) for item in found] == [type(item) for item in value]
    assert found[0] is found[1]
    assert len(set(map(id, found[:5]))) == 4


def test_bytes_that_are_shared_are_written_once() -> None:
    value = bytes(range(200)) * 50
    written = write_pickle(read_pickle(pickle.dumps([value] * 9, 4)).root, Writing())
    assert len(written) < 2 * 10_000
    assert pickle.loads(written) == [value] * 9


def test_ordered_dictionaries_of_python_2_are_filled_as_today() -> None:
    pairs = pickles.list_(*(pickles.list_(pickles.text(key), pickles.number(1)) for key in "ab"))
    root = pickles.read(pickles.call("collections.OrderedDict", pickles.tuple_(pairs)[1:-1])).root
    assert pickle.loads(write_pickle(root, Writing())) == collections.OrderedDict(a=1, b=1)


class Loop:
    """Made of a list that holds it."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __reduce__(self) -> Any:
        return Loop, (self.items,), {"items": self.items, "seen": True}


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_contains_itself_while_it_is_made_stays_so(protocol) -> None:
    items: list[Any] = [1]
    pair = (items, 2)
    long = (items, pair, 3, 4)
    loop = Loop(items)
    point = Point()
    point.x = frozenset([1])
    items += [pair, long, loop, point]
    found = again([long, items, loop, pair], protocol)
    assert found[0][0] is found[1]
    assert found[1][1] is found[3] is found[0][1]
    assert found[1][2] is found[0]
    assert found[1][3] is found[2]
    assert found[2].items is found[1]
    assert len(found[1]) == 5


def test_what_has_no_beginning_is_refused() -> None:
    endless = Set([], frozen=True)
    endless.items.append((endless,))
    with pytest.raises(ExportError, match="made of itself"):
        write_pickle(endless, Writing())
    changing = Set([], frozen=False)
    point = Call(Global(__name__, "Point"), (), "newobj")
    point.state, changing.items = Dict([("x", changing)]), [point]
    with pytest.raises(ExportError, match="made of itself"):
        write_pickle(changing, Writing())


@table(("module", "name"), [("a\nb", "c"), ("a", "\ud800"), ("a", "b\\xff"), ("copyreg", "extension_-7")])
def test_names_that_would_be_others_are_refused(module, name) -> None:
    with pytest.raises(ExportError):
        write_pickle([Global(module, name)], Writing())


def test_names_are_not_taken_for_those_of_python_2() -> None:
    value = [dbm.whichdb, {1}, frozenset(), bytearray(b"a"), Point.Inner]
    stream = read_pickle(pickle.dumps(value, 4))
    assert names_are_present(stream)
    assert pickle.loads(write_pickle(stream.root, Writing(names_are_present=True))) == value


def test_it_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        write_pickle([[number] for number in range(9000)], Writing(progress=progress))


# --- storages -----------------------------------------------------------------------------------------------


class Renamed:
    """Renames every storage and moves views by ten elements."""

    def name_storage(self, node: PersistentId) -> StorageName | None:
        own = parse_storage_id(node)
        return None if own is None else StorageName(("torch", "HalfStorage"), f"new{own.key}", "cuda:1", 99)

    def move_view(self, call: Call) -> int | None:
        return call.args[1] + 10


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: object) -> object:
        return pid

    def find_class(self, module: str, name: str) -> object:
        if module == "collections":
            return collections.OrderedDict
        return (lambda *args: (name, *args)) if name.startswith("_rebuild") else f"{module}.{name}"


def loaded(root: Value, **how: Any) -> Any:
    return _Unpickler(io.BytesIO(write_pickle(root, Writing(**how)))).load()


@pytest.mark.parametrize("legacy", [False, True])
def test_storages_get_their_names_and_views_their_places(legacy) -> None:
    root = pickles.read(pickles.tensor(pickles.storage("7"), 2)).root
    name, storage, offset, size, stride, grad, _hooks = loaded(root, naming=Renamed(), legacy=legacy)
    end = (None,) if legacy else ()
    assert storage == ("storage", "torch.HalfStorage", "new7", "cuda:1", 99, *end)
    assert (name, offset, size, stride, grad) == ("_rebuild_tensor_v2", 10, (2,), (1,), False)


def test_other_persistent_ids_stay_in_legacy_files_only() -> None:
    pid = pickles.tuple_(
        pickles.text("module"), pickles.name("mine.Net"), pickles.text("f"), pickles.text("s")
    )
    root = pickles.read(pid + pickles.op("BINPERSID")).root
    assert loaded(root, legacy=True) == ("module", "mine.Net", "f", "s")
    assert loaded(root) == "mine.Net"
    moved = pickles.read(pickles.tensor(pid + pickles.op("BINPERSID"), 2)).root
    assert loaded(moved)[1] == "mine.Net"
    strange = pickles.read(pickles.tuple_(pickles.text("other")) + pickles.op("BINPERSID")).root
    assert loaded(strange) == ("other",)


# --- edits --------------------------------------------------------------------------------------------------


def test_entries_are_renamed() -> None:
    items: list[Value] = [10, 11, 12]
    mapping = Dict([("net.a", 1), ("net.b", items), ("net.c", 3)])
    assert loaded(mapping, prefixes={id(mapping): "net."}) == {"a": 1, "b": [10, 11, 12], "c": 3}
    made = Call(Global("collections", "OrderedDict"), (), "reduce")
    made.pairs = [("x.a", 1), (7, 2)]
    assert loaded(made, prefixes={id(made): "x."}) == {"a": 1, 7: 2}

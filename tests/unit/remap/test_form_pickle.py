"""Values written again: the same to this program, and the same objects to Python's own unpickler."""

from __future__ import annotations

import collections
import copyreg
import io
import pickle
from typing import Any

import pytest

from inspector.containers.persistent_ids import parse_storage_id
from inspector.errors import CancelledError, ExportError
from inspector.limits import Limits
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call, Dict, Global, PersistentId, Value
from inspector.progress import Progress
from inspector.remap.form_pickle import write_pickle
from inspector.remap.form_views import Edits, StorageName, Writing
from tests.builders import pickles


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


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
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
    value = ["t" * 5000, b"b" * 5000, "ё" * 5000]
    assert again(value, 3, text_nbytes=1000) == value
    with pytest.raises(ExportError, match="cannot be written again"):
        again(2**80000, 2, long_nbytes=100)


def test_objects_of_python_2() -> None:
    old = b"(ccopy_reg\n_reconstructor\n(c__builtin__\nobject\nc__builtin__\nobject\nNtR(S'text'\nt."
    root = read_pickle(old[:-1] + b"t.").root
    assert write_pickle(root, Writing()).count(b"_reconstructor") == 1
    inst = read_pickle(b"(S'x'\ni" + f"{__name__}\nPoint\n".encode() + b".").root
    assert b"R" in write_pickle(inst, Writing())
    bare = read_pickle(b"(i" + f"{__name__}\nPoint\n".encode() + b".").root
    assert write_pickle(bare, Writing()).endswith(b")\x81q\x01.")


def test_ordered_dictionaries_of_python_2_are_filled_as_today() -> None:
    pairs = pickles.list_(*(pickles.list_(pickles.text(key), pickles.number(1)) for key in "ab"))
    root = pickles.read(pickles.call("collections.OrderedDict", pickles.tuple_(pairs)[1:-1])).root
    assert pickle.loads(write_pickle(root, Writing())) == collections.OrderedDict(a=1, b=1)


def test_what_contains_itself_while_it_is_made_is_refused() -> None:
    holder: list[Value] = []
    loop = (holder,)
    holder.append(loop)
    with pytest.raises(ExportError, match="made of itself"):
        write_pickle(loop, Writing())


def test_names_of_two_lines_are_refused() -> None:
    with pytest.raises(ExportError, match="a name of two lines"):
        write_pickle(Global("a\nb", "c"), Writing())


def test_it_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        write_pickle([[number] for number in range(9000)], Writing(progress=progress))


# --- storages -----------------------------------------------------------------------------------------------


class Renamed:
    """Gives every storage another name, and moves views by ten elements."""

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


def test_entries_are_left_out_and_renamed() -> None:
    items: list[Value] = [10, 11, 12]
    mapping = Dict([("net.a", 1), ("net.b", items), ("net.c", 3)])
    edits = Edits(drops={id(items): {1}, id(mapping): {2}}, prefixes={id(mapping): "net."})
    assert loaded(mapping, edits=edits) == {"a": 1, "b": [10, 12]}
    made = Call(Global("collections", "OrderedDict"), (), "reduce")
    made.pairs = [("x.a", 1), (7, 2)]
    assert loaded(made, edits=Edits(prefixes={id(made): "x."})) == {"a": 1, 7: 2}


def test_copyreg_makes_objects_with_keywords() -> None:
    assert callable(copyreg.__newobj_ex__)  # what such objects are written as calls of

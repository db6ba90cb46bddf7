from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers import torchscript as code
from inspector.containers import torchscript as objects
from inspector.containers.container import CodeDevice
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import sum_extents
from inspector.containers.torchscript import Code, Members, Objects, TorchScript, is_tensor, read_code
from inspector.errors import CheckpointError
from inspector.limits import Limits
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenPlace
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.progress import Progress
from inspector.safety.verdict import judge
from tests.builders import pickles
from tests.builders.pickles import NONE, call, dict_, list_, new, number, op, proto, stream, text, tuple_
from tests.builders.scripts import CODE, WEIGHTS, evil, net, script, weight
from tests.builders.zips import Record, build_zip
from tests.unit.containers.verdicts import judged_otherwise, kinds, refused_otherwise

CONSTANTS = tuple_(weight("0", "cuda:1"))


def opened(data: bytes) -> Checkpoint:
    return build_checkpoint(read_container(BytesSource(data, "net.pt")))


def test_what_is_in_it_has_the_names_of_its_state_dict() -> None:
    found = opened(script(constants=CONSTANTS, storages=("data/0", "data/1", "data/2", "constants/0")))
    assert (found.format, found.is_program, found.notes) == ("torchscript", True, ())
    assert [(row.keys, row.role, row.device, row.storage) for row in found.tensors] == [
        (("weight",), "parameter", "cpu", "0"),
        (("mean",), "buffer", "cpu", "1"),
        (("kept",), "other", "cpu", "2"),
        (("child", "b"), "parameter", "cpu", "0"),
        (("constants.pkl", 0), "other", "cuda:1", "constants/0"),
    ]
    assert [(one.path, one.device, one.what) for one in found.hidden_devices] == [
        ("code/__torch__.py:6", "cuda:0", HiddenPlace.CODE)
    ]
    assert not any(row.missing for row in found.storages)


def test_bytes_are_found_also_where_they_are_packed() -> None:
    data = script(
        None,
        Record(name="net/constants/0", data=WEIGHTS, method=8),
        constants=CONSTANTS,
        storages=("data/0", "data/1"),
    )
    source = BytesSource(data, "net.pt")
    found = read_extents(source, Limits(), Progress())
    assert set(found.whole) == {"0", "1", "constants/0"}
    assert found.lost == {"2": "its bytes are not in the file"}
    assert sum_extents(source, found.whole, Progress()).faults == {}
    find = TorchScript().finder(source)
    extent = find("constants/0")
    assert extent is not None
    assert (extent.method, extent.nbytes, find("2")) == (8, 16, None)


def test_root_that_is_no_module() -> None:
    found = opened(script(tuple_(weight("0"), weight("1"))))
    assert [row.path for row in found.tensors] == ["data.pkl/0", "data.pkl/1"]


def test_code_that_cannot_be_read_leaves_roles_to_names() -> None:
    data = build_zip(
        Record(name="net/data.pkl", data=stream(proto(), net())),
        Record(name="net/code/__torch__.py", data=CODE.encode(), method=99),
        Record(name="net/constants.pkl", data=stream(proto(), tuple_())),
        Record(name="net/version", data=b"3"),
    )
    found = opened(data)
    assert NoteKind.UNREAD_CODE in kinds(found)
    assert found.hidden_devices == ()
    assert [row.path for row in found.tensors] == ["weight", "mean", "kept", "child/b"]


# --- hostile ------------------------------------------------------------------------------------------------

DEEP = b"]" * 3000 + b"a" * 2999
SETSTATE = CODE + '  def __setstate__(self, x):\n    torch.save(x, "/tmp/x")\n'

HOSTILE: dict[str, tuple[bytes, str, NoteKind | None]] = {
    "payload in data.pkl": (script(evil()), "dangerous", None),
    "payload in constants.pkl": (script(constants=evil()), "dangerous", None),
    "payload in an extra file": (
        script(None, Record(name="net/extra/a.pkl", data=stream(evil()))),
        "dangerous",
        None,
    ),
    "payload that breaks off in an extra file": (
        script(None, Record(name="net/extra/a.pkl", data=stream(evil())[:-1])),
        "dangerous",
        None,
    ),
    "payload in a second data.pkl": (
        script(None, Record(name="net/DATA.pkl", data=stream(evil()))),
        "dangerous",
        NoteKind.SHARED_NAME,
    ),
    "code that writes files while it is loaded": (script(code=SETSTATE), "dangerous", NoteKind.FILE_ACCESS),
    "code that runs while it is loaded": (
        script(code=SETSTATE.replace("torch.save", "torch.add")),
        "runs-code",
        NoteKind.RUNS_AT_LOAD,
    ),
    "no code at all": (script(code=""), "runs-code", None),
    "a wrong checksum": (
        script(None, Record(name="net/x", data=b"")).replace(b"weight", b"WEIGHT", 1),
        "runs-code",
        NoteKind.WRONG_CHECKSUM,
    ),
    "a pickle that is packed and longer than it says": (
        build_zip(
            Record(name="net/constants.pkl", data=stream(proto(), tuple_())),
            Record(name="net/data.pkl", data=stream(proto(), net()) + b"x", nbytes=len(net()) + 3, method=8),
            Record(name="net/version", data=b"3"),
        ),
        "runs-code",
        NoteKind.DAMAGED_RECORD,
    ),
    "storages that are missing": (script(storages=()), "runs-code", NoteKind.LOST_BYTES),
    "a list nested deeply": (script(new("__torch__.Net", (text("a"), DEEP))), "runs-code", NoteKind.TOO_DEEP),
    "keys that are not texts": (
        script(dict_((list_(), weight("0")), (tuple_(), tuple_(weight("1"))))),
        "runs-code",
        None,
    ),
    "a huge record": (
        script(None, Record(name="net/extra/a.pkl", data=b"x", nbytes=1 << 31, method=8)),
        "runs-code",
        None,
    ),
}
REFUSED: dict[str, tuple[bytes, str]] = {
    "keys of one pickle that pass for the other's": (
        script(weight("constants/0")),
        "a storage of data.pkl is named like one of constants.pkl",
    ),
    "no data.pkl": (
        build_zip(
            Record(name="net/constants.pkl", data=b"\x80\x02)."), Record(name="net/version", data=b"3")
        ),
        "the TorchScript archive has no data.pkl",
    ),
    "the first generation": (
        build_zip(Record(name="net/model.json", data=b"{}"), Record(name="net/version", data=b"1")),
        "a TorchScript archive of the first generation",
    ),
    "a pickle that breaks off": (script(b"(" * 9), "the pickle"),
    "an encrypted pickle": (
        build_zip(
            Record(name="net/constants.pkl", data=b"\x80\x02)."),
            Record(name="net/data.pkl", data=b"N.", flags=1),
        ),
        "a zip record is encrypted",
    ),
}


def test_hostile_files_are_never_judged_better_than_they_are() -> None:
    assert judged_otherwise(HOSTILE, opened) == {}


def test_hostile_files_are_refused_in_one_sentence() -> None:
    assert refused_otherwise(REFUSED, opened) == {}


def test_payload_of_a_refused_file_is_told(write: Callable[..., str]) -> None:
    data = build_zip(Record(name="net/data.pkl", data=stream(evil())), Record(name="net/model.json"))
    assert judge(open_checkpoint(write(data))).verdict == "dangerous"  # torch.load would take it for its own
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(write(script(evil(), constants=b"(" * 9)))
    assert [use.dotted for one in caught.value.programs for use in one.stream.globals][:1] == ["os.system"]


def test_archive_that_is_cut_off_keeps_what_is_before_the_cut() -> None:
    data = script(constants=CONSTANTS, storages=("constants/0", "data/0", "data/1", "data/2"))
    for end, paths in (
        (data.index(b"PK\x01\x02"), ["weight", "mean", "kept", "child/b", "constants.pkl/0"]),
        (data.index(b"net/constants.pkl") - 30, ["weight", "mean", "kept", "child/b"]),
    ):
        source = BytesSource(data[:end], "net.pt")
        extents = read_extents(source, Limits(), Progress())
        found = build_checkpoint(extents.container)
        assert (found.format, NoteKind.NO_DIRECTORY in kinds(found)) == ("torchscript", True)
        assert [row.path for row in found.tensors] == paths
        assert (extents.lost, len(extents.whole)) == ({}, len(paths) - 1)
        assert found.refusal.startswith("RuntimeError: PytorchStreamReader failed reading zip archive")
    with pytest.raises(CheckpointError, match="cut off"):
        opened(data[: data.index(b"net/data.pkl")])


def test_tensors_in_attributes_are_no_weights() -> None:
    held = dict_((text("a"), weight("1")), (text("b"), weight("2")))
    found = opened(script(new("__torch__.Net", (text("weight"), weight("0")), (text("held"), held))))
    assert [row.role for row in found.tensors] == ["parameter", "other", "other"]


def read(*records: Record) -> Code:
    source = BytesSource(build_zip(Record(name="net/version", data=b"3"), *records), "a.zip")
    return read_code(TorchScript().opened(source))


def file(name: str, text: bytes, **more: object) -> Record:
    return Record(name=f"net/code/{name}.py", data=text, **more)


def test_each_device_is_told_with_its_line_once() -> None:
    found = read(
        file("b", b'x\ntorch.ones([2], device=torch.device("cpu"))\n'),
        file("__torch__/a", b'torch.device("cuda:0"), torch.device("cuda:0")\n\ntorch.device("cuda:0")'),
    )
    assert found.devices == (
        CodeDevice("cuda:0", "code/__torch__/a.py:1"),
        CodeDevice("cuda:0", "code/__torch__/a.py:3"),
        CodeDevice("cpu", "code/b.py:2"),
    )
    assert found.is_whole


def test_what_names_no_device() -> None:
    texts = (
        b"",
        b"ops.prim.device(x)",
        b'torch.device("a b")',
        b'torch.device("\x1b[31m")',
        b"torch.device(x)",
    )
    assert [read(file("a", text)).devices for text in texts] == [()] * len(texts)


def test_only_code_is_looked_at() -> None:
    said = b'torch.device("cpu")'
    names = ("net/extra/a.py", "net/code/a.txt", "b/code/a.py", "net/code/a.py.debug_pkl")
    assert read(*(Record(name=name, data=said) for name in names)).devices == ()


def test_members_are_those_of_each_class() -> None:
    text = b"""\
class A(Module):
  __parameters__ = ["w", "0", ]
  __buffers__ = ["b\\"", ]
class B(Module):
  __parameters__ = []
  w : Tensor
class C(NamedTuple):
  __parameters__ = ["x", ]
"""
    found = read(file("__torch__/a/b", text)).members
    assert set(found) == {"__torch__.a.b.A", "__torch__.a.b.B"}
    assert found["__torch__.a.b.A"].parameters == {"w", "0"}
    assert found["__torch__.a.b.A"].buffers == {'b\\"'}
    assert found["__torch__.a.b.B"] == (frozenset(), None)


def test_what_runs_at_load_and_what_reaches_for_files() -> None:
    text = (
        b'class A(Module):\n  def __setstate__(self, x):\n    torch.save(x, "a")\n    torch.from_file("b")\n'
    )
    found = read(file("a", text), file("b", b"  def forward(self):\n    torch.savez(x)\n"))
    assert found.runs_at_load == ("code/a.py:2",)
    assert found.files == ("torch.save in code/a.py:3", "torch.from_file in code/a.py:4")


def test_there_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    files = file("a", b"x" * 99 + b'torch.device("cpu")'), file("b", b'torch.device("mps")'), file("c", b"")
    assert [one.device for one in read(*files).devices] == ["cpu", "mps"]
    monkeypatch.setattr(code, "_MOST_NBYTES", 30)  # code that is not read names none
    found = read(*files)
    assert ([one.device for one in found.devices], found.is_whole) == (["mps"], False)
    monkeypatch.setattr(code, "_MOST_RECORDS", 1)
    assert read(*files).devices == ()
    monkeypatch.undo()
    monkeypatch.setattr(code, "_MOST_RECORDS", 2)
    assert not read(*files).is_whole
    monkeypatch.setattr(code, "_MOST_PLACES", 2)
    many = b"\n".join(b'torch.device("cuda:%d")' % number for number in range(5))
    assert len(read(file("a", many), file("b", many)).devices) == 2


MEMBERS = {
    "__torch__.Net": Members(frozenset({"w"}), frozenset({"b"})),
    "__torch__.Old": Members(frozenset("w"), None),
}


def shown(value: Value, names: dict[int, str] | None = None) -> object:
    """A value as Python's own, tensors as what they are for."""
    if isinstance(value, Dict):
        return {key: shown(item, names) for key, item in value.pairs}
    if isinstance(value, list | tuple):
        return [shown(item, names) for item in value]
    return (names or {}).get(id(value), "tensor") if is_tensor(value) else value


def made(*root: bytes) -> object:
    found = Objects(MEMBERS)
    plain = found.plain(pickles.read(*root).root)
    return shown(plain, dict(found.declared))


def test_objects_are_mappings_and_tensors_are_what_their_class_says() -> None:
    root = new(
        "__torch__.Net",
        (text("w"), weight()),
        (text("b"), weight()),
        (text("x"), weight()),
        (number(1), weight()),
        (text("n"), number(3)),
        (text("old"), new("__torch__.Old", (text("w"), weight()), (text("b"), weight()))),
        (text("unknown"), new("__torch__.Other", (text("w"), weight()))),
    )
    assert made(root) == {
        "w": "parameter",
        "b": "buffer",
        "x": "other",
        1: "other",
        "n": 3,
        "old": {"w": "parameter", "b": "buffer"},
        "unknown": {"w": "parameter"},
    }


def test_typed_containers_are_what_they_hold() -> None:
    ints = call("torch.jit._pickle.build_intlist", list_(number(1), number(2)))
    typed = call(
        "torch.jit._pickle.restore_type_tag", dict_((text("k"), weight())), text("Dict[str, Tensor]")
    )
    packed = call("torch.jit._pickle.build_intlist")
    assert made(ints) == [1, 2]
    assert made(typed) == {"k": "tensor"}
    assert isinstance(pickles.read(packed).root, Call)
    assert isinstance(made(packed), Call)  # without arguments it stays what it is
    assert made(tuple_(ints, NONE)) == [[1, 2], None]


def test_a_state_that_is_no_dictionary_stands_for_the_object() -> None:
    packed = Call(Global("__torch__", "Packed"), (), "newobj")
    packed.state = (1, [2])
    assert shown(Objects({}).plain(packed)) == [1, [2]]
    packed.state = packed  # it ends all the same
    assert Objects({}).plain(packed) is packed


def test_a_module_in_two_places_is_listed_in_both_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = new("__torch__.Net", (text("w"), weight()))
    root = new(
        "__torch__.Net", (text("a"), shared + op("BINPUT", b"\x07")), (text("c"), op("BINGET", b"\x07"))
    )
    assert made(root) == {"a": {"w": "parameter"}, "c": {"w": "parameter"}}
    plain = Objects(MEMBERS).plain(pickles.read(root).root)
    assert isinstance(plain, Dict)
    assert plain.pairs[0][1] is not plain.pairs[1][1]
    monkeypatch.setattr(objects, "_MOST_AGAIN", 0)
    plain = Objects(MEMBERS).plain(pickles.read(root).root)
    assert isinstance(plain, Dict)
    assert plain.pairs[0][1] is plain.pairs[1][1]


@pytest.mark.wide
def test_shared_lists_and_loops_end() -> None:
    inner = Dict([("w", 1)])
    module = Call(Global("__torch__", "Net"), (), "newobj")
    module.state = Dict([("a", inner), ("b", inner), ("self", module)])
    plain = Objects(MEMBERS).plain(module)
    assert isinstance(plain, Dict)
    found = dict(plain.pairs)
    assert found["a"] is found["b"]
    assert found["self"] is plain
    # Doubled with each level, it would be longer than any memory.
    value: Value = Call(Global("__torch__", "Net"), (), "newobj")
    for _ in range(60):
        above = Call(Global("__torch__", "Net"), (), "newobj")
        above.state = Dict([("a", value), ("b", value)])
        value = above
    count, stack, seen = 0, [Objects(MEMBERS).plain(value)], set[int]()
    while stack:
        one = stack.pop()
        if isinstance(one, Dict) and id(one) not in seen:
            seen.add(id(one))
            count += len(one.pairs)
            stack += [item for _, item in one.pairs]
    assert count < 2 * objects._MOST_AGAIN

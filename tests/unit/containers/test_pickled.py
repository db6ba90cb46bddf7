from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.containers import pickle_source as module_machine
from inspector.containers import pickled as module
from inspector.containers.codings import LINE, PLAIN, TEXT
from inspector.containers.container import Container
from inspector.containers.numpy_types import created, from_buffer, reconstructed, wrapped
from inspector.containers.opening import read_container
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.containers.pickle_source import Hooks, Place, PlainMachine
from inspector.containers.pickled import (
    Folded,
    NestedFiles,
    Pickle,
    begins_undeclared,
    open_pickled,
)
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import StorageReader
from inspector.errors import BrokenOffError, CancelledError, CheckpointError, ContainerError, PickleError
from inspector.limits import Limits
from inspector.model.build import open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.pickles.oddities import OddityKind
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, StoredTensor, Value
from inspector.progress import Progress
from inspector.safety.verdict import judge
from tests.builders import legacy
from tests.builders.pickles import (
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
from tests.builders.zips import Record, build_zip
from tests.corpus import CORPUS
from tests.sweep import table

OPENER = "torch.storage._load_from_bytes"
FLOATS = np.arange(6, dtype="f4").reshape(2, 3)
ARRAYS = [
    FLOATS,
    np.asfortranarray(FLOATS),
    FLOATS.astype(">f4"),
    np.arange(300, dtype=">i8"),
    np.arange(3, dtype="<u2"),
    np.array([1 + 2j, 3], dtype=">c16"),
    np.array([True, False]),
    np.array(5.0),
    np.zeros((0, 3)),
    np.frombuffer(b"only letters", dtype="u1"),
    np.arange(20_000, dtype="f8"),
]
OTHERS = [
    np.array(["a", "bc"]),
    np.array([1, None], dtype=object),
    np.array([("a", 1)], dtype=[("x", "U1"), ("y", "i4")]),
    np.zeros(2, dtype="M8[ns]"),
    np.ma.masked_array([1.0, 2.0]),
]


def binbytes(data: bytes) -> bytes:
    return op("BINBYTES", len(data).to_bytes(4, "little") + data)


def storage(key: str = "7", location: str = "cuda:1", numel: int = 2, data: bytes | None = None) -> bytes:
    """A legacy file that holds one storage, as a pickled tensor has it."""
    pid = tuple_(text("storage"), name("torch.FloatStorage"), text(key), text(location), number(numel), b"N")
    data = bytes(range(4 * numel)) if data is None else data
    return legacy.checkpoint(stream(proto(), pid, op("BINPERSID")), (key, numel, data))


def tensor(data: bytes) -> bytes:
    hooks = call("collections.OrderedDict")
    args = (
        call(OPENER, binbytes(data)),
        number(0),
        tuple_(number(2)),
        tuple_(number(1)),
        op("NEWFALSE"),
        hooks,
    )
    return call("torch._utils._rebuild_tensor_v2", *args)


def opened(data: bytes, **limits: int) -> Container:
    return Pickle().read(BytesSource(data, "a.pkl"), Limits(**limits), Progress())


def entries(container: Container) -> dict[Any, Value]:
    assert isinstance(container.root, Dict)
    return dict(container.root.pairs)


def bytes_of(data: bytes, container: Container, key: str) -> bytes:
    reader = StorageReader(container, BytesSource(data, "a.pkl"))
    return reader.read(key, 0, reader.nbytes(key))


def checked(data: bytes, path: Path) -> Any:
    path.write_bytes(data)
    return open_checkpoint(str(path))


# --- arrays -------------------------------------------------------------------------------------------------


def test_arrays_are_tensors_with_their_bytes() -> None:
    wrong = []
    for protocol in range(6):
        for array in ARRAYS:
            data = pickle.dumps({"a": array, "again": array}, protocol)
            container = opened(data)
            found = entries(container)["a"]
            where = protocol, array.dtype.str, array.shape
            if not isinstance(found, StoredTensor) or entries(container)["again"] is not found:
                wrong.append((where, type(found)))
                continue
            own = container.storage_ids[found.key]
            raw = bytes_of(data, container, found.key)
            made = np.frombuffer(raw, array.dtype.newbyteorder("<"))
            steps = None if found.stride is None else [step * array.itemsize for step in found.stride]
            again = np.ndarray(found.shape, made.dtype, made.tobytes(), strides=steps)
            if not np.array_equal(again, array) or own.location != NO_DEVICE:
                wrong.append((where, again))
    assert wrong == []


def test_arrays_that_torch_has_not_stay_what_they_are() -> None:
    for protocol in range(6):
        container = opened(pickle.dumps(dict(enumerate(OTHERS)), protocol))
        assert {type(value) for value in entries(container).values()} == {Call}
        assert container.storage_ids == {}


def test_arrays_that_lie_are_no_tensors() -> None:
    honest = pickle.dumps({"a": FLOATS}, 4)
    assert b"(K\x01K\x02K\x03\x86" in honest
    longer = honest.replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86")
    other = stream(proto(4), call("numpy._core.numeric._frombuffer", b"N", b"N", b"N", b"N"))
    odd = stream(proto(4), call("numpy._core.multiarray._reconstruct"), tuple_(b"N"), op("BUILD"))
    for data in (longer, stream(proto(), dict_((text("a"), other[2:-1]), (text("b"), odd[2:-1])))):
        assert not any(isinstance(value, StoredTensor) for value in entries(opened(data)).values())


@table(
    "args",
    [
        (),
        (b"N",),
        (text("abc"), text("utf-8")),
        (number(1), text("latin1")),
        (name("m.f"),),
        (call("builtins.list"),),
    ],
)
def test_bytes_that_are_not_at_hand_are_no_array(args: tuple[bytes, ...]) -> None:
    for maker in ("_codecs.encode", "builtins.bytes", "m.f"):
        dtype = call("numpy.dtype", text("u1")) + tuple_(number(3), text("|"), b"N", b"N", b"N") + op("BUILD")
        data = stream(
            proto(4),
            call("numpy._core.numeric._frombuffer", call(maker, *args), dtype, tuple_(number(3)), text("C")),
        )
        assert isinstance(opened(data).root, Call)


def test_arrays_of_classes_of_their_own_and_texts_from_elsewhere_are_left() -> None:
    dtype = call("numpy.dtype", text("u1")) + tuple_(number(3), text("|"), b"N", b"N", b"N") + op("BUILD")
    remembered = text("abc") + op("BINPUT", b"\0") + op("POP")
    encoded = name("_codecs.encode") + tuple_(op("BINGET", b"\0"), text("latin1")) + op("REDUCE")
    for cls, raw in (("m.Own", op("SHORT_BINBYTES", b"\3abc")), ("numpy.ndarray", encoded)):
        made = call("numpy._core.multiarray._reconstruct", name(cls), tuple_(number(0)), text("b"))
        state = tuple_(number(1), tuple_(number(3)), dtype, op("NEWFALSE"), raw)
        data = stream(proto(3), remembered, made, state, op("BUILD"))
        assert isinstance(opened(data).root, Call)


def test_a_long_text_of_bytes_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(3000, dtype="f8")
    data = pickle.dumps({"a": array}, 2)
    container = opened(data, text_nbytes=1000)
    (key,) = container.storage_ids
    assert bytes_of(data, container, key) == array.tobytes()


# --- tensors ------------------------------------------------------------------------------------------------


def test_tensors_are_files_within() -> None:
    data = stream(proto(3), dict_((text("a"), tensor(storage())), (text("b"), tensor(storage("8", "cpu")))))
    container = opened(data)
    assert list(container.storage_ids) == ["0:7", "1:8"]
    assert [one.location for one in container.storage_ids.values()] == ["cuda:1", "cpu"]
    assert [bytes_of(data, container, key) for key in container.storage_ids] == [bytes(range(8))] * 2
    nested = next(one for one in container.programs if one.kind == "nested")
    assert {node.dotted: node.count for node in nested.stream.globals} == {"torch.FloatStorage": 2}


def test_one_run_of_bytes_is_read_once() -> None:
    data = stream(
        proto(3),
        binbytes(storage()),
        op("BINPUT", b"\0") + op("POP"),
        list_(*[name(OPENER) + op("BINGET", b"\0") + op("TUPLE1") + op("REDUCE")] * 2),
    )
    container = opened(data)
    assert list(container.storage_ids) == ["0:7"]
    assert isinstance(container.root, list)
    assert container.root[0] is container.root[1]


def test_files_within_of_any_kind(tmp_path: Path) -> None:
    pid = tuple_(text("storage"), name("torch.FloatStorage"), text("0"), text("cuda:0"), number(2))
    object_ = stream(proto(), dict_((text("w"), pid + op("BINPERSID"))))
    for method in (0, 8):
        archive = build_zip(
            Record(name="a/data.pkl", data=object_),
            Record(name="a/version", data=b"3\n"),
            Record(name="a/data/0", data=bytes(8), method=method),
        )
        data = stream(proto(3), call(OPENER, binbytes(archive)))
        container = opened(data)
        assert isinstance(container.root, Dict)
        assert (container.stored["0:0"].offset is None) == bool(method)
        assert bytes_of(data, container, "0:0") == bytes(8)
        spelled = stream(
            proto(2), call(OPENER, call("_codecs.encode", text(archive.decode("latin-1")), text("latin1")))
        )
        assert ("0:0" in opened(spelled).stored) == (not method)
    view = tuple_(
        *(text("storage"), name("torch.FloatStorage"), text("7"), text("cpu"), number(2)),
        tuple_(text("v"), number(1), number(1)),
    )
    viewed = legacy.checkpoint(stream(proto(), view, op("BINPERSID")), ("7", 2, bytes(range(8))))
    container = opened(stream(proto(3), list_(call(OPENER, binbytes(viewed)))))
    assert list(container.storage_ids) == ["0:7", "0:v"]
    assert container.stored["0:v"].nbytes == 4
    assert isinstance(container.root, list)
    assert isinstance(container.root[0], PersistentId)
    assert container.root[0].pid[5] == ("0:v", 1, 1)


def changes_of_a_usual_file() -> list[bytes]:
    """Files that begin as the first one did, and are something else."""
    usual = storage()
    start = usual.index(b"X\x07\x00\x00\x00storage")
    head = usual[: start - 3]
    pid = tuple_(text("storage"), name("torch.FloatStorage"), text("7"), text("cpu"), number(2), b"N")
    saved = stream(proto(), pid, op("BINPERSID"))
    keys = pickle.dumps(["7"], 2)
    count = (2).to_bytes(8, "little")
    return [
        head + saved + pickle.dumps(["8"], 2) + count + bytes(8),
        head + saved + keys + (3).to_bytes(8, "little") + bytes(12),
        head + saved + keys + count + bytes(9),
        head + saved + keys + count + bytes(7),
        head + stream(proto(), number(1)) + pickle.dumps([], 2),
        head + stream(proto(), tuple_(text("other")), op("BINPERSID")) + keys,
        head + saved[:20],
        head
        + stream(proto(), call("posix.system", text("id")), op("POP"), pid, op("BINPERSID"))
        + keys
        + count,
    ]


def test_what_begins_as_usual_is_read_as_what_it_is(tmp_path: Path) -> None:
    for number_, odd in enumerate(changes_of_a_usual_file()):
        data = stream(proto(3), list_(call(OPENER, binbytes(storage())), call(OPENER, binbytes(odd))))
        alone = stream(proto(3), list_(call(OPENER, binbytes(odd))))
        both, one = checked(data, tmp_path / "a.pkl"), checked(alone, tmp_path / "b.pkl")
        assert {use.name for use in one.globals} <= {use.name for use in both.globals}, number_
        assert [row.nbytes for row in both.storages][1:] == [row.nbytes for row in one.storages], number_
        assert judge(both).verdict == judge(one).verdict
    assert judge(both).verdict == "dangerous"


# --- several pickles, and what is left of one ---------------------------------------------------------------


def test_several_dumps_are_a_list() -> None:
    data = pickle.dumps({"a": 1}) + pickle.dumps([2], 2) + pickle.dumps(3, 0)
    found = open_pickled(BytesSource(data, "a.pkl"), Limits(), Progress())
    assert found.ends[-1] == len(data)
    assert isinstance(found.container.root, list)
    assert found.container.root[1:] == [[2], 3]
    assert len(found.container.programs) == 1


def test_bytes_behind_are_noted() -> None:
    container = opened(pickle.dumps({"a": 1}) + b"\xff\xff\xff")
    assert [note.sentence for note in container.notes] == [
        "3 more bytes follow the pickle, which are no pickle; pickle.load ignores them."
    ]


@pytest.mark.wide
@table("protocol", range(6))
def test_what_is_whole_of_a_pickle_that_breaks_off(protocol: int) -> None:
    value = {"a": FLOATS, "b": [1, 2, {"c": "d"}], "e": np.arange(900.0), "z": FLOATS + 1}
    whole = pickle.dumps(value, protocol)
    seen: set[tuple[Any, ...]] = set()
    for cut in range(0, len(whole), 37 if len(whole) < 9000 else 97):
        try:
            container = opened(whole[:cut])
        except PickleError:
            continue
        found = entries(container)
        assert list(found) == list(value)[: len(found)]
        assert "cut off" in container.notes[-1].sentence
        seen.add(tuple(found))
    assert ("a", "b", "e") in seen
    assert len(seen) > 1


def test_what_breaks_off_in_the_middle_of_anything() -> None:
    ordered = call("collections.OrderedDict")
    parts = [
        (ordered + op("MARK") + text("a") + number(1) + text("b") + op("MARK") + number(2), {"a": 1}),
        (op("EMPTY_LIST") + op("MARK") + number(1) + name("m.f") + op("MARK") + number(2), [1]),
        (op("EMPTY_LIST") + op("MARK") + number(1) + call("m.f") + op("MARK") + number(2), [1]),
        (op("EMPTY_DICT") + text("a") + op("EMPTY_LIST") + op("MARK") + number(3), {"a": [3]}),
    ]
    for data, wanted in parts:
        root = opened(proto() + data).root
        pairs = getattr(root, "pairs", None)
        assert (root if pairs is None else dict(pairs)) == wanted
    for data in (op("MARK"), name("m.f") + op("MARK") + number(1), number(1), call("m.f"), op("EMPTY_DICT")):
        with pytest.raises(PickleError):
            opened(proto() + data)


def test_a_second_pickle_that_breaks_off() -> None:
    data = pickle.dumps({"a": 1}) + pickle.dumps({"b": 2, "c": "d" * 50})[:-20]
    root = opened(data).root
    assert isinstance(root, list)
    assert [dict(one.pairs) for one in root if isinstance(one, Dict)] == [{"a": 1}, {"b": 2}]


def test_a_cut_pickle_is_read_to_its_end_only_with_the_files_within() -> None:
    for within, is_whole in ((storage(), True), (b"no file", False)):
        pushed = [text("a"), number(1), op("SETITEM"), text("b"), call(OPENER, binbytes(within)), op("POP")]
        container = opened(proto(3) + op("EMPTY_DICT") + b"".join(pushed))
        assert entries(container) == {"a": 1}
        assert "cut off" in container.notes[-1].sentence
        (program,) = [one for one in container.programs if one.kind == "object"]
        assert program.is_whole == is_whole


# --- joblib -------------------------------------------------------------------------------------------------


def wrapper(**state: bytes) -> bytes:
    """What joblib writes in the place of an array; its bytes follow."""
    dtype = call("numpy.dtype", text("f4"), op("NEWFALSE"), op("NEWTRUE"))
    dtype += tuple_(number(3), text("<"), b"N", b"N", b"N", number(-1), number(-1), number(0)) + op("BUILD")
    fields = {
        "subclass": name("numpy.ndarray"),
        "shape": tuple_(number(2)),
        "order": text("C"),
        "dtype": dtype,
        "allow_mmap": op("NEWTRUE"),
        "numpy_array_alignment_bytes": number(16),
    } | state
    made = name(module.WRAPPER) + op("EMPTY_TUPLE") + op("NEWOBJ")
    return made + dict_(*((text(key), value) for key, value in fields.items())) + op("BUILD")


def joblib(*arrays: tuple[bytes, bytes]) -> bytes:
    return proto(4) + op("EMPTY_LIST") + b"".join(
        made + raw + op("APPEND") for made, raw in arrays
    ) + STOP  # fmt: skip


def test_arrays_behind_their_instruction() -> None:
    data = joblib(
        (wrapper(), b"\3\xff\xff\xff" + bytes(range(8))),
        (wrapper(numpy_array_alignment_bytes=b"N"), bytes(range(8, 16))),
        (wrapper(shape=tuple_()), b"\0" + bytes(4)),
    )
    container = opened(data)
    assert container.format == "joblib"
    assert [bytes_of(data, container, key) for key in container.storage_ids] == [
        bytes(range(8)),
        bytes(range(8, 16)),
        bytes(4),
    ]


def field_type(flags: int) -> bytes:
    made = call("numpy.dtype", text("V8"), op("NEWFALSE"), op("NEWTRUE"))
    state = tuple_(
        number(3), text("|"), b"N", tuple_(text("a")), dict_((text("a"), b"N")), number(8), number(1)
    )
    return made + state[:-1] + number(flags) + op("TUPLE") + op("BUILD")


def test_arrays_of_other_types_are_stepped_over() -> None:
    data = joblib(
        (wrapper(dtype=field_type(0)), b"\0" + bytes(16)),
        (wrapper(subclass=name("numpy.matrix")), b"\0" + bytes(8)),
        (wrapper(dtype=field_type(27)), pickle.dumps(["an object", FLOATS], 5)),
    )
    root = opened(data).root
    assert isinstance(root, list)
    assert [type(one) for one in root] == [Call, Call, list]
    assert root[2][0] == "an object"
    assert isinstance(root[2][1], StoredTensor)


UNKNOWN = "an array of an unknown type follows the pickle's instruction"
HOSTILE_JOBLIB = {
    "no shape": (wrapper(shape=b"N"), bytes(9), UNKNOWN),
    "a negative size": (wrapper(shape=tuple_(number(-1))), bytes(9), UNKNOWN),
    "a size that overflows": (wrapper(shape=tuple_(number(1 << 62), number(1 << 62))), bytes(9), UNKNOWN),
    "a million dimensions": (wrapper(shape=tuple_(*[number(1)] * 100)), bytes(9), UNKNOWN),
    "more than there is": (wrapper(shape=tuple_(number(1 << 40))), bytes(9), "runs-code"),
    "padding behind the end": (wrapper(), b"\xff" + bytes(8), "runs-code"),
    "nothing behind it": (wrapper(), b"", "runs-code"),
    "no type": (wrapper(dtype=b"N"), bytes(9), UNKNOWN),
    "a type without a size": (wrapper(dtype=call("numpy.dtype", text("f"))), bytes(9), UNKNOWN),
    "a size of a thousand digits": (
        wrapper(dtype=call("numpy.dtype", text("f" + "9" * 1000))),
        bytes(9),
        UNKNOWN,
    ),
    "a type that is a number": (wrapper(dtype=call("numpy.dtype", number(4))), bytes(9), UNKNOWN),
    "an evil pickle in the array": (
        wrapper(dtype=field_type(1)),
        stream(proto(), call("posix.system", text("id"))),
        "dangerous",
    ),
    "objects in objects": (
        wrapper(dtype=field_type(1)),
        (proto(4) + wrapper(dtype=field_type(1))) * 20,
        "arrays of objects are nested too deeply",
    ),
    "a wrapper without a state": (
        name(module.WRAPPER) + op("EMPTY_TUPLE") + op("NEWOBJ") + b"N" + op("BUILD"),
        b"",
        "runs-code",
    ),
}


def test_hostile_files_of_joblib(tmp_path: Path) -> None:
    said: dict[str, str] = {}
    for what, (made, raw, _) in HOSTILE_JOBLIB.items():
        data = proto(4) + op("EMPTY_LIST") + call("m.first") + op("APPEND") + made + raw + op("APPEND") + STOP
        try:
            checkpoint = checked(data, tmp_path / "a.joblib")
        except (PickleError, ContainerError) as error:
            names = {node.dotted for one in error.programs for node in one.stream.globals}
            said[what] = error.what if "m.first" in names else "forgotten"
        else:
            said[what] = judge(checkpoint).verdict
    assert said == {what: wanted for what, (*_, wanted) in HOSTILE_JOBLIB.items()}


# --- hostile pickles ----------------------------------------------------------------------------------------

EVIL = stream(proto(), call("posix.system", text("id")))
BROKEN = "the pickle breaks off before its end"
HOSTILE = {
    "bytes longer than the file": (
        proto(4) + op("BINBYTES8", (1 << 60).to_bytes(8, "little") + b"x"),
        BROKEN,
    ),
    "a text longer than the file": (
        proto(4) + op("BINUNICODE8", (1 << 60).to_bytes(8, "little") + b"x"),
        BROKEN,
    ),
    "a negative length": (proto(2) + op("BINSTRING", b"\xff\xff\xff\xffx"), "a length is negative"),
    "a payload in the bytes of a tensor": (stream(proto(3), tensor(EVIL)), "dangerous"),
    "a payload in bytes in bytes": (
        stream(proto(3), tensor(stream(proto(3), call(OPENER, binbytes(EVIL))))),
        "dangerous",
    ),
    "a payload behind the pickle": (stream(proto(), dict_((text("a"), number(1)))) + EVIL, "dangerous"),
    "a payload in the header of a tensor's file": (
        stream(proto(3), tensor(legacy.checkpoint(stream(proto(), number(1)), info=EVIL))),
        "dangerous",
    ),
    "the opener in other hands": (
        stream(
            proto(3),
            call("torch._tensor._rebuild_from_type_v2", name(OPENER), b"N", tuple_(binbytes(EVIL)), b"N"),
        ),
        "dangerous",
    ),
    "large bytes for another unpickler": (
        stream(proto(3), call("io.BytesIO", binbytes(EVIL + bytes(20_000)))),
        "dangerous",
    ),
    "another unpickler without bytes": (stream(proto(3), call("pickle.loads", number(1))), "dangerous"),
    "the opener without bytes": (stream(proto(3), call(OPENER), call(OPENER, b"N")), "dangerous"),
    "a loop of references": (
        stream(proto(2), op("EMPTY_LIST"), op("BINPUT", b"\0"), op("BINGET", b"\0"), op("APPEND")),
        "runs-code",
    ),
    "a thousand tensors of one run": (
        stream(
            proto(3),
            binbytes(storage()),
            op("BINPUT", b"\0"),
            op("POP"),
            list_(*[name(OPENER) + op("BINGET", b"\0") + op("TUPLE1") + op("REDUCE")] * 1000),
        ),
        "runs-code",
    ),
    "a tensor that is not in its storage": (
        stream(proto(3), tensor(storage(numel=1))),
        "it runs past its storage: 8 of 4 bytes",
    ),
}


def test_hostile_pickles(tmp_path: Path) -> None:
    said: dict[str, str] = {}
    for what, (data, _) in HOSTILE.items():
        try:
            checkpoint = checked(data, tmp_path / "a.pkl")
        except PickleError as error:
            said[what] = error.what
        else:
            problem = next((row.problem for row in checkpoint.tensors if row.problem), "")
            said[what] = problem or judge(checkpoint).verdict
    assert said == {what: wanted for what, (*_, wanted) in HOSTILE.items()}


def test_there_is_an_end_to_storages() -> None:
    items = [call(OPENER, binbytes(storage(str(key)))) for key in range(5)]
    with pytest.raises(ContainerError, match="more than 3 storages"):
        opened(stream(proto(3), list_(*items)), storages=3)


def test_the_description_of_a_zip_alone_has_no_bytes(tmp_path: Path) -> None:
    pid = tuple_(text("storage"), name("torch.FloatStorage"), text("0"), text("cpu"), number(2))
    data = stream(proto(), dict_((text("w"), pid + op("BINPERSID"))))
    container = opened(data)
    assert list(container.storage_ids) == ["0"]
    assert container.stored == {}
    assert "lost" in container.notes[0].sentence


def test_cancelling_within_a_file_within(monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel(*_: object) -> None:
        raise CancelledError

    monkeypatch.setattr(module.NestedFiles, "read", cancel)
    with pytest.raises(CancelledError):
        opened(stream(proto(3), tensor(storage())))


def test_places_in_a_packed_file_are_found(tmp_path: Path) -> None:
    path = CORPUS / "joblib/arrays_xz.joblib"
    container = read_container(str(path))
    assert {place.offset for place in container.stored.values()} == {None}
    plain = CORPUS / "joblib/arrays.joblib"
    with open_source_of(path) as packed, open_source_of(plain) as source:
        one, other = StorageReader(container, packed), StorageReader(read_container(str(plain)), source)
        for key in container.stored:
            assert one.read(key, 0, one.nbytes(key)) == other.read(key, 0, other.nbytes(key))


def open_source_of(path: Path) -> Any:
    from inspector.containers.packed import open_source

    return open_source(str(path))


LARGE = bytes(range(256)) * 400
VALUE = {"a": [1, 2.5, None, True], "b": ("x" * 5000, 1.5), "c": {"d": "\xe9"}, "e": 2**200}


def machine(data: bytes, start: int = 0, hooks: Hooks | None = None, **limits: int) -> PlainMachine:
    return PlainMachine(
        BytesSource(data, "a.pkl"),
        start,
        limits=Limits(**limits),
        progress=Progress(),
        hooks=hooks or module_machine.NO_HOOKS,
    )


def shown(value: Value, data: bytes) -> Any:
    """A value as plain objects, with the bytes of blobs."""
    if isinstance(value, Blob):
        return data[value.offset : value.offset + value.nbytes]
    if hasattr(value, "pairs") and value.pairs is not None:
        return {shown(key, data): shown(item, data) for key, item in value.pairs}
    if hasattr(value, "items") and not isinstance(value, Call):
        return set(value.items)
    return type(value)(shown(item, data) for item in value) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("first", [1, 1 << 12])
def test_reads_what_the_other_machine_reads(
    protocol: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_machine, "_FIRST_NBYTES", first)
    data = b"before" + pickle.dumps(VALUE, protocol) + b"behind"
    mine = machine(data, 6)
    read = mine.run()
    other = read_pickle(data[6:])
    assert shown(read.root, data) == shown(other.root, data[6:])
    assert read.end == other.end
    assert (read.opcodes, dict(read.firsts)) == (other.opcodes, dict(other.firsts))
    assert read.oddities == other.oddities == ()


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_large_bytes_stay_in_the_file(protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_machine, "_MOST_READ_NBYTES", 5000)
    value = {"a": LARGE, "b": bytearray(LARGE), "c": "t" * 100, "d": [LARGE * 2, 7]}
    data = pickle.dumps(value, protocol)
    mine = machine(data, text_nbytes=50)
    read = mine.run()
    found = shown(read.root, data)
    assert found["a"] == LARGE
    assert found["d"] == [LARGE * 2, 7]
    assert found["c"] == b"t" * 100
    assert read.end == len(data)
    assert read.oddities == ()
    assert len(mine._data) < 20_000


def test_places_of_bytes_however_they_are_written() -> None:
    raw = bytes(range(250)) + b"\n"
    for protocol in range(6):
        data = pickle.dumps([raw, raw + b"!"], protocol)
        seen: list[tuple[PlainMachine, Call]] = []
        mine = machine(data, hooks=Hooks(lambda at, made, _, seen=seen: seen.append((at, made))))
        root = mine.run().root
        items = [made.args[0] for _, made in seen] if protocol < 3 else root
        places = [mine.place_of(item) for item in items]
        assert all(place is not None for place in places)
        spelling = {0: LINE, 1: TEXT, 2: TEXT}.get(protocol, PLAIN)
        for place, wanted in zip(places, [raw, raw + b"!"], strict=True):
            assert place.spelling == spelling
            stored = data[place.offset : place.offset + place.nbytes]
            plain = {LINE: "raw-unicode-escape", TEXT: "utf-8"}.get(spelling)
            assert (stored.decode(plain).encode("latin-1") if plain else stored) == wanted
    assert machine(b"N.").place_of(None) is None


def test_places_of_blobs() -> None:
    mine = machine(b"N.")
    assert mine.place_of(Blob("text-line", 3, 4)) == Place(3, 4, LINE)
    assert mine.place_of(Blob("int", 3, 4)) is None
    for protocol, value, spelling in ((3, b"x" * 90, PLAIN), (4, "x" * 90, TEXT)):
        mine = machine(pickle.dumps(value, protocol), text_nbytes=50)
        place = mine.place_of(mine.run().root)
        assert place is not None
        assert (place.nbytes, place.spelling, place.width) == (90, spelling, 1)


def test_long_lines_and_numbers_are_found_in_the_file() -> None:
    data = b"before" + pickle.dumps(["x" * 9000, 10**4200], 0)
    root = machine(data, 6, text_nbytes=5000).run().root
    assert shown(root, data) == [b"x" * 9000, b"1" + b"0" * 4200]


def test_an_object_is_replaced_on_the_stack_and_in_the_memo() -> None:
    made = call("m.f") + op("BINPUT", b"\1") + number(1) + op("BUILD")
    data = stream(
        proto(), op("EMPTY_LIST"), op("BINPUT", b"\0"), op("MARK"), made, op("BINGET", b"\1"), op("APPENDS")
    )
    results = []

    def built(at: PlainMachine, old: Call, _: int) -> None:
        results.append(at.replace(old, "new"))

    assert machine(data, hooks=Hooks(None, built)).run().root == ["new", "new"]
    sparse = data.replace(op("BINPUT", b"\1"), op("BINPUT", b"\7")).replace(
        op("BINGET", b"\1"), op("BINGET", b"\7")
    )
    root = machine(sparse, hooks=Hooks(None, built)).run().root
    assert isinstance(root, list)
    assert all(isinstance(item, Call) for item in root)
    assert results == [True, False]


def test_an_object_that_is_deep_in_the_memo_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_machine, "_MOST_SLOTS", 2)
    puts = b"".join(number(1) + op("BINPUT", bytes([slot])) + op("POP") for slot in range(1, 5))
    data = stream(proto(), call("m.f"), op("BINPUT", b"\0"), puts, number(1), op("BUILD"))

    def built(at: PlainMachine, old: Call, _: int) -> None:
        at.replace(old, "new")

    left = machine(data, hooks=Hooks(None, built)).run().root
    assert isinstance(left, Call)
    bare = stream(proto(), call("m.f"), number(1), op("BUILD"))
    assert machine(bare, hooks=Hooks(None, built)).run().root == "new"


def test_calls_of_what_has_no_name_are_no_hooks_business() -> None:
    data = stream(proto(), number(1), tuple_(), op("REDUCE"), number(2), op("BUILD"))
    seen: list[Call] = []
    hooks = Hooks(lambda _at, made, _place: seen.append(made), lambda _at, made, _place: seen.append(made))
    machine(data, hooks=hooks).run()
    assert seen == []


@pytest.mark.parametrize("cut", [30_000, 90_000])
def test_a_payload_that_breaks_off(cut: int) -> None:
    data = pickle.dumps({"a": 1, "b": LARGE}, 4)[:cut]
    with pytest.raises(BrokenOffError, match="breaks off before its end") as caught:
        machine(data).run()
    assert "BINBYTES" in str(caught.value.where)


def test_places_in_errors_and_oddities_are_the_file_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_machine, "_FIRST_NBYTES", 4)
    head = b"before" + proto(4) + dict_((text("a"), op("BINBYTES", len(LARGE).to_bytes(4, "little") + LARGE)))
    with pytest.raises(PickleError, match="no pickle opcode") as caught:
        machine(head + b"\xff", 6).run()
    assert f"byte {len(head):,}" in str(caught.value.where)
    odd = machine(head + op("EXT1", b"\1") + op("POP") + b".", 6).run()
    assert [(one.kind, one.offset) for one in odd.oddities] == [(OddityKind.EXTENSION_CODE, len(head) - 6)]


def test_a_payload_that_crosses_its_frame_is_odd() -> None:
    payload = op("BINBYTES", len(LARGE).to_bytes(4, "little") + LARGE)
    for nbytes, odd in (
        (len(payload), []),
        (len(payload) + 1, []),
        (len(payload) - 1, [OddityKind.FRAME_STRADDLE]),
    ):
        data = proto(4) + op("FRAME", nbytes.to_bytes(8, "little")) + payload + b"."
        assert [one.kind for one in machine(data).run().oddities] == odd


def test_the_window_has_a_limit() -> None:
    data = stream(proto(), *[number(1) + op("POP") for _ in range(9000)], number(1))
    with pytest.raises(PickleError, match="longer than 9,000 bytes"):
        machine(data, pickle_nbytes=9000).run()
    line = b"V" + b"x" * 20_000 + b"\n."
    with pytest.raises(PickleError, match="longer than 9,000 bytes"):
        machine(line, pickle_nbytes=9000).run()


def test_many_programs_are_one_that_does_what_all_do() -> None:
    folded = Folded()
    one = read_pickle(stream(proto(), call("a.B"), op("POP"), call("c.D")))
    other = read_pickle(stream(proto(), call("a.B", text("x")), op("EXT1", b"\1") + op("POP")))
    folded.add([one, other])
    found = folded.stream()
    assert found is not None
    assert {node.dotted: node.count for node in found.globals} == {
        "a.B": 2,
        "c.D": 1,
        "copyreg.extension_1": 1,
    }
    assert len(found.calls) == 3
    assert len(found.oddities) == 1
    assert found.opcodes == one.opcodes | other.opcodes
    assert (found.data, found.root, found.persistent_ids) == (b"", None, ())


def test_what_was_read_of_a_broken_file_is_kept() -> None:
    data = stream(proto(), call("posix.system", text("id")))
    files = NestedFiles(BytesSource(data, "a"), Limits(), Progress())
    with pytest.raises(CheckpointError):
        files.read(Place(0, len(data)), len(data))
    found = files.programs.stream()
    assert found is not None
    assert [node.dotted for node in found.globals] == ["posix.system"]


@pytest.mark.parametrize("protocol", [0, 1])
def test_pickles_of_containers_are_told(protocol: int) -> None:
    for value in ({}, [1], {"a": {1, 2}}, object(), {"a": list(range(20_000))}):
        assert begins_undeclared(BytesSource(pickle.dumps(value, protocol), "a")), value


@table(
    "data",
    [
        b"",
        b"(see below).",
        b"}.",
        b"]\n",
        b"(lp0\nbroken",
        b"c is a letter\nand this a line\n.",
        b"(p0\n1.",
        pickle.dumps("text", 0),
        pickle.dumps({}, 2),
        b"(" * 20_000,
    ],
)
def test_texts_are_none(data: bytes) -> None:
    assert not begins_undeclared(BytesSource(data, "a"))


def test_dill_s_way_of_making_an_array() -> None:
    root = read_container(str(CORPUS / "plain_pickle/dill.pkl")).root
    assert isinstance(root, Dict)
    found = dict(root.pairs)["n"]
    assert isinstance(found, StoredTensor)
    assert (found.dtype, found.shape, found.stride) == ("float32", (2, 3), (1, 2))


def test_other_calls_are_none() -> None:
    for func in (Global("m", "f"), Call(Global("m", "f"), (), "reduce")):
        call = Call(func, (), "reduce")
        assert [read(call) for read in (created, from_buffer, reconstructed, wrapped)] == [None] * 4
    assert created(Call(Global("dill._dill", "_create_array"), (1,), "reduce")) is None

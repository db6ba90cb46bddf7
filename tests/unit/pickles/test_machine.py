"""The machine's own work: budgets, cancellation, streams in pieces, and saying where something is wrong."""

from __future__ import annotations

import itertools
import pickle
import struct
import time
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import pytest

from inspector.errors import CancelledError, PickleError
from inspector.limits import Limits
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import BATCH, Machine, read_pickle
from inspector.pickles.oddities import OddityKind
from inspector.pickles.state import MOST_ODDITIES, BrokenStreamError, State, StoppedError
from inspector.progress import Progress
from tests.builders.pickles import (
    MARK,
    NONE,
    call,
    list_,
    name,
    number,
    op,
    plain,
    proto,
    read,
    state_dict,
    storage,
    stream,
    tensor,
    text,
)
from tests.sweep import table
from tests.work import count_steps

LONG = NONE * 3 * BATCH  # budgets are looked at after each batch


def test_stream_tells_what_it_met() -> None:
    data = state_dict(weight=tensor(storage("0", location="cuda:0"), 2))
    found = read_pickle(data + b"\0\0")
    assert found.data == data + b"\0\0"
    assert found.end == len(data)
    assert found.protocol == 2
    assert [node.dotted for node in found.globals] == [
        "torch._utils._rebuild_tensor_v2",
        "torch.FloatStorage",
        "collections.OrderedDict",
    ]
    assert plain(found.persistent_ids) == (
        ("persistent", ("storage", ("global", "torch.FloatStorage"), "0", "cuda:0", 2)),
    )
    assert {CODES["BINPERSID"], CODES["PROTO"], CODES["STOP"]} < found.opcodes
    assert found.oddities == ()


def test_empty_stream() -> None:
    with pytest.raises(PickleError) as caught:
        read_pickle(b"", name="data.pkl")
    assert caught.value.what == "the pickle breaks off before its end"
    assert caught.value.where == "data.pkl, byte 0"


def test_error_names_record_byte_and_opcode() -> None:
    with pytest.raises(PickleError) as caught:
        read_pickle(stream(LONG, op("REDUCE"), op("BINGET", b"\x07")), name="data.pkl")
    assert caught.value.where == f"data.pkl, byte {len(LONG) + 1:,}, BINGET"
    assert caught.value.what == "memo slot 7 is read before it is filled"


# ------------------------------------------------------------------------------------------- budgets


def refused(data: bytes, **limits: Any) -> str:
    with pytest.raises(PickleError) as caught:
        read_pickle(data, limits=Limits(**limits))
    return caught.value.what


def test_instructions_are_counted() -> None:
    data = stream(LONG)
    assert refused(data, opcodes=3 * BATCH - 1) == f"the pickle has more than {3 * BATCH - 1:,} instructions"
    read_pickle(data, limits=Limits(opcodes=3 * BATCH))


def test_instructions_are_counted_where_frames_or_pieces_interrupt_them() -> None:
    frame = op("FRAME", struct.pack("<Q", 99)) + NONE * 99
    data = proto(4) + frame * 1000 + b"."
    assert refused(data, opcodes=90_000) == "the pickle has more than 90,000 instructions"
    read_pickle(data, limits=Limits(opcodes=100_002))
    data = stream(NONE * 2000)
    with pytest.raises(PickleError, match="more than 1,000 instructions"):
        read_pickle(b"", limits=Limits(opcodes=1000), extend=lambda nbytes: data[: nbytes + 10])


def test_values_are_counted() -> None:
    assert (
        refused(stream(op("EMPTY_LIST") * 2 * BATCH), values=BATCH - 1)
        == "the pickle makes more than 8,191 values"
    )
    read(op("EMPTY_LIST") * BATCH, values=BATCH)


def test_a_pickle_of_too_many_tensors_is_told_how_many_are_read() -> None:
    id_ = b"(X\x07\0\0\0storageX\x01\0\0\0cK\x00X\x03\0\0\0cpuK\x01tQ"
    with pytest.raises(PickleError) as caught:
        read_pickle(stream(id_ * 8192, b"N"), limits=Limits(values=4400))
    assert caught.value.remedy == (
        "some 400 tensors are read of one pickle: save them in several files, or as safetensors"
    )
    with pytest.raises(PickleError) as caught:
        read_pickle(stream(b"]" * 8192, b"N"), limits=Limits(values=4400))
    assert caught.value.remedy is None


def test_memo_is_counted() -> None:
    puts = b"".join(op("LONG_BINPUT", struct.pack("<I", 2 * slot)) for slot in range(2 * BATCH))
    assert refused(stream(NONE, puts), values=BATCH - 2) == "the pickle makes more than 8,190 values"
    read(NONE, puts, values=2 * BATCH)


@pytest.mark.wide
@table(
    "literal",
    [
        op("BININT", bytes(4)),
        op("BININT2", bytes(2)),
        op("BINFLOAT", bytes(8)),
        op("LONG1", b"\x01\x01"),
        op("LONG4", b"\x01\0\0\0\x01"),
        op("INT", b"77\n"),
        op("LONG", b"77L\n"),
        op("FLOAT", b"7\n"),
        op("STRING", b"'ab'\n"),
        op("UNICODE", b"ab\n"),
        op("SHORT_BINBYTES", b"\x01a"),
        text("ab"),
        op("BINUNICODE", struct.pack("<I", 70) + b"a" * 70),
        op("STRING", b"'" + b"a" * 70 + b"'\n"),
        op("UNICODE", b"a" * 70 + b"\n"),
        op("INT", b"1" * 4001 + b"\n"),
        op("NEXT_BUFFER"),
    ],
)
def test_numbers_and_texts_are_counted_as_half_a_value(literal: bytes) -> None:
    assert refused(stream(literal * BATCH, NONE), values=BATCH // 2 - 1).endswith(" values")
    read(literal * 100, LONG, values=500)


def test_long_texts_are_counted_by_their_length() -> None:
    part = text("a" * 16_000)
    assert refused(stream(part * 20, LONG), values=10_000) == "the pickle makes more than 10,000 values"
    read(part * 20, LONG, values=10_020)
    read(part * 20, LONG, values=20, text_nbytes=100)  # kept in the file


def test_marks_are_counted() -> None:
    data = stream(MARK * 2 * BATCH, NONE)
    assert refused(data, marks=BATCH - 1) == "the pickle nests more than 8,191 marks"
    read_pickle(data, limits=Limits(marks=2 * BATCH))


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(clock)))
    assert refused(stream(NONE * 10 * BATCH), seconds=2.5) == "the pickle takes longer than 2.5 s to read"


SLOW = [
    op("BINUNICODE", struct.pack("<I", 5000) + b"a" * 5000),
    op("SHORT_BINUNICODE", b"\x03\xed\xa0\x80"),  # a lone surrogate
    op("SHORT_BINSTRING", b"\x01\xff"),
    op("STRING", b"'" + b"\\n" * 128 + b"'\n"),
    op("UNICODE", b"\\u0041" * 43 + b"\n"),
    op("GLOBAL", b"\xff\nname\n"),
    op("GLOBAL", b"module\n\xff\n"),
    op("PERSID", b"\xff\n"),
]


@table("instruction", SLOW)
def test_time_is_bounded_within_a_batch(instruction: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of lone surrogates takes a fifth of a second: 8192 of those would pass before a look."""
    clock = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(clock)))
    read(instruction * 5, seconds=5)
    assert refused(stream(instruction * 6), seconds=5) == "the pickle takes longer than 5 s to read"


@table("instruction", SLOW)
def test_cancellation_within_a_batch(instruction: bytes) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        read_pickle(stream(instruction), progress=progress)


@table(
    "instruction",
    [
        text("a" * 4096),
        op("STRING", b"'" + b"a" * 254 + b"'\n"),
        op("UNICODE", b"a" * 256 + b"\n"),
        name("a.b"),
    ],
)
def test_no_look_at_the_clock_for_ordinary_instructions(instruction: bytes) -> None:
    progress = Progress()
    progress.cancel()
    read_pickle(stream(instruction), progress=progress)


def test_single_step_looks_at_no_clock() -> None:
    machine = Machine(stream(SLOW[0]), name="pickle", limits=Limits(seconds=-1))
    assert machine.step(0) == 5005


@table("interval", [1, 3])
def test_cancellation_is_asked_for_with_each_batch(interval: int) -> None:
    class Impatient(Progress):
        asked = 0

        def advance(self, units: int = 0) -> None:
            self.asked += 1
            if self.asked == interval:
                self.cancel()
            super().advance(units)

    progress = Impatient()
    with pytest.raises(CancelledError):
        read_pickle(stream(LONG * 2), progress=progress)
    assert progress.asked == interval


# ------------------------------------------------------------------------------------------- in pieces


def test_pieces_are_asked_for_only_as_far_as_needed() -> None:
    data = stream(list_(*map(number, range(200)))) + b"x" * 10_000
    asked = []

    def extend(nbytes: int) -> bytes:
        asked.append(nbytes)
        return data[: 2 * nbytes + 64]

    found = read_pickle(data[:64], extend=extend)
    assert found.root == list(range(200))
    assert asked == [64, 192]
    assert len(found.data) == 448


def test_pieces_that_end_too_early() -> None:
    data = stream(text("abc"))
    with pytest.raises(PickleError, match="the pickle breaks off before its end: pickle, byte 0, BINUNICODE"):
        read_pickle(b"", extend=lambda nbytes: data[:6])


def test_pieces_are_bounded() -> None:
    with pytest.raises(PickleError, match="the pickle is longer than 1,000 bytes"):
        read_pickle(b"", limits=Limits(pickle_nbytes=1000), extend=lambda nbytes: NONE * (nbytes + 100))


def test_instruction_that_is_whole_but_wrong_asks_for_no_more() -> None:
    def extend(nbytes: int) -> bytes:
        raise AssertionError

    for wrong in (
        b"\xff",
        op("BINSTRING", b"\xff\xff\xff\xff"),
        op("REDUCE"),
        op("BINUNICODE", b"\1\0\0\0\xff"),
    ):
        with pytest.raises(PickleError):
            read_pickle(wrong, extend=extend)


# ------------------------------------------------------------------------------------------- single steps


def test_step_executes_one_instruction() -> None:
    data = stream(proto(4), op("FRAME", struct.pack("<Q", 3)), number(7))
    machine = Machine(data, name="pickle")
    assert machine.step(0) == 2
    assert machine.step(2) == 11
    assert machine.step(11) == 13
    assert machine.state.stack == [7]
    with pytest.raises(StoppedError) as stopped:
        machine.step(13)
    assert stopped.value.end == 14


# ------------------------------------------------------------------------------------------- hostile streams


def test_nothing_is_imported_or_called(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins
    import os

    monkeypatch.setattr(os, "system", lambda command: pytest.fail("called"))
    monkeypatch.setattr(builtins, "__import__", lambda *args: pytest.fail(f"imported {args[0]}"))
    found = read_pickle(stream(call("os.system", text("id")), op("POP"), call("no.such.module.f")))
    assert plain(found.root) == ("reduce", ("global", "no.such.module.f"), (), {})


@pytest.mark.wide
@table(
    "data",
    [
        op("EMPTY_LIST") * 100_000 + op("APPEND") * 99_999,
        MARK * 100_000 + op("LIST") * 100_000,
        op("EMPTY_TUPLE") + op("TUPLE1") * 100_000,
        op("EMPTY_DICT") + (NONE + op("EMPTY_DICT")) * 50_000 + op("SETITEM") * 50_000,
        NONE + op("BINPERSID") * 100_000,
        NONE * 2 + op("REDUCE") + (op("DUP") + op("REDUCE")) * 50_000,
    ],
)
def test_deep_nesting_is_made_and_forgotten_without_recursion(data: bytes) -> None:
    found = read_pickle(stream(data))
    del found


def test_doubling_takes_no_memory() -> None:
    """Sixty doublings: 2**60 leaves for whoever walks over them, sixty tuples for us."""
    data = op("EMPTY_TUPLE") + (op("DUP") + op("TUPLE2")) * 60
    found = read(data)
    value = found.root
    for _ in range(60):
        assert value[0] is value[1]
        value = value[0]
    assert value == ()


def test_many_integers_that_hash_alike_are_no_matter() -> None:
    pairs = b"".join(pickle.dumps(k * (2**61 - 1), 2)[2:-1] + NONE for k in range(2000))
    assert len(read(op("EMPTY_DICT"), MARK, pairs, op("SETITEMS")).root.pairs) == 2000


@pytest.mark.wide
def test_string_of_frames_ends() -> None:
    data = proto(4) + op("FRAME", bytes(8)) * 50_000
    with pytest.raises(PickleError, match="breaks off"):
        read_pickle(data)
    with pytest.raises(PickleError, match="more than 10,000 instructions"):
        read_pickle(data, limits=Limits(opcodes=10_000))


@pytest.fixture
def state() -> State:
    return State(Limits())


def test_names_are_bounded() -> None:
    state = State(Limits(names=2))
    for name in "abab":
        state.use_global("m", name)
    with pytest.raises(BrokenStreamError, match="the pickle imports more than 2 names"):
        state.use_global("m", "c")


def test_oddities_end_before_they_fill_the_memory(state: State) -> None:
    for offset in range(1, MOST_ODDITIES + 100):
        state.note(OddityKind.TEXT_INT, offset)
    assert len(state.oddities) == MOST_ODDITIES
    assert state.oddities[0].offset == 0


LIST, DICT, SET, KEEP = b"]", b"}", b"\x8f", b"\x94"
POP, DUP = b"0", b"2"


def kinds(data: bytes) -> set[OddityKind]:
    return {oddity.kind for oddity in Machine(data, name="stream").run().oddities}


def name(dotted: str) -> bytes:
    module, _, attribute = dotted.rpartition(".")
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


ORDERED = name("collections.OrderedDict")
OBJECT = name("types.SimpleNamespace") + b")\x81"
PAIR = b"]" + KEEP + b"(K\x01K\x02e"
MANY = b"".join(b"](K\x01K\x02e" for _ in range(40))


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(OBJECT + DICT + KEEP + b"b0h\x00K\x01K\x02s", id="state"),
        pytest.param(DICT + DUP + OBJECT + b"\x94h\x00b", id="not changed"),
        pytest.param(DICT + KEEP + OBJECT + b"h\x00b0K\x01K\x02s", id="state below"),
        pytest.param(OBJECT + DICT + KEEP + b"}\x94\x86b0h\x01K\x01K\x02s", id="slots"),
        pytest.param(ORDERED + b"](" + PAIR + b"e\x85R0h\x00K\x01a", id="pair"),
        pytest.param(ORDERED + LIST + KEEP + b"\x85R0h\x00" + PAIR + b"a", id="pairs"),
        pytest.param(ORDERED + b"](" + MANY + PAIR + b"e\x85R0h\x00K\x01a", id="one of many"),
        pytest.param(ORDERED + b"((" + MANY + PAIR + b"tt\x94R0h\x00K\x01a", id="in a tuple"),
        pytest.param(name("builtins.frozenset") + SET + KEEP + b"\x85R0h\x00(K\x01\x90", id="set"),
        pytest.param(name("builtins.dict") + DICT + KEEP + b"\x85R0h\x00(K\x01K\x02u", id="dict"),
        pytest.param(name("builtins.dict") + b")}\x94\x92" + b"0h\x00K\x01K\x02s", id="named arguments"),
        pytest.param(b"(" + name("builtins.set") + b"]\x94o0h\x00K\x01a", id="old class"),
        pytest.param(b"(]\x94ibuiltins\nset\n0h\x00K\x01a", id="instance"),
    ],
)
def test_a_change_after_a_copy_is_odd(stream: bytes, request: pytest.FixtureRequest) -> None:
    changed = "not changed" not in request.node.name
    assert (OddityKind.CHANGED_LATER in kinds(b"\x80\x04" + stream + b".")) == changed


def test_honest_values_are_not_odd() -> None:
    items: list[object] = [1]
    items.append(items)
    held: dict[str, object] = {"list": items, "pairs": OrderedDict([(1, [2]), (3, [4])]), "none": None}
    held["self"] = held
    value = [held, Counter("abc"), defaultdict(list, {1: [2]}), deque([1, 2], 3), {1, 2}, frozenset({3})]
    for protocol in range(6):
        assert kinds(pickle.dumps(value, protocol)) == set()


def test_arguments_of_many_calls_are_looked_through_once() -> None:
    items = b"(" + b"K\x01" * 2_000 + b"t" + KEEP
    calls = name("m.f") + KEEP + b"h\x00\x85R0" + b"h\x01h\x00\x85R0" * 3_000
    machine = Machine(b"\x80\x04" + items + calls + b"N.", name="stream")
    assert count_steps(machine.run) < 400_000

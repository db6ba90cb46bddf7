"""Runs are carried out as their instructions would be one after the other, whatever is in the stream."""

from __future__ import annotations

import io
import pickle
import random
import re
import struct
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from inspector.errors import CancelledError, PickleError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles import machine as machine_module
from inspector.pickles import runs
from inspector.pickles.machine import RUNS_COST, Machine, Stream
from inspector.pickles.runs import MOST_AT_ONCE, Runs, speed_up
from inspector.pickles.state import Expected, State
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value
from inspector.progress import Progress
from tests.sweep import put_through, table, tries

_FEWEST = 10
_COMMON = Expected({f"{__name__}.rebuild": 6, "collections.OrderedDict": -1})


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for runs early, so that small streams have them."""
    monkeypatch.setattr(machine_module, "BATCH", 256)
    monkeypatch.setattr(runs, "FEWEST", _FEWEST)


def rebuild() -> None:
    """Stand in for torch's function."""


class Kind:
    """Stand in for a class of storages."""


class Other:
    """Stand in for another."""


class Storage:
    def __init__(self, key: str, tag: str, numel: int, kind: type = Kind) -> None:
        self.pid = ("storage", kind, key, tag, numel)


class Tensor:
    def __init__(
        self, storage: Storage, sizes: tuple[int, ...], *, grad: bool = False, offset: int = 0
    ) -> None:
        strides = tuple(7 + index for index in range(len(sizes)))
        self.args = (storage, offset, sizes, strides, grad, OrderedDict())  # type: ignore[var-annotated]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuild, self.args


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        return value.pid if isinstance(value, Storage) else None


def pickled(value: object, protocol: int = 2) -> bytes:
    out = io.BytesIO()
    _Pickler(out, protocol).dump(value)
    return out.getvalue()


def some(count: int, **tensor: Any) -> dict[str, Tensor]:
    return {
        f"layers.{n}.weight": Tensor(Storage(str(n), "cpu", n * 300), (n, 3), **tensor) for n in range(count)
    }


def varied() -> object:
    """Everything that varies between tensors, each behind what came before."""
    sizes = ((), (4,), (3, 300), (1, 2, 3), (1, 70_000, 3, 4), (5, 4, 3, 2, 1), (0,))
    model = some(300)  # slots of the memo take four bytes from here on
    for number in range(200):
        tag = "cpu" if number % 11 else f"cuda:{number % 3}"
        storage = Storage(str(number), tag, number * 300, Other if number % 13 == 5 else Kind)
        tensor = Tensor(
            storage, sizes[number % 7], grad=number % 5 == 0, offset=number if number % 17 == 3 else 0
        )
        model[f"varied.{number}"] = tensor
    names = list(model)
    slots = {
        index: {"exp_avg": Tensor(Storage(f"9{index}", "cpu", 4), (4,)), "step": 3} for index in range(60)
    }
    again = {name: Tensor(Storage(f"8{index}", "cpu", 4), (4,)) for index, name in enumerate(names[:100])}
    odd = {"é" * 3: Tensor(Storage("x", "cpu", 2), (2,)), "n" * 400: Tensor(Storage("7", "cpu", 2), (2,))}
    return {"model": model, "state": slots, "ema": again, "odd": odd, "more": some(40)}


def slots_of(count: int, *, many: bool = False) -> dict[int, dict[str, object]]:
    """The state of an optimizer, as torch has it: three tensors for each number."""
    return {
        (number + 250) * (300 if number % 7 == 3 else 1): {
            "step": Tensor(Storage(f"3{number}", "cpu", 1), ()),
            "exp_avg": Tensor(Storage(f"1{number}", "cuda:0", 4), (2, number)),
            **({"exp_avg_sq": Tensor(Storage(f"2{number}", "cuda:0", 4), (2, number))} if many else {}),
        }
        for number in range(count)
    }


# --- as one instruction after the other ---------------------------------------------------------------------


def flat(values: list[Any]) -> Iterator[object]:
    """Everything that values consist of, each with what tells which are one and the same."""
    seen: dict[int, int] = {}
    stack: list[Any] = [values]
    while stack:
        value = stack.pop()
        names = [name for name in getattr(type(value), "__slots__", ()) if name not in {"packed", "row"}]
        if not isinstance(value, list | tuple | Blob | Call | Dict | Global | PersistentId | Set):
            yield type(value), value
        elif value != () and id(value) in seen:
            yield "again", seen[id(value)]
        else:
            seen[id(value)] = len(seen)
            yield type(value), len(value) if isinstance(value, list | tuple) else 0
            parts = value if isinstance(value, list | tuple) else [getattr(value, n) for n in names]
            stack += [part for part in parts if part is not value]


def outcome(data: bytes, **limits: Any) -> tuple[object, int]:
    """All that is known after a stream, and how many of its instructions were carried out in runs."""
    machine = Machine(data, name="x", limits=Limits(**limits))
    machine.state.expected = _COMMON
    state = machine.state
    try:
        stream = machine.run()
    except PickleError as error:
        return str(error), state.skipped
    made = state.room.made
    state.settle()
    memo = state.memo if isinstance(state.memo, list) else list(state.memo.items())
    lists = [stream.root, *stream.globals, list(stream.persistent_ids), list(stream.calls), memo]
    values = list(flat(lists))  # makes what is made later
    assert made <= state.room.made
    counts = (state.created + state.room.made, state.literals, machine._executed + state.skipped)
    told = (stream.end, stream.opcodes, dict(stream.firsts), stream.oddities, stream.faults, stream.protocol)
    return (counts, told, values), state.skipped


def check(monkeypatch: pytest.MonkeyPatch, data: bytes) -> int:
    """Read a stream with and without runs; return how many instructions were carried out in them."""
    found, skipped = outcome(data)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "speed_up", lambda state: None)
        plain, none = outcome(data)
    assert none == 0
    assert found == plain
    return skipped


@pytest.mark.wide
def test_runs_do_what_their_instructions_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, pickled(varied())) > 10_000


def test_runs_go_on_from_dict_to_dict(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    class Counted(Runs):
        @override
        def _carry_out(self, *given: Any) -> Any:
            nonlocal steps
            steps += 1
            return super()._carry_out(*given)

    monkeypatch.setattr(runs, "Runs", Counted)
    numbers = {"state": slots_of(600, many=True), "param_groups": [{"params": [1, 2]}]}
    assert (
        check(monkeypatch, pickled({"model": some(20), "optimizer": numbers})) > 50_000
    )  # nearly all of 1,800 tensors
    assert steps < 30


def test_dicts_of_another_kind_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """An OrderedDict is a call, and keys without values are nobody's."""
    found = slots_of(40, many=True).items()
    ordered = {number: OrderedDict(slots) if number % 2 else slots for number, slots in found}
    mixed = {"model": some(40), "state": slots_of(20), "ordered": ordered, "again": slots_of(20, many=True)}
    data = pickled(mixed)
    assert check(monkeypatch, data) > 1000
    place = data.index(b"exp_avg_sq")
    end = data.index(b"u", data.index(b"Q", place))
    check(monkeypatch, data[:end] + b"K\x01" + data[end:])  # an odd number of items
    check(monkeypatch, data[:end] + b"0" + data[end:])
    check(monkeypatch, data[:end] + b"(" + data[end:])


def test_steps_from_dict_to_dict_that_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickled({"model": some(20), "state": slots_of(24, many=True)})
    starts = [found.start() for found in re.finditer(rb"u[KMJ].{1,4}}", data, re.DOTALL)][20:]
    cases = [(start + at, byte) for start in starts[:4] for at in range(12) for byte in b"\0u}(KMJr0\xff"]

    def one(case: tuple[int, int]) -> None:
        place, byte = case
        check(monkeypatch, data[:place] + bytes([byte]) + data[place + 1 :])

    put_through(one, cases, every=20)


def test_what_is_not_in_protocol_2_is_read_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    for protocol in (0, 1, 3, 4, 5):
        check(monkeypatch, pickled(some(40), protocol))


def test_calls_of_names_that_not_every_checkpoint_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_COMMON", Expected({f"{__name__}.rebuild": 6}))
    assert check(monkeypatch, pickled(some(80)))
    monkeypatch.setitem(globals(), "_COMMON", Expected({"collections.OrderedDict": -1}))
    assert check(monkeypatch, pickled(some(80)))


def test_streams_that_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes changed anywhere among the runs: a slot, a length, a number, an opcode."""
    data = pickled(some(80))
    start = data.index(b"layers.60.")
    chance = random.Random(7)
    places = [start + offset for offset in range(230)]
    cases = [
        (place, chance.choice([0, 1, 255, data[place] ^ 1, data[place] ^ 2, *b"()tQXKMJRhjqr.0\x85\x86\x89"]))
        for place in places
    ]
    cases += [(chance.randrange(start, len(data)), chance.randrange(256)) for _ in range(tries(0, 3000))]

    def one(case: tuple[int, int]) -> None:
        place, byte = case
        check(monkeypatch, data[:place] + bytes([byte]) + data[place + 1 :])

    put_through(one, cases, every=6)


def test_streams_that_break_off(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickled(some(60))
    end = data.index(b"layers.59.")
    put_through(lambda cut: check(monkeypatch, data[:cut]), range(end - 60, end + 60), every=7)


def test_slots_that_are_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run takes from the memo is what is in it then, not what was in it before."""
    data = pickled(some(80))
    place = data.index(b"layers.60.weight") - 5
    memo = data[:place].rfind(b"r", 0, place - 4)
    push = b"X\x05\0\0\0other"
    slot = data.index(b"cpuq") + 4
    changed = data[:place] + push + b"q" + data[slot : slot + 1] + b"0" + data[place:]
    assert memo > 0
    assert check(monkeypatch, changed)


def test_slots_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the memo is no list, nothing is carried out in runs."""
    data = pickled(some(80))
    place = data.index(b"layers.60.weight") - 5
    far = b"K\x01r" + struct.pack("<I", 1 << 20) + b"0"
    found, _ = outcome(data[:place] + far + data[place:])
    assert check(monkeypatch, data[:place] + far + data[place:]) > 0
    assert not isinstance(found, str)


def test_frames_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickled(some(80))
    place = data.index(b"layers.60.weight") - 5
    for nbytes in (0, 3, 500, 1 << 40):
        framed = data[:place] + b"\x95" + struct.pack("<Q", nbytes) + data[place:]
        assert check(monkeypatch, framed) > 0


# --- budgets ------------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_budgets_hold_within_runs() -> None:
    data = pickled(some(2500))
    assert "more than 12,500 instructions" in str(outcome(data, opcodes=12_500)[0])
    assert outcome(data, opcodes=12_500)[1] < RUNS_COST * 12_500 + 31 * 2 * MOST_AT_ONCE
    assert "more than 5,000 values" in str(outcome(data, values=5_000)[0])
    assert "some 1,250 tensors" in str(outcome(data, values=5_000)[0])
    assert not isinstance(outcome(pickled(some(1200)), values=40_000)[0], str)


def _read(data: bytes, **limits: Any) -> tuple[Stream, State]:
    machine = Machine(data, name="x", limits=Limits(**limits))
    machine.state.expected = _COMMON
    return machine.run(), machine.state


def test_tensors_in_runs_weigh_what_they_take_and_others_more() -> None:
    """In runs a third of a tensor by itself; none beyond the limit of tensors."""
    data = pickled(some(2500))
    _, state = _read(data)
    assert 2 * 2500 < state.weight < 4.5 * 2500
    assert _read(data, alike=500)[1].weight > state.weight + 3 * 1000
    assert _read(pickled(some(2500), 4))[1].weight > 2 * state.weight


def _asking(count: int, places: range) -> bytes:
    """A stream that asks at its end for these slots of the last tensors, the last slot of them being 0."""
    data = pickled(some(count))
    machine = Machine(data, name="x")
    machine.run()
    last = len(machine.state.memo) - 1
    gets = b"".join(b"j" + struct.pack("<I", last - place) + b"0" for place in places)
    return data[:-1] + gets + b"."


def test_what_is_made_later_is_made_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slot in each order: sizes, strides, hooks, arguments, and both of neighbors."""
    for places in (range(40), range(39, -1, -1), *(range(at, at + 1) for at in range(9))):
        data = _asking(60, places)
        assert check(monkeypatch, data) > 800
        kept = (
            data[:-1].replace(b"0j", b"j") + b"t."
        )  # what is asked for is the root, and is one and the same
        at = kept.index(b"j", len(pickled(some(60))) - 1)
        whole = kept[:2] + b"(" + kept[2:at] + kept[at:].replace(b"0t.", b"t.")
        check(monkeypatch, whole)


def test_what_is_made_later_is_made_before_its_slots_are_written_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a slot would stand for the arguments of another tensor, and a scanner be fooled."""
    data = pickled(some(60))
    machine = Machine(data, name="x")
    machine.run()
    last = len(machine.state.memo) - 1
    for written in range(9):
        for asked in range(9):
            put = b"K\x07r" + struct.pack("<I", last - written) + b"0"
            get = b"j" + struct.pack("<I", last - asked)
            check(monkeypatch, data[:-1] + put + get + b"\x86.")
            check(monkeypatch, data[:-1] + put + put + get + b"\x86.")


def test_what_is_made_later_counts_when_it_is_made() -> None:
    stream, state = _read(pickled(some(600)), values=4_000)
    room = state.room
    with pytest.raises(PickleError, match="more than 4,000 values") as raised:
        list(flat([stream.root]))
    assert raised.value.remedy
    assert room.used + room.weight > 4_000
    asked = _asking(600, range(600 * 7))
    assert "more than 4,000 values" in str(outcome(asked, values=4_000)[0])


def test_arguments_are_told_without_being_made() -> None:
    stream, _ = _read(pickled(some(60)))
    assert isinstance(stream.root, Dict)
    calls = [value for _, value in stream.root.pairs if isinstance(value, Call) and value.packed is not None]
    assert len(calls) > 20
    for call in calls:
        told = call.told
        assert isinstance(told, tuple)
        assert call.packed is not None
        made = call.args
        assert isinstance(made, tuple)
        assert (told[:5], told[5]) == (made[:5], None)
        assert call.told is made
        assert call.packed is None
        with pytest.raises(AttributeError):
            call.__getattr__("args")


def test_runs_are_cancelled() -> None:
    class Asked(Progress):
        times = 0

        @override
        def advance(self, units: int = 0) -> None:
            self.times += 1
            if self.times == 3:
                self.cancel()
            super().advance(units)

    machine = Machine(pickled(some(2500)), name="x", progress=Asked())
    with pytest.raises(CancelledError):
        machine.run()
    assert machine.state.skipped < 40 * MOST_AT_ONCE


def test_what_is_known_of_numbers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.pickles.runs._MOST_KNOWN", 100)
    assert check(monkeypatch, pickled(some(400))) > 30 * 300


@table(
    ("raw", "before", "found"),
    [
        (b"K\x05K\x04K\x03\x86", 1, (5, (4, 3), 0, 1, 4)),
        (b"M\x05\x01)", 1, (261, (), 1, 0, 2)),
        (b"J\xff\xff\xff\xff(K\x02K\x03t", 1, (-1, (2, 3), 1, 1, 5)),
        (b"K\x09", 1, (9, (), 0, 0, 1)),
        (b"(K\x02t", 0, (0, (2,), 0, 1, 3)),
        (b"K\x02K\x03\x85", 0, None),  # takes one of two
        (b"K\x02K\x03\x87", 1, None),  # takes what is below
        (b"(K\x02\x85", 0, None),  # leaves a mark
        (b"K\x02t", 0, None),  # takes the mark of another
        (b"(K\x02t", 1, None),
    ],
)
def test_numbers(raw: bytes, before: int, found: tuple[Any, ...] | None) -> None:
    used = dict.fromkeys(b"KMJ()t\x85\x86\x87", 0)
    assert runs._numbers_of(raw, before, used) == found
    assert runs._numbers_of(raw, before, {}) is None


# --- where they begin ---------------------------------------------------------------------------------------


def _state_after(data: bytes, **state: Any) -> State:
    machine = Machine(data, name="x")
    for name, value in state.items():
        setattr(machine.state, name, value)
    machine.run()
    return machine.state


def _speeds_up(state: State) -> bool:
    state.table[ord("Q")] = partial(_fail)
    speed_up(state)
    return isinstance(getattr(state.table[ord("Q")], "__self__", None), Runs)


def _fail(state: State, data: bytes, pos: int) -> int:
    raise AssertionError


def test_short_streams_are_read_plainly() -> None:
    assert _speeds_up(_state_after(pickled(some(80))))
    assert not _speeds_up(_state_after(pickled(some(_FEWEST - 1))))


def test_streams_with_a_reader_of_ids_are_read_plainly() -> None:
    data = pickled(some(80))
    assert not _speeds_up(_state_after(data, resolve=lambda node: node))
    assert not _speeds_up(_state_after(data, short_nbytes=100))


def test_streams_without_what_each_run_has_are_read_plainly() -> None:
    ids: list[Value] = [Storage(str(n), "cpu", n) for n in range(80)]  # type: ignore[misc]
    assert not _speeds_up(_state_after(pickled(ids)))


def test_runs_stand_in_the_table_once() -> None:
    state = _state_after(pickled(some(80)))
    state.table[ord("Q")] = partial(_fail)
    speed_up(state)
    first = state.table[ord("Q")]
    speed_up(state)
    assert state.table[ord("Q")] is first

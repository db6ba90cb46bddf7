"""What must hold for every stream: honest ones are read as they are, others end in a `PickleError`."""

from __future__ import annotations

import itertools
import math
import pickle
import pickletools
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.errors import PickleError
from inspector.limits import Limits
from inspector.pickles.instructions import OPCODES, Operand, instruction_end, iter_instructions
from inspector.pickles.machine import Machine, Stream, read_pickle
from inspector.pickles.state import BrokenStreamError, StoppedError
from inspector.pickles.values import Call, Dict, Global, Set, Value
from tests.builders.pickles import plain
from tests.fuzz.unpickling import Watching
from tests.sweep import tries

LIMITS = Limits(opcodes=100_000, values=100_000, seconds=30)
few = settings(max_examples=tries(40, 150), deadline=None)
more = settings(max_examples=tries(70, 250), deadline=None)

# ------------------------------------------------------------------------------------------- honest streams

texts = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too
hashable = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.binary(max_size=20)
)
plain_data = st.recursive(
    hashable
    | st.integers(-(2**600), 2**600)
    | st.floats()
    | st.binary(max_size=400)
    | st.just(bytearray(b"ab")),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(hashable, inner, max_size=5)
        | st.sets(hashable, max_size=5)
        | st.frozensets(hashable, max_size=5)
        | inner.map(lambda item: [item, item, (item,)])
    ),
    max_leaves=30,
)

MAKERS: dict[str, Callable[..., Any]] = {
    "_codecs.encode": lambda text, encoding: text.encode(encoding),
    "set": set,
    "frozenset": frozenset,
    "bytes": bytes,
    "bytearray": bytearray,
}


def alive(value: Value) -> Any:
    """The Python value that an inert one stands for."""
    if isinstance(value, list | tuple):
        return type(value)(alive(item) for item in value)
    if isinstance(value, Dict):
        return {alive(key): alive(item) for key, item in value.pairs}
    if isinstance(value, Set):
        return (frozenset if value.frozen else set)(alive(value.items))
    if isinstance(value, Call):
        assert isinstance(value.func, Global)
        name = value.func.dotted.removeprefix("builtins.").removeprefix("__builtin__.")
        return MAKERS[name](*alive(value.args))
    return value


def same(one: Any, other: Any) -> bool:
    """Equal in type and value, all the way down; NaN is NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other) or (math.isnan(one) and math.isnan(other))
    if isinstance(other, bytes | bytearray):  # BYTEARRAY8 is read as bytes: it is never changed
        return bytes(one) == bytes(other)
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same([*one], [*other]) and same([*one.values()], [*other.values()])
    return bool(one == other)


@few
@given(plain_data, st.integers(0, 5))
def test_plain_data_is_read_as_it_was_written(data: Any, protocol: int) -> None:
    pickled = pickle.dumps(data, protocol)
    found = read_pickle(pickled + b"behind")
    assert same(alive(found.root), data)
    assert found.end == len(pickled)
    assert found.protocol == (protocol if protocol > 1 else 0)
    assert found.oddities == ()


@few
@given(plain_data, st.integers(0, 5), st.integers(1, 40))
def test_plain_data_in_pieces_is_the_same(data: Any, protocol: int, step: int) -> None:
    pickled = pickle.dumps(data, protocol)
    found = read_pickle(pickled[:step], extend=lambda nbytes: pickled[: nbytes + step])
    assert same(alive(found.root), data)
    assert found.oddities == ()


@few
@given(plain_data, st.integers(0, 5))
def test_instructions_are_those_of_pickletools(data: Any, protocol: int) -> None:
    pickled = pickle.dumps(data, protocol)
    theirs = list(pickletools.genops(pickled))
    spans = list(iter_instructions(pickled, 0, len(pickled)))
    assert [start for start, _ in spans] == [place for _, _, place in theirs]
    assert read_pickle(pickled).opcodes == {ord(opcode.code) for opcode, _, _ in theirs}


@few
@given(plain_data, st.integers(0, 5))
def test_optimized_stream_means_the_same(data: Any, protocol: int) -> None:
    """pickletools.optimize leaves gaps between memo slots and packs frames anew."""
    found = read_pickle(pickletools.optimize(pickle.dumps(data, protocol)))
    assert same(alive(found.root), data)
    assert found.oddities == ()


# ------------------------------------------------------------------------------------------- other streams

lines = st.sampled_from(
    [b"0", b"1", b"01", b"-7", b"0x10", b"1.5", b"'a'", b"os", b"system", b"", b"\\u12", b"9" * 30]
)
counted = st.binary(max_size=6) | st.just(b"abc")
OPERANDS: dict[Operand, st.SearchStrategy[bytes]] = {
    "none": st.just(b""),
    "u1": st.integers(0, 6).map(lambda number: bytes([number])),
    "u2": st.binary(min_size=2, max_size=2),
    "i4": st.binary(min_size=4, max_size=4),
    "u4": st.integers(0, 6).map(lambda number: struct.pack("<I", number)),
    "u8": st.integers(0, 30).map(lambda number: struct.pack("<Q", number)),
    "f8": st.binary(min_size=8, max_size=8),
    "line": lines.map(lambda line: line + b"\n"),
    "lines": st.tuples(lines, lines).map(lambda pair: b"%b\n%b\n" % pair),
    "len1": counted.map(lambda data: bytes([len(data)]) + data),
    "len4": counted.map(lambda data: struct.pack("<I", len(data)) + data),
    "ilen4": counted.map(lambda data: struct.pack("<i", len(data)) + data),
    "len8": counted.map(lambda data: struct.pack("<Q", len(data)) + data),
}
instructions = st.sampled_from(sorted(OPCODES)).flatmap(
    lambda code: OPERANDS[OPCODES[code].operand].map(lambda operand: bytes([code]) + operand)
)
fragments = st.sampled_from(
    [
        b"cm\nn\n)R",
        b"S'm'\nU\x01n\x93",
        b"h\x03\x8c\x01n\x93",
        b"(K\x01im\ninst\n",
        b"(h\x04K\x01o",
        b"h\x04)\x81}b",
        b"h\x04)}\x92",
        b"(K\x01K\x02t",
        b"(K\x01K\x02d",
        b"\x8f(K\x01\x90",
        b"]K\x01a",
        b"}K\x01Ns",
        b"K\x07\x94",
        b"0",
        b"2",
    ]
)
# Begun with something on the stack and in the memo, most of the instructions find what they take.
BEGINNING = b"]q\x00}q\x01)q\x02X\x01\x00\x00\x00aq\x03(K\x01K\x02cos\nsystem\nq\x04"
made_up = st.lists(instructions | fragments, max_size=25).map(
    lambda parts: b"".join([BEGINNING, *parts, b"."])
)


def read(data: bytes) -> Stream | None:
    try:
        return read_pickle(data, limits=LIMITS)
    except PickleError as error:
        return None if error.what and error.where else pytest.fail("the error does not say what and where")


@more
@given(st.binary(max_size=200))
def test_random_bytes_end_in_words(data: bytes) -> None:
    read(data)
    read(b"\x80\x02" + data + b".")


@more
@given(made_up)
def test_random_instructions_end_in_words(data: bytes) -> None:
    read(data)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A genuine stream, some of whose bytes were changed, lost or doubled."""
    protocol = draw(st.integers(0, 5))
    data = bytearray(pickle.dumps(draw(st.lists(plain_data, min_size=1, max_size=3)), protocol))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        nbytes = draw(st.integers(0, 3))
        data[at : at + nbytes] = draw(
            st.binary(max_size=3) | st.sampled_from([b"(", b"0", b"R", b"\x95", b"."])
        )
        data = data or bytearray(b".")
    return bytes(data)


@more
@given(mutated())
def test_mutated_streams_end_in_words(data: bytes) -> None:
    read(data)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pickletools meets invalid escapes
@more
@given(mutated() | made_up)
def test_pickletools_sees_the_same_boundaries_as_far_as_it_goes(data: bytes) -> None:
    places = []
    try:
        for _, _, place in pickletools.genops(data):
            places.append(place)
    except (ValueError, UnicodeError):
        places = places[:-1]  # where the last one ends is not known
    for place, following in itertools.pairwise(places):
        assert instruction_end(data, place) == following


@more
@given(mutated() | made_up)
def test_single_steps_do_the_same_as_batches(data: bytes) -> None:
    found = read(data)
    machine, place = Machine(data, name="steps"), 0
    end = None
    try:
        while True:
            place = machine.step(place)
    except StoppedError as stopped:
        end = stopped.end
    except (IndexError, ValueError, struct.error, BrokenStreamError):
        pass  # what a machine that runs puts into words
    assert end == (None if found is None else found.end)
    if found is not None:
        assert same(plain(machine.state.root), plain(found.root))
        assert tuple(map(plain, machine.state.globals.values())) == plain(found.globals)
        assert tuple(map(plain, machine.state.persistent_ids)) == plain(found.persistent_ids)


# ------------------------------------------------------------------------------------------- against CPython


HARMLESS = frozenset(OPCODES) - {0x95, 0x97, *b"\x82\x83\x84"}  # frames, buffers, extension codes


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # so does the unpickler
@more
@given(made_up)
def test_every_name_that_cpython_imports_is_seen(data: bytes) -> None:
    found = read(data)
    if found is None or not found.opcodes <= HARMLESS:
        return
    theirs = Watching(data, encoding="latin-1")
    try:
        theirs.load()
    except Exception:  # noqa: BLE001 - it stops where the stream makes no sense; what it asked for counts
        stopped = True
    else:
        stopped = False
    ours = {node.dotted for node in found.globals}
    assert theirs.asked <= ours
    if not stopped and not found.oddities:
        assert theirs.asked == ours


def test_the_watching_unpickler_would_notice() -> None:
    theirs = Watching(b"cos\nsystem\n(S'id'\ntR.")
    theirs.load()
    assert theirs.asked == {"os.system"}

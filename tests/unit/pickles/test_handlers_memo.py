from __future__ import annotations

import pickle
import struct

import pytest

from inspector.errors import PickleError
from inspector.pickles.machine import read_pickle
from inspector.pickles.oddities import StreamFault
from tests.builders.pickles import MARK, NONE, kinds, name, number, op, proto, read, root, stream, text
from tests.sweep import table


def put(opcode: str, slot: int) -> bytes:
    if opcode == "PUT":
        return op("PUT", b"%d\n" % slot)
    return op(opcode, struct.pack({"BINPUT": "<B", "LONG_BINPUT": "<I"}[opcode], slot))


def get(slot: int) -> bytes:
    return op("LONG_BINGET", struct.pack("<I", slot))


PUTS = ["PUT", "BINPUT", "LONG_BINPUT"]


@table("opcode", PUTS)
@table("slots", [(0, 1, 2), (0, 2, 1), (5, 6, 7), (2, 0, 0), (0, 0, 1)])
def test_slots_may_be_filled_in_any_order(opcode: str, slots: tuple[int, ...]) -> None:
    parts = [number(value) + put(opcode, slot) for value, slot in enumerate(slots, 10)]
    data = stream(MARK, *parts, *map(get, slots), op("LIST"))
    assert read_pickle(data).root == pickle.loads(data)


@table("slots", [(), (0,), (5,), (0, 7), (1,)])
def test_memoize_takes_the_number_of_slots(slots: tuple[int, ...]) -> None:
    parts = [number(slot) + put("BINPUT", slot) for slot in slots]
    data = stream(MARK, *parts, text("new"), op("MEMOIZE"), get(len(slots)), op("LIST"))
    assert read_pickle(data).root == pickle.loads(data)


@table("instruction", [op("GET", b"3\n"), op("BINGET", b"\x03"), get(3)])
@table("filled", [0, 9])
def test_empty_slot(instruction: bytes, filled: int) -> None:
    with pytest.raises(PickleError, match="memo slot 3 is read before it is filled: pickle, byte 3, "):
        read(NONE + put("BINPUT", filled), instruction)


def test_largest_slot_takes_no_memory() -> None:
    assert root(text("a"), put("LONG_BINPUT", 0xFFFFFFFF), get(0xFFFFFFFF), op("TUPLE2")) == ("a", "a")
    assert kinds(text("a"), put("LONG_BINPUT", 0xFFFFFFFF)) == []


def test_slot_too_large_for_a_real_unpickler_is_noted() -> None:
    assert kinds(NONE, put("PUT", 2**32 - 1)) == []
    assert kinds(NONE, put("PUT", 2**32)) == ["huge-memo-slot"]
    assert kinds(NONE, put("PUT", 10**18)) == ["huge-memo-slot"]
    assert root(text("a"), put("PUT", 10**18), op("GET", b"%d\n" % 10**18), op("TUPLE2")) == ("a", "a")


def test_slots_that_would_all_hash_alike_are_refused() -> None:
    """Multiples of 2**61 - 1 share one hash; a million of them would take hours to remember."""
    read(NONE, put("PUT", 2**63 - 1))
    with pytest.raises(PickleError, match="a memo slot is out of range"):
        read(NONE, put("PUT", 2**63))


@table("slot", [b"-1", b"-9999999999999999999999"])
@table("opcode", ["PUT", "GET"])
def test_negative_slot(opcode: str, slot: bytes) -> None:
    with pytest.raises(PickleError, match="a memo slot is out of range"):
        read(NONE, op(opcode, slot + b"\n"))


@table("slot", [b"", b"x", b"1.0", b"0x1"])
@table("opcode", ["PUT", "GET"])
def test_slot_that_is_no_number(opcode: str, slot: bytes) -> None:
    with pytest.raises(PickleError, match="an operand that cannot be read"):
        read(NONE, op(opcode, slot + b"\n"))


def test_slot_on_an_endless_line() -> None:
    with pytest.raises(PickleError, match="a memo slot is not a short line"):
        read(NONE, op("PUT", b"0" * 64 + b"\n"))
    assert root(NONE, op("PUT", b"0" * 63 + b"\n")) is None


# ------------------------------------------------------------------------------------------- stack and marks


def test_pop_takes_a_mark_when_nothing_stands_above_it() -> None:
    data = stream(number(1), MARK, op("POP"))
    assert read_pickle(data).root == pickle.loads(data) == 1


def test_popped_call_is_still_known() -> None:
    found = read(name("os.system"), text("id"), op("TUPLE1"), op("REDUCE"), op("POP"), NONE)
    assert [node.dotted for node in found.globals] == ["os.system"]


def test_values_left_on_the_stack_are_no_matter() -> None:
    assert root(number(1), MARK, number(2), number(3)) == 3


# ------------------------------------------------------------------------------------------- protocol, frames


@table("version", range(6))
def test_protocol(version: int) -> None:
    assert read(proto(version), NONE).protocol == version


def test_protocol_is_the_highest_declared() -> None:
    assert read(NONE).protocol == 0
    assert read(proto(4), proto(2), NONE).protocol == 4


def test_unknown_protocol() -> None:
    # torch's restricted unpickler goes on, and CPython's stops.
    found = read(proto(2), proto(6), NONE)
    assert (found.protocol, found.oddities, found.faults) == (2, (), {StreamFault.UNKNOWN_PROTOCOL})


def frame(*parts: bytes, nbytes: int | None = None) -> bytes:
    body = b"".join(parts)
    return op("FRAME", struct.pack("<Q", len(body) if nbytes is None else nbytes)) + body


@table(
    "parts",
    [
        (frame(NONE, b"."),),
        (frame(MARK, number(1)), frame(number(2), op("LIST"), b".")),
        (frame(MARK, number(1)), number(2), frame(op("LIST"), b".")),
        (frame(), frame(), frame(NONE), b"."),
        (
            frame(NONE, b".", nbytes=2**64 - 1),
        ),  # too long; the C unpickler would refuse it, none would differ
    ],
)
def test_frames_that_keep_to_the_instructions_are_no_matter(parts: tuple[bytes, ...]) -> None:
    found = read_pickle(proto(4) + b"".join(parts))
    assert found.oddities == ()
    assert found.end == 2 + len(b"".join(parts))


@table("nbytes", range(1, 5))
def test_instruction_that_crosses_the_end_of_its_frame(nbytes: int) -> None:
    """The C unpickler drops the rest of a frame and goes on behind it: it sees other instructions."""
    found = read(proto(4), frame(text(""), nbytes=nbytes))
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-straddle", 11)]


def test_frame_within_a_frame() -> None:
    found = read(proto(4), frame(NONE, frame(number(1)), number(2)))
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-in-frame", 12)]


def test_frame_that_begins_with_the_last_byte_of_another() -> None:
    found = read(proto(4), frame(NONE, nbytes=2), frame(NONE))
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-in-frame", 12)]


def test_frame_that_arrives_in_pieces_is_still_watched() -> None:
    data = stream(proto(4), frame(*[number(1)] * 5, nbytes=9))
    found = read_pickle(b"", extend=lambda nbytes: data[: nbytes + 1])
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-straddle", 19)]


def test_long_frame_is_watched_to_its_end() -> None:
    body = NONE * 20_000
    assert read(proto(4), frame(body)).oddities == ()
    assert [note.offset for note in read(proto(4), frame(body, text("ab"), nbytes=20_001)).oddities] == [
        20_011
    ]

from __future__ import annotations

import pickle
import pickletools
import struct

import pytest

from inspector.errors import PlanError
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import read_pickle
from inspector.pickles.trace import Built, trace_pickle
from inspector.remap.rewrite import (
    Edit,
    apply_edits,
    device_instructions,
    index_edit,
    index_instruction,
    index_of,
    literal_of,
    mend_frames,
)
from tests.builders.pickles import CPU_IN_EVERY_WAY
from tests.sweep import table


@table("literal", CPU_IN_EVERY_WAY)
def test_a_text_is_written_with_the_instruction_it_was_written_with(literal: bytes) -> None:
    data = literal + b"q\x00h\x00\x86."
    trace = trace_pickle(data, texts=frozenset({"cpu"}))
    again = list(trace.texts.values())[1]
    new = literal_of(data, trace, again, "cuda:11")
    assert new[0] == literal[0]
    assert read_pickle(new + b".").root == "cuda:11"
    assert literal_of(data, trace, again, "cpu") == literal


def test_the_old_text_is_repeated_as_it_was_written() -> None:
    data = b'S"c\\x70u"\nq\x00h\x00\x86.'
    trace = trace_pickle(data, texts=frozenset({"cpu"}))
    assert literal_of(data, trace, list(trace.texts.values())[1], "cpu") == data[: data.index(b"q")]


@table("index", [0, 1, 127, 255, 256, 70000, -56])
def test_numbers_are_written_for_every_reader(index: int) -> None:
    data = index_instruction(index)
    assert pickle.loads(data + b".") == index
    assert data[:1] in {b"K", b"J"}  # both known to weights_only


def built(data: bytes) -> Built:
    trace = trace_pickle(data + b".", texts=frozenset({"cuda", "cpu"}))
    return trace.tuples[id(trace.root)]


@table("index", [None, 0, 300])
@table(
    "data",
    [
        b"U\x04cuda\x85",
        b"(U\x04cudat",
        b"U\x04cudaK\x01\x86",
        b"U\x04cudaq\x00K\x01\x86",
        b"(U\x04cudaK\x01t",
        b"(U\x04cudaI1\nt",
        b"U\x04cudaq\x00\x85",
    ],
)
def test_the_number_of_a_device_changes_comes_and_goes(data: bytes, index: int | None) -> None:
    new = b"" if index is None else index_instruction(index)
    made = apply_edits(data, [index_edit(data, built(data), new)])
    assert pickle.loads(made + b".", encoding="ascii") == (("cuda",) if index is None else ("cuda", index))


@table("data", [b"U\x04cudaK\x01q\x00\x86", b"U\x04cudaK\x01K\x02\x87", b"U\x04cuda)\x81\x85"])
def test_a_number_written_strangely_is_refused(data: bytes) -> None:
    if data.endswith(b"\x81\x85"):
        return
    with pytest.raises(PlanError):
        index_of(data, built(data))


def test_a_number_is_given_as_it_is_written() -> None:
    assert index_of(b"U\x04cudaK\x01\x86", built(b"U\x04cudaK\x01\x86")) == b"K\x01"
    assert index_of(b"U\x04cuda\x85", built(b"U\x04cuda\x85")) == b""


@pytest.mark.parametrize("index", [b"", b"K\x03"])
def test_a_device_is_written_without_touching_the_memo(index: bytes) -> None:
    data = device_instructions(b"U\x04cuda", index)
    codes = {opcode.name for opcode, _, _ in pickletools.genops(data + b".")}
    assert codes <= {"GLOBAL", "SHORT_BINSTRING", "BININT1", "TUPLE1", "TUPLE2", "REDUCE", "STOP"}
    assert len(read_pickle(data + b".").root.args) == 1 + bool(index)


def test_edits_are_made_in_the_order_of_the_bytes() -> None:
    edits = [Edit(4, 4, b"+"), Edit(0, 2, b""), Edit(6, 9, b"xyz")]
    assert apply_edits(b"abcdefghi", edits) == b"cd+efxyz"


def test_frames_keep_the_length_of_what_they_hold() -> None:
    first = b"\x95" + struct.pack("<Q", 3) + b"KKK"
    second = b"\x95" + struct.pack("<Q", 4) + b"NNNN"
    data = first + b"outside" + second
    place = len(first) + len(b"outside")
    edits = [
        Edit(place + 9, place + 10, b"12345"),  # the first byte of the second frame
        Edit(11, 12, b""),  # the last of the first
        Edit(13, 15, b"-----"),  # between the two
        Edit(place + 12, place + 12, b"!"),
    ]
    mended = mend_frames(data, [0, place], edits)
    made = apply_edits(data, edits + mended)
    assert made == (
        b"\x95" + struct.pack("<Q", 2) + b"KKo-----side" + b"\x95" + struct.pack("<Q", 9) + b"12345NN!N"
    )


def test_a_frame_that_nothing_grows_in_stays() -> None:
    data = b"\x95" + struct.pack("<Q", 3) + b"KKK"
    assert mend_frames(data, [0], [Edit(10, 11, b"x")]) == []
    assert CODES["FRAME"] == data[0]

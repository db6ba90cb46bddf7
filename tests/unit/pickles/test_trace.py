from __future__ import annotations

import pickle

import pytest

from inspector.containers.opening import read_container
from inspector.containers.persistent_ids import parse_storage_id
from inspector.errors import CancelledError
from inspector.pickles.machine import read_pickle
from inspector.pickles.trace import Trace, trace_pickle
from inspector.pickles.values import Call, PersistentId
from inspector.progress import Progress
from tests.builders.pickles import CPU_IN_EVERY_WAY
from tests.corpus import Case, cases
from tests.sweep import table

READABLE = [case for case in cases() if case.container in {"zip", "legacy", "gzip(legacy)"}]


def traced(body: bytes, *texts: str, names: frozenset[str] = frozenset()) -> Trace:
    return trace_pickle(body + b".", texts=frozenset(texts or ("cpu",)), names=names, device="torch.device")


def spans(trace: Trace) -> list[tuple[int, int, str, int | None]]:
    return [(push.start, push.end, push.value, push.base) for push in trace.texts.values()]


# --- texts --------------------------------------------------------------------------------------------------


@table("literal", CPU_IN_EVERY_WAY)
def test_every_kind_of_text_is_seen_where_it_stands(literal: bytes) -> None:
    assert spans(traced(b"]" + literal + b"a")) == [(1, 1 + len(literal), "cpu", None)]


def test_other_texts_are_not_watched() -> None:
    trace = traced(b"(U\x03cpuU\x03gpul", "cpu")
    assert [push.value for push in trace.texts.values()] == ["cpu"]


@table(
    ("put", "fetch"),
    [
        (b"p7\n", b"g7\n"),
        (b"q\x07", b"h\x07"),
        (b"r\x07\x00\x00\x00", b"j\x07\x00\x00\x00"),
        (b"\x94", b"h\x00"),
        (b"", b"2"),
    ],
)
def test_a_text_pushed_again_knows_where_it_came_from(put: bytes, fetch: bytes) -> None:
    trace = traced(b"U\x03cpu" + put + fetch + b"\x86")
    first = 5 + len(put)
    assert spans(trace) == [(0, 5, "cpu", None), (first, first + len(fetch), "cpu", 0)]


def test_a_text_fetched_twice_leads_back_step_by_step() -> None:
    trace = traced(b"U\x03cpuq\x00h\x00q\x01h\x01\x87")
    assert [push.base for push in trace.texts.values()] == [None, 0, 7]


def test_memoize_counts_slots_not_fillings() -> None:
    # One slot is in use each time MEMOIZE asks: both fill slot 1.
    trace = traced(b"U\x03cpuq\x01N\x940U\x03cpu\x94h\x01\x87")
    assert [push.base for push in trace.texts.values()] == [None, None, 10]


def test_a_slot_filled_again_with_something_else_is_forgotten() -> None:
    trace = traced(b"U\x03cpuq\x00K\x01q\x00h\x00\x87")
    assert spans(trace) == [(0, 5, "cpu", None)]


def test_what_merely_starts_with_a_text_is_not_that_text() -> None:
    trace = traced(b"U\x03cpu\x85q\x00h\x00\x86")
    assert len(trace.texts) == 1


# --- tuples -------------------------------------------------------------------------------------------------


@table(
    ("body", "starts", "close"),
    [
        (b"(K\x01U\x03cpuNt", (1, 3, 8), 9),
        (b"U\x03cpu\x85", (0,), 5),
        (b"K\x01U\x03cpu\x86", (0, 2), 7),
        (b"K\x01(K\x01tU\x03cpu\x87", (0, 2, 6), 11),
        (b"(K\x01K\x01\x86U\x03cput", (1, 6), 11),
    ],
)
def test_elements_are_found_where_their_instructions_start(
    body: bytes, starts: tuple[int, ...], close: int
) -> None:
    trace = traced(body)
    built = trace.tuples[id(trace.root)]
    assert (built.made, built.starts, built.close) == (trace.root, starts, close)
    assert [trace.place_of(trace.root, index) for index in range(len(starts))] == list(starts)


def test_an_element_there_is_none_of_has_no_place() -> None:
    trace = traced(b"U\x03cpu\x85")
    assert trace.place_of(trace.root, 1) is None
    assert trace.place_of(("cpu",), 0) is None


def test_tuples_without_anything_watched_are_not_kept() -> None:
    assert not traced(b"(K\x01K\x02t").tuples


# --- marks --------------------------------------------------------------------------------------------------


@table(
    "body",
    [
        b"(K\x01K\x02l",  # LIST
        b"(K\x01K\x02d",  # DICT
        b"(K\x01\x91",  # FROZENSET
        b"](K\x01e",  # APPENDS
        b"}(K\x01K\x02u",  # SETITEMS
        b"\x8f(K\x01\x90",  # ADDITEMS
        b"(K\x01imine\nThing\n",  # INST
        b"(cmine\nThing\nK\x01o",  # OBJ
        b"N(K\x011",  # POP_MARK
        b"N(0",  # POP of the mark itself
        b"NK\x010",  # POP of a value
        b"]K\x01a",  # APPEND
        b"}K\x01K\x02s",  # SETITEM
        b"cmine\nThing\n)\x81",  # NEWOBJ
        b"cmine\nThing\n)}\x92",  # NEWOBJ_EX
        b"cmine\nThing\n)R}b",  # BUILD
        b"U\x04mineU\x05Thing\x93",  # STACK_GLOBAL
        b"U\x01aP1\n\x86",  # PERSID
    ],
)
def test_the_starts_keep_pace_with_the_stack(body: bytes) -> None:
    trace = traced(b"K\x00" + body + b"U\x03cpu\x87")
    assert trace.tuples[id(trace.root)].starts == (0, 2, 2 + len(body))


# --- devices and calls --------------------------------------------------------------------------------------

DEVICE = b"ctorch\ndevice\nU\x03cpu\x85R"


def test_a_device_is_a_run_from_its_name_to_its_call() -> None:
    trace = traced(b"N" + DEVICE + b"\x86")
    (push,) = trace.devices.values()
    assert (push.start, push.end, push.base) == (1, 1 + len(DEVICE), None)
    assert trace.place_of(trace.root, 1) == 1


def test_a_device_pushed_again_knows_where_it_came_from() -> None:
    trace = traced(DEVICE + b"q\x00h\x002\x87")
    assert [push.base for push in trace.devices.values()] == [None, 0, len(DEVICE) + 2]


def test_only_torch_makes_devices() -> None:
    assert not traced(b"cmine\ndevice\nU\x03cpu\x85R").devices
    assert not traced(b"K\x01U\x03cpu\x85R").devices


def test_calls_of_watched_names_are_collected_with_their_place() -> None:
    body = b"(cmine\nbuild\nU\x03cpu\x85Rcmine\nother\n)Rl"
    (found,) = traced(body, names=frozenset({"build"})).calls
    assert isinstance(found.call, Call)
    assert body[found.start : found.end] == b"cmine\nbuild\nU\x03cpu\x85R"


def test_frames_and_persistent_ids_are_listed() -> None:
    trace = traced(b"\x80\x04\x95\x08\x00\x00\x00\x00\x00\x00\x00U\x03cpu\x85Q")
    assert trace.frames == [2]
    assert trace.pids == [(17, ("cpu",))]


# --- whole streams ------------------------------------------------------------------------------------------


@pytest.mark.wide
@table("case", READABLE)
def test_every_location_of_genuine_files_is_found(case: Case) -> None:
    stream = read_container(str(case.path)).stream
    ids = [parse_storage_id(node) for node in stream.persistent_ids]
    locations = frozenset(storage.location for storage in ids if storage is not None)
    trace = trace_pickle(stream.data[: stream.end], texts=locations)
    assert len(trace.pids) == len(stream.persistent_ids)
    for _, pid in trace.pids:
        if storage := parse_storage_id(PersistentId(pid)):
            assert trace.texts[trace.place_of(pid, 3)].value == storage.location


@table("protocol", range(6))
def test_every_push_gives_its_text(protocol: int) -> None:
    shared = ["cpu", {"cpu": ("cpu", "cuda")}, "cuda"]
    data = pickle.dumps([shared, shared, ("cuda", shared[0])], protocol)
    trace = trace_pickle(data, texts=frozenset({"cpu", "cuda"}))
    assert sorted(push.value for push in trace.texts.values()) == ["cpu"] * 4 + ["cuda"] * 3
    for push in trace.texts.values():
        if push.base is None:
            assert read_pickle(data[push.start : push.end] + b".").root == push.value


def test_tracing_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        trace_pickle(b"N.", texts=frozenset(), progress=progress)

from __future__ import annotations

import pickle
from typing import Any

import pytest

from inspector.containers import pickle_source as module
from inspector.containers.codings import LINE, PLAIN, TEXT
from inspector.containers.pickle_source import Hooks, Place, PlainMachine
from inspector.containers.source import BytesSource
from inspector.errors import BrokenOffError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import read_pickle
from inspector.pickles.oddities import OddityKind
from inspector.pickles.values import Blob, Call, Value
from inspector.progress import Progress
from tests.builders.pickles import call, dict_, number, op, proto, stream, text, tuple_

LARGE = bytes(range(256)) * 400
VALUE = {"a": [1, 2.5, None, True], "b": ("x" * 5000, 1.5), "c": {"d": "\xe9"}, "e": 2**200}


def machine(data: bytes, start: int = 0, hooks: Hooks | None = None, **limits: int) -> PlainMachine:
    return PlainMachine(
        BytesSource(data, "a.pkl"),
        start,
        limits=Limits(**limits),
        progress=Progress(),
        hooks=hooks or module.NO_HOOKS,
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
    monkeypatch.setattr(module, "_FIRST_NBYTES", first)
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
    monkeypatch.setattr(module, "_MOST_READ_NBYTES", 5000)
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
    monkeypatch.setattr(module, "_MOST_SLOTS", 2)
    puts = b"".join(number(1) + op("BINPUT", bytes([slot])) + op("POP") for slot in range(1, 5))
    data = stream(proto(), call("m.f"), op("BINPUT", b"\0"), puts, number(1), op("BUILD"))

    def built(at: PlainMachine, old: Call, _: int) -> None:
        at.replace(old, "new")

    left = machine(data, hooks=Hooks(None, built)).run().root
    assert isinstance(left, Call)
    bare = stream(proto(), call("m.f"), number(1), op("BUILD"))
    assert machine(bare, hooks=Hooks(None, built)).run().root == "new"


def test_a_hook_says_where_to_go_on() -> None:
    head = stream(proto(), op("MARK"), call("m.f"))[:-1]
    data = head + b"raw bytes" + number(7) + op("LIST") + op("STOP")
    hooks = Hooks(lambda _at, _made, place: place + 9)
    root = machine(data, hooks=hooks).run().root
    assert isinstance(root, list)
    assert root[1] == 7


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
    monkeypatch.setattr(module, "_FIRST_NBYTES", 4)
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

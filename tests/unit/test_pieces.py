import random
from array import array
from itertools import accumulate, pairwise
from threading import Thread, get_ident
from threading import enumerate as enumerate_threads
from typing import Any, ClassVar

import pytest

from inspector import pieces
from inspector.pieces import are_distinct, counted, in_pieces, let_go, let_go_after, sorted_by, summed

PIECE = 16


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pieces so small that a few rows are many of them."""
    monkeypatch.setattr(pieces, "PIECE", PIECE)


def test_pieces_are_all_rows_in_their_order() -> None:
    for count in (0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 3):
        rows = range(count)

        found = list(in_pieces(rows))

        assert [row for piece in found for row in piece] == list(rows), count
        assert all(1 <= len(piece) <= PIECE for piece in found), count


def test_sums_are_those_of_accumulate(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noting(*given: Any, **named: Any) -> Any:
        some = list(accumulate(*given, **named))
        sizes.append(len(some))
        return some

    monkeypatch.setattr(pieces, "accumulate", noting)
    for count in (0, 1, PIECE, PIECE + 1, 3 * PIECE + 5):
        for factor in (7, 1 << 40, 1 << 70):
            values = [place * factor - 20 for place in range(count)]

            assert list(summed(values)) == list(accumulate(values, initial=0)), (count, factor)
    assert max(sizes) == PIECE + 1


def test_sums_take_as_few_bytes_as_they_need() -> None:
    found = {size: summed([size, size]) for size in (1, 1 << 31, 1 << 63)}

    widths = {size: sums.itemsize if isinstance(sums, array) else None for size, sums in found.items()}
    assert widths == {1: 4, 1 << 31: 8, 1 << 63: None}


def test_equal_values_are_counted() -> None:
    values = ["cpu", "cuda:0", "cpu"] * PIECE

    assert counted(iter(values)) == {"cpu": 2 * PIECE, "cuda:0": PIECE}


def test_values_are_distinct_unless_two_are_equal() -> None:
    for count in (0, 1, PIECE, PIECE + 1, 9 * PIECE):
        values = [f"t{number}" for number in range(count)]
        assert are_distinct(values), count
        for place in (0, count // 2, count - 1) if count else ():
            assert not are_distinct([*values, values[place]]), (count, place)
    assert not are_distinct([*range(PIECE), 1.0])


def test_many_values_are_compared_in_small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[set[object]] = []

    class Noted(set[object]):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(pieces, "set", Noted, raising=False)
    values = [f"t{number}" for number in range(50 * PIECE)]
    assert are_distinct(values)
    assert sum(map(len, made)) == len(values)
    assert max(map(len, made)) <= 3 * PIECE


def test_rows_are_sorted_as_one_call_would(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    sort_part = pieces._by_keys

    def noting(pairs: list[tuple[Any, Any]]) -> list[Any]:
        sizes.append(len(pairs))
        return sort_part(pairs)

    monkeypatch.setattr(pieces, "_by_keys", noting)
    chance = random.Random(1)
    count = 200 * PIECE
    mixed = [(chance.randrange(count), place) for place in range(count)]
    rows = {
        "in order": sorted(mixed),
        "mixed": mixed,
        "backward": sorted(mixed, reverse=True),
        "two values": [(place % 2, place) for place in range(count)],
        "few": mixed[: PIECE - 1],
        "one out of order": [*sorted(mixed), (0, -1)],
        "none": [],
    }
    for name, given in rows.items():
        sizes.clear()
        assert sorted_by(given, lambda row: row[0]) == sorted(given, key=lambda row: row[0]), name
        if name in ("mixed", "backward", "one out of order"):
            assert max(sizes) <= 8 * PIECE, name  # no call sorts all of them
        if name == "in order":
            assert not sizes


class _List(list[int]):
    """A list that notes how many items end in one call."""

    most = 0

    def __delitem__(self, place: Any) -> None:
        self.most = max(self.most, len(self[place]))
        super().__delitem__(place)


class _Dict(dict[int, int]):
    """A dictionary whose items end one by one."""

    popped = 0

    def popitem(self) -> tuple[int, int]:
        self.popped += 1
        return super().popitem()


class _Set(set[int]):
    """A set whose items end one by one."""

    popped = 0

    def pop(self) -> int:
        self.popped += 1
        return super().pop()


def test_what_is_let_go_ends_in_pieces() -> None:
    count = 3 * PIECE + 1
    rows, pairs, items = _List(range(count)), _Dict(enumerate(range(count))), _Set(range(count))

    let_go(rows, pairs, items)

    assert not rows
    assert not pairs
    assert not items
    assert rows.most == PIECE
    assert pairs.popped == items.popped == count


class _Thing:
    """Notes in which thread it ends."""

    ended: ClassVar[set[int]] = set()
    alive = 0

    def __init__(self) -> None:
        type(self).alive += 1

    def __del__(self) -> None:
        type(self).alive -= 1
        self.ended.add(get_ident())


class _Owner:
    """Refers to many things."""

    def __init__(self, things: tuple[_Thing, ...]) -> None:
        self.things = things


def _threads() -> list[Thread]:
    return [thread for thread in enumerate_threads() if thread.name == "checkpoint-end"]


def test_what_an_owner_held_ends_in_another_thread() -> None:
    _Thing.ended.clear()
    owner, others = _Owner(tuple(_Thing() for _ in range(3 * PIECE))), [_Thing()]
    let_go_after(owner, owner.things, others)
    others.append(_Thing())
    del others
    assert _Thing.alive == 3 * PIECE + 2

    del owner
    for thread in _threads():
        thread.join()

    assert _Thing.alive == 0
    assert get_ident() not in _Thing.ended


def test_what_others_still_refer_to_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_LOOK_S", 0)
    things = tuple(_Thing() for _ in range(PIECE))
    owner = _Owner(things)
    let_go_after(owner, things)

    del owner
    for thread in _threads():
        thread.join()

    assert _Thing.alive == len(things) == PIECE


def test_what_refers_to_the_others_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the others would be waited for in vain, and end in one piece."""
    slept: list[float] = []
    monkeypatch.setattr(pieces.time, "sleep", slept.append)
    things = _Owner(tuple(_Thing() for _ in range(PIECE)))
    held: list[object] = [things.things, things]
    del things

    pieces._let_go_of_each(held)

    assert set(slept) == {pieces._LATER_S, pieces._REST_S}
    assert _Thing.alive == 0


def test_what_nobody_needs_ends_late_and_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(pieces.time, "sleep", lambda _seconds: left.append(_Thing.alive))
    count = PIECE
    pairs: dict[int, object] = {place: _Thing() for place in range(count)}
    held: list[object] = [pairs, tuple(_Thing() for _ in range(count))]
    del pairs

    pieces._let_go_of_each(held)

    assert left[0] == 2 * count
    assert left[-1] == _Thing.alive == 0
    assert max(before - after for before, after in pairwise(left)) <= PIECE // 16

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.comparing.compose import (
    CompareState,
    arrange,
    can_measure,
    compose,
    leaf_name,
    prepare,
)
from inspector.session.comparing.screen import CompareScreen
from inspector.session.screen import FailurePage
from tests.builders import pickles as p
from tests.builders.states import Raw, T
from tests.unit.diff.test_compare import NUMBERS, TIED, V, W, compared

NOTHING: frozenset[str] = frozenset()


def state_of(tmp_path: Path, a: Any, b: Any, **fields: Any) -> CompareState:
    found = prepare(compared(tmp_path, a, b))
    groups = arrange(found, NOTHING, only_differences=True)
    return CompareState(a="/x/a.pt", b="/y/b.pt", compared=found, groups=groups, **fields)


def screen_of(tmp_path: Path, a: Any, b: Any, **fields: Any) -> CompareScreen:
    return compose(state_of(tmp_path, a, b, **fields))


def test_files_are_named_by_what_tells_them_apart() -> None:
    table = {
        ("/a/x.pt", "/a/y.pt"): ("x.pt", "y.pt"),
        ("/a/1/x.pt", "/a/2/x.pt"): ("1/x.pt", "2/x.pt"),
        ("/a/x.pt", "/a/x.pt"): ("x.pt", "x.pt"),
        ("/a\n/x.pt", "/b/x.pt"): ("a\\u000a/x.pt", "b/x.pt"),
    }
    for paths, names in table.items():
        screen = compose(CompareState(a=paths[0], b=paths[1]))
        assert (screen.a.name, screen.b.name) == names
        assert screen.title == f"{names[0]} \u2194 {names[1]} - Checkpoint Inspector"


def test_reading_and_failing_are_shown_without_rows() -> None:
    progress = Progress()
    state = CompareState(a="a", b="b", progress=progress)
    assert (compose(state).phase, compose(state).progress) == ("opening", progress)
    failure = FailurePage(title="No", what="", where="", remedy="")
    assert (
        compose(replace(state, failure=failure)).phase,
        compose(replace(state, failure=failure)).failure,
    ) == (
        "failed",
        failure,
    )


def test_rows_stand_by_their_places(tmp_path: Path) -> None:
    a = {"m": {"l.0.w": T(W), "l.0.v": T(V), "k": T(W)}, "lr": 1}
    screen = screen_of(tmp_path, a, {"m": {"l.0.w": T(V), "l.0.v": T(W), "k": T(W)}, "lr": 2})
    assert [(group.title, group.detail, group.rows) for group in screen.groups] == [
        ("m/l.0", "2", (0, 1)),
        ("Other values", "1", (3,)),
    ]
    assert [leaf_name(row) for row in screen.rows] == ["w", "v", "k", "lr"]
    assert (screen.shown, screen.status, screen.tone) == (3, "3 of 4 rows listed", "warning")
    assert [(kind.id, kind.count, kind.chosen) for kind in screen.kinds] == [
        ("values", 2, False),
        ("value", 1, False),
    ]
    found = prepare(compared(tmp_path, T(W), T(V)))
    assert leaf_name(found.rows[0]) == "(root)"
    tied = prepare(compared(tmp_path, TIED, {name: T(W) for name in "ehf"}))
    (group,) = arrange(tied, NOTHING, only_differences=True)
    assert (group.title, leaf_name(tied.rows[group.rows[0]])) == ("Shared memory", "e, h")


def test_kinds_narrow_the_list(tmp_path: Path) -> None:
    found = prepare(compared(tmp_path, {"w": T(W), "v": T(V), "lr": 1}, {"w": T(V), "v": T(V), "lr": 2}))
    for kinds, only, rows in (
        (NOTHING, True, [0, 2]),
        (NOTHING, False, [0, 1, 2]),
        (frozenset({"values"}), False, [0]),
        (frozenset({"values", "value"}), True, [0, 2]),
    ):
        groups = arrange(found, kinds, only_differences=only)
        assert [row for group in groups for row in group.rows] == rows


def test_a_search_narrows_the_list(tmp_path: Path) -> None:
    found = prepare(compared(tmp_path, {"w": T(W), "v": T(V), "lr": 1}, {"w": T(V), "v": T(V), "lr": 2}))
    for query, only, rows in (
        ("", True, [0, 2]),
        ("LR", True, [2]),
        ("values float32", True, [0]),
        ("values lr", True, []),
        ("fl*32", False, [0, 1]),
        ("32*fl*q", False, []),
        ("[", True, []),
        ("*", True, [0, 2]),
    ):
        groups = arrange(found, NOTHING, only_differences=only, query=query)
        assert [row for group in groups for row in group.rows] == rows, query


def test_tones_and_what_is_said_first(tmp_path: Path) -> None:
    equal = screen_of(tmp_path, {"w": T(W)}, {"w": T(W)})
    assert (equal.tone, equal.shown, equal.alerts) == ("good", 0, ())
    evil = screen_of(tmp_path, {"w": T(W)}, {"w": T(W), "x": Raw(p.call("os.system", p.text("id")))})
    assert evil.tone == "bad"
    assert evil.alerts[0].startswith("DANGEROUS")
    assert evil.a.line == "zip \u00b7 1 tensor \u00b7 398 B" or evil.a.line.startswith("zip \u00b7 1 tensor")
    names = {
        f"{group}{number}.x{group}.w": T([float(number), ord(group)])
        for group in "abcdefgh"
        for number in (1, 2)
    }
    moved = {f"{name[0]}.{name}": one for name, one in names.items()}
    notes = screen_of(tmp_path, names, moved).notes
    assert len(notes) == 7
    assert notes[0].startswith("Renamed: ")
    assert notes[-1].startswith("\u2026 and by ")


def test_the_selected_row_says_all_that_both_files_do(tmp_path: Path) -> None:
    a, b = {"w": T(W, device="cuda:0"), "lr": 1, "old": T(W[:2])}, {"w": T(V), "lr": 2, "q": T(W[:1])}
    state = state_of(tmp_path, a, b)
    assert compose(state).selection is None
    facts = {}
    for number, row in enumerate(compose(state).rows):
        selection = compose(replace(state, selected=number)).selection
        assert selection is not None
        assert selection.title == (row.a_path or row.b_path)
        facts[selection.title] = {fact.label: (fact.a, fact.b, fact.differs) for fact in selection.facts}
        assert selection.can_measure == (selection.title == "w")
    assert facts["w"]["Device"] == ("cuda:0", "cpu", True)
    assert facts["w"]["Values"] == ("differs", "differs", True)
    assert facts["w"]["Shape"] == ("4", "4", False)
    assert next(iter(facts["w"])) == "Device"  # what differs comes first
    assert facts["lr"] == {"Value": ("1", "2", True)}
    assert facts["old"] == {
        "Path": ("old", "\u2014", True),
        "Value": ("float32 2, 8 B, cpu", "\u2014", True),
    }


def test_numbers_are_said_once_they_are_known(tmp_path: Path) -> None:
    state = state_of(tmp_path, {"w": T(W)}, {"w": T(V)}, selected=0)
    diff = compared(tmp_path, {"w": T(W)}, {"w": T(V)}, NUMBERS)
    numbers = diff.tensors[0].numbers
    assert numbers is not None
    selection = compose(
        replace(state, measured=((diff.tensors[0].pair, numbers),), measure_failure="no")
    ).selection
    assert selection is not None
    assert selection.numbers.startswith("4 of 4 elements differ")
    assert selection.failure == "no"


def test_only_pairs_with_as_many_elements_can_be_measured(tmp_path: Path) -> None:
    def measurable(a: T, b: T) -> bool:
        diff = compared(tmp_path, {"w": a}, {"w": b})
        return can_measure(diff, prepare(diff).rows[0])

    assert measurable(T(W), T(V, (2, 2)))
    assert not measurable(T(W), T(W[:3]))
    assert not measurable(T(W, device="meta"), T(W))
    assert not measurable(T([], (0,)), T([], (0,)))
    assert not measurable(T(W[:2], (1 << 40, 2), stride=(0, 0)), T(W[:2], (1 << 40, 2), stride=(0, 1)))

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.errors import ContainerError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.comparing.compose import (
    CompareState,
    arrange,
    can_measure,
    compose,
    prepare,
    with_figures,
)
from inspector.session.comparing.screen import CompareScreen
from inspector.session.screen import FailurePage
from tests.builders import pickles as p
from tests.builders.states import Raw, T
from tests.unit.diff.test_compare import NUMBERS, TIED, V, W, compared

NOTHING: frozenset[str] = frozenset()


def state_of(tmp_path: Path, a: Any, b: Any, **fields: Any) -> CompareState:
    state = CompareState(a="/x/a.pt", b="/y/b.pt", compared=prepare(compared(tmp_path, a, b)), **fields)
    return replace(state, listing=arrange(state))


def tree_of(screen: CompareScreen, node: int = 0) -> list[Any]:
    """What is listed below a node: the names of rows, and (name, what is below) of groups."""
    shape, listing = screen.shape, screen.listing
    assert shape is not None
    assert listing is not None
    found: list[Any] = []
    for child in listing.below.get(node, ()):
        name = listing.slices[child] if child in listing.slices else shape.names[child]
        found.append((name, tree_of(screen, child)) if listing.below.get(child) else name)
    return found


def rows_of(state: CompareState) -> list[int]:
    """The numbers of the rows that the choices of a state leave, from top to bottom."""
    return rows_in(compose(replace(state, listing=arrange(state))))


def rows_in(screen: CompareScreen) -> list[int]:
    """The numbers of the rows that are listed, from top to bottom."""
    shape, listing = screen.shape, screen.listing
    assert shape is not None
    assert listing is not None
    found, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        waiting += reversed(listing.below.get(node, ()))
        if node < len(shape.rows) and shape.rows[node] >= 0:
            found.append(shape.rows[node])
    return found


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


def test_rows_stand_in_the_tree_of_the_main_window(tmp_path: Path) -> None:
    a = {"m": {"l.0.w": T(W), "l.0.v": T(V), "k": T(W), "x.only.here": T(W)}, "lr": 1}
    b = {"m": {"l.0.w": T(V), "l.0.v": T(W), "k": T(W), "l.0.new": T(V), "y.z.q": T([9.0])}, "lr": 2}
    screen = screen_of(tmp_path, a, b)
    assert tree_of(screen) == [
        ("m", [("l.0", ["w", "v", "new"]), ("x.only", ["here"]), ("y.z", ["q"])]),
        "lr",
    ]
    assert (screen.shown, screen.status, screen.tone) == (6, "6 of 7 rows listed", "warning")
    assert [(kind.id, kind.count, kind.chosen) for kind in screen.kinds] == [
        ("added", 2, False),
        ("removed", 1, False),
        ("values", 2, False),
        ("value", 1, False),
    ]
    assert tree_of(screen_of(tmp_path, T(W), T(V))) == ["(tensor)"]
    tied = screen_of(tmp_path, TIED, {name: T(W) for name in "ehf"})
    assert tree_of(tied) == [("Shared memory", ["e, h"])]


def test_slots_stand_below_the_name_of_their_parameter(tmp_path: Path) -> None:
    def saved(number: float) -> Any:
        slots = {0: {"step": T([number]), "exp_avg": T([number] * 4)}}
        return {
            "model": {"l.w": T(W)},
            "optimizer": {"state": slots, "param_groups": [{"lr": 0.1, "params": [0]}]},
        }

    assert tree_of(screen_of(tmp_path, saved(1.0), saved(2.0))) == [("optimizer/l.w", ["step", "exp_avg"])]


def test_kinds_narrow_the_list(tmp_path: Path) -> None:
    state = state_of(tmp_path, {"w": T(W), "v": T(V), "lr": 1}, {"w": T(V), "v": T(V), "lr": 2})
    for kinds, only, rows in (
        (NOTHING, True, [0, 2]),
        (NOTHING, False, [0, 1, 2]),
        (frozenset({"values"}), False, [0]),
        (frozenset({"values", "value"}), True, [0, 2]),
    ):
        assert rows_of(replace(state, kinds=kinds, only_differences=only)) == rows


def test_a_search_narrows_the_list(tmp_path: Path) -> None:
    state = state_of(tmp_path, {"w": T(W), "v": T(V), "lr": 1}, {"w": T(V), "v": T(V), "lr": 2})
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
        assert rows_of(replace(state, query=query, only_differences=only)) == rows, query


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
    numbers, pair = diff.tensors[0].numbers, diff.tensors[0].pair
    assert numbers is not None
    assert compose(state).can_measure == "Compare numbers (16 B)"
    for found, said in ((numbers, "4 of 4 elements differ"), (ContainerError("no bytes"), "no bytes")):
        screen = compose(with_figures(state, {pair: found}))
        assert screen.selection is not None
        assert screen.selection.numbers.startswith(said)
        assert screen.can_measure == ""
    assert compose(with_figures(state, {pair: numbers})).measured.startswith(
        "All tensors: relative difference 1.4"
    )


def test_the_sum_says_that_counters_are_not_in_it(tmp_path: Path) -> None:
    def measured(later: int) -> str:
        counts = [T(number.to_bytes(8, "little"), (), "int64") for number in (1, later)]
        files = [{"w": T(one), "n": count} for one, count in zip((W, V), counts, strict=True)]
        diff = compared(tmp_path, *files, NUMBERS)
        found = {row.pair: row.numbers for row in diff.tensors if row.numbers is not None}
        return compose(with_figures(state_of(tmp_path, *files), found)).measured

    assert "without counters" in measured(90_000)
    assert "without counters" not in measured(1)


def test_only_pairs_with_as_many_elements_can_be_measured(tmp_path: Path) -> None:
    def measurable(a: T, b: T) -> bool:
        diff = compared(tmp_path, {"w": a}, {"w": b})
        return can_measure(diff, prepare(diff).rows[0])

    assert measurable(T(W), T(V, (2, 2)))
    assert not measurable(T(W), T(W[:3]))
    assert not measurable(T(W, device="meta"), T(W))
    assert not measurable(T([], (0,)), T([], (0,)))
    assert not measurable(T(W[:2], (1 << 40, 2), stride=(0, 0)), T(W[:2], (1 << 40, 2), stride=(0, 1)))

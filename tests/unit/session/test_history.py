from __future__ import annotations

from inspector.model.findings import Fix
from inspector.session import history
from inspector.session.history import redone, undone, with_history
from inspector.session.state import State
from inspector.target.wish import parse_target


def texts(session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    state = session._state
    return tuple(edit.text for edit in state.edits), tuple(edit.text for edit in state.undone)


def rows(session) -> dict[str, str]:
    return {row.device: row.to for row in session.screen.device_map}


def test_changes_of_the_map_are_undone_and_done_again(opened) -> None:
    opened.set_target("cpu")
    opened.set_mapping("cuda:0", "cuda:1")
    opened.apply_fix(Fix(rule="path:layer1*@cuda:0"))
    opened.map_all("cpu")
    opened.remove_branch("layer1*")
    assert texts(opened)[0] == (
        "map cuda:0 to cuda:1",
        "map layer1* to cuda:0",
        "map 3 devices",
        "remove the rule for layer1*",
    )
    assert opened.screen.edits == ("remove the rule for layer1*", "")
    opened.undo_map()
    assert [row.pattern for row in opened.screen.branches] == ["layer1*"]
    opened.undo_map()
    assert rows(opened)["cuda:0"] == "cuda:1"
    assert opened.screen.edits == ("map layer1* to cuda:0", "map 3 devices")
    opened.redo_map()
    assert rows(opened) == {"cuda:0": "cpu", "cuda:1": "cpu", "cpu": "cpu"}
    for _ in range(9):
        opened.undo_map()
    assert rows(opened)["cuda:0"] == "cpu"  # as the target has it
    assert opened.screen.branches == ()
    for _ in range(9):
        opened.redo_map()
    assert (opened.screen.branches, opened.screen.edits[1]) == ((), "")
    opened.undo_map()
    opened.set_mapping("cuda:1", "cuda:7")
    assert opened.screen.edits == ("map cuda:1 to cuda:7", "")  # another way was taken


def test_what_a_change_of_the_target_takes_away_comes_back_with_it(opened) -> None:
    opened.set_target("cuda")
    assert texts(opened) == ((), ())
    opened.set_mapping("cuda:1", "cpu")
    opened.set_target("cpu")
    assert opened.screen.edits[0] == "the choice of another target"
    opened.undo_map()
    assert (opened.screen.target, rows(opened)["cuda:1"]) == ("cuda", "cpu")
    opened.choose_machine(parse_target("2xcuda:1"))
    opened.undo_map()
    assert (opened.screen.target, rows(opened)["cuda:1"]) == ("cuda", "cpu")
    opened.map_as_suggested()
    assert opened.screen.edits[0] == "map as suggested"


def test_several_rules_and_strange_names_are_told_in_few_words(opened) -> None:
    opened.apply_fix(Fix(rule="path:a\u202e*@cpu"))
    assert opened.screen.edits[0] == "map a\\u202e* to cpu"
    opened.map_branches(tuple(opened.screen.tree.tensor_nodes[:2]), "cuda:3")
    assert opened.screen.edits[0] == "map 2 parts"


def test_another_file_has_another_history(opened) -> None:
    opened.set_mapping("cuda:0", "cpu")
    opened.open("/b.pth")
    assert texts(opened) == ((), ())
    opened.undo_map()
    opened.redo_map()
    assert opened.screen.edits == ("", "")
    assert undone(State()) == redone(State()) == State()


def test_the_history_is_bounded(opened, monkeypatch) -> None:
    monkeypatch.setattr(history, "_MOST_EDITS", 3)
    for index in range(8):
        opened.set_mapping("cuda:0", f"cuda:{index + 1}")
    assert texts(opened)[0] == tuple(f"map cuda:0 to cuda:{index}" for index in (6, 7, 8))
    assert with_history(opened._state, opened._state) is opened._state

from __future__ import annotations

import math
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from inspector.session.comparing import series as module
from inspector.session.comparing.series import FIELDS, SeriesSession, SeriesView, figures_csv
from tests.builders.states import T, save_zip
from tests.unit.session.documents import AtOnce


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def view() -> MagicMock:
    return MagicMock(spec=SeriesView)


@pytest.fixture
def session(view, runner, tmp_path) -> SeriesSession:
    for epoch, (far, near) in enumerate(((1.0, 1.0), (9.0, 1.5), (5.0, 2.0))):
        save_zip(tmp_path / f"e{epoch}.pt", {"far.w": T([far, 0.0]), "near.w": T([near]), "k.w": T([3.0])})
    return SeriesSession(view, runner, (str(tmp_path),))


def test_a_folder_becomes_lines(session, view) -> None:
    session.compare()
    screen = session.screen
    view.show_screen.assert_called_with(screen)
    assert screen.phase == "ready"
    assert screen.files == ("e0.pt", "e1.pt", "e2.pt")
    assert [line.name for line in screen.lines] == ["all of it", "far", "near", "k"]
    assert screen.lines[1].values == (1.0, 9.0, 5.0)
    assert screen.drawn == (1, 2, 3)
    assert screen.summary == "Norm of 3 modules: far from 1 to 5; near from 1 to 2; k from 3 to 3"
    assert screen.note == ""
    session.choose_field("step")
    assert session.screen.lines[1].values == (None, 8.0, 4.0)
    assert session.screen.summary.startswith(FIELDS["step"])
    session.choose_field("drift")
    assert session.screen.lines[2].values == (None, 0.5, 1.0)


def test_the_lines_that_go_farthest_are_drawn_unless_others_are_chosen(session, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_LINES", 1)
    session.compare()
    assert session.screen.drawn == (1,)
    session.choose_lines((0, 3))
    assert session.screen.drawn == (0,)
    shown = session.screen
    session.choose_lines((0, 3))
    assert session.screen is shown
    session.choose_lines(())
    assert session.screen.drawn == (1,)


def test_counters_of_steps_are_drawn_only_where_they_are_chosen(session, tmp_path) -> None:
    for epoch in range(3):
        tensors = {"a.w": T([epoch / 4]), "a.step": T([1000.0 * epoch]), "a.n_averaged": T([0.5])}
        save_zip(tmp_path / f"e{epoch}.pt", tensors)
    session.compare()
    screen = session.screen
    assert [line.name for line in screen.lines] == ["all of it", "a", "a.step"]
    assert (screen.modules, screen.drawn) == (1, (1,))
    assert screen.lines[0].values == pytest.approx([math.hypot(0.5, epoch / 4) for epoch in range(3)])
    assert screen.lines[2].values == (0.0, 1000.0, 2000.0)
    assert "at the end of the table" in screen.note
    session.choose_lines((1, 2))
    assert session.screen.summary == "Norm of 2 lines: a from 0.5 to 0.7071; a.step from 0 to 2000"


def test_figures_that_leave_something_out_say_so(session, tmp_path) -> None:
    save_zip(tmp_path / "e1.pt", {"far.w": T([math.nan, 1.0]), "near.w": T([1.0, 2.0]), "k.w": T([3.0])})
    session.compare()
    assert session.screen.lines[1].marked == (False, True, False)
    assert session.screen.lines[2].values[1] is None
    assert "NaN" in session.screen.note
    session.choose_field("step")
    assert session.screen.lines[1].marked == (False, True, True)
    save_zip(tmp_path / "e1.pt", {})
    save_zip(tmp_path / "e2.pt", {})
    session.compare()
    session.choose_field("step")
    assert session.screen.summary == "Distance from the one before of 3 modules: "


def test_files_stand_where_their_numbers_are(session, tmp_path) -> None:
    session.compare()
    assert (session.screen.axis, session.screen.numbers) == ("Number in the name", (0.0, 1.0, 2.0))
    for epoch, number in enumerate((1, 2, 10)):
        save_zip(tmp_path / f"e{epoch}.pt", {"far.w": T([1.0]), "epoch": number})
    session.compare()
    assert (session.screen.axis, session.screen.numbers) == ("Epoch", (1.0, 2.0, 10.0))


def test_a_member_that_is_not_read_is_named(session, tmp_path) -> None:
    (tmp_path / "e1.pt").write_bytes(b"nothing")
    session.compare()
    screen = session.screen
    assert screen.note.startswith("e1.pt was not read: ")
    assert screen.lines[1].values == (1.0, None, 5.0)
    session.choose_field("step")
    assert session.screen.lines[1].values == (None, None, 4.0)


def test_a_logarithm_of_nothing_is_told(session, tmp_path) -> None:
    save_zip(tmp_path / "e1.pt", {"far.w": T([1.0, 0.0]), "near.w": T([1.0]), "k.w": T([3.0])})
    session.compare()
    session.choose_field("drift")
    assert session.screen.note == ""
    session.choose_scale(is_log=True)
    assert session.screen.is_log
    assert "no logarithm" in session.screen.note
    session.compare()
    assert session.screen.is_log


def test_figures_are_saved_as_a_table_without_formulas(session, tmp_path) -> None:
    for epoch in range(3):
        save_zip(tmp_path / f"e{epoch}.pt", {"=far.w": T([float(epoch)]), "near.w": T([2.0])})
    (tmp_path / "e1.pt").write_bytes(b"nothing")
    session.compare()
    lines = [line.split(",") for line in figures_csv(session.screen).splitlines()]
    assert lines[0][:3] == ["Number in the name", "File", "all of it"]
    assert not any(cell.startswith("=") for cell in lines[0])
    assert [line[0] for line in lines[1:]] == ["0.0", "1.0", "2.0"]
    assert lines[2][2:] == ["", "", ""]
    assert lines[3][3] == "2.0"


def test_what_fails_or_comes_too_late(session, runner, view, tmp_path) -> None:
    session.copy_text()
    view.take_text.assert_not_called()
    runner.waits = True
    session.compare()
    progress = session.screen.progress
    session.compare()
    assert progress.cancelled
    runner.go_on()
    assert session.screen.phase == "opening"
    runner.go_on()
    assert session.screen.phase == "ready"
    session.copy_text()
    assert view.take_text.call_args.args[0].startswith("3 checkpoints")
    for name in ("e0.pt", "e1.pt"):
        Path(tmp_path / name).write_bytes(b"nothing")
    session.compare()
    runner.go_on()
    assert session.screen.phase == "failed"
    assert "e0.pt" in f"{session.screen.failure.what}{session.screen.failure.where}"


def test_a_result_for_a_window_that_is_closed_is_dropped(session, runner, monkeypatch) -> None:
    runner.waits = True
    monkeypatch.setattr(module, "_compare", lambda *_: "late")
    session.compare()
    session.dispose()
    runner.go_on()
    assert session.screen.phase == "opening"


def test_labels_begin_where_the_names_in_the_chart_differ(view, runner, tmp_path) -> None:
    for epoch in range(2):
        names = [f"net.layers.{number}.attn.w" for number in (1, 10, 2)]
        save_zip(tmp_path / f"e{epoch}.pt", {"net": {name: T([1.0, float(epoch)]) for name in names}})
    session = SeriesSession(view, runner, (str(tmp_path),))
    session.compare()
    assert [line.label for line in session.screen.lines] == ["", "…1.attn", "…10.attn", "…2.attn"]
    session.choose_lines((0, 1))
    assert [line.label for line in session.screen.lines[:2]] == ["all of it", "net/net.layers.1.attn"]
    session.choose_lines((2,))
    assert session.screen.lines[2].label == "net/net.layers.10.attn"

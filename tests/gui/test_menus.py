"""Every entry of every menu, in every phase of a window over a real session: all are tried back to front."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QMessageBox

from inspector.gui.actions import ACTIONS, Action, is_usable
from inspector.gui.dialogs.export.dialog import ExportDialog
from inspector.gui.main_window import MainWindow
from inspector.gui.settings import Settings
from inspector.progress import Progress
from inspector.pythons import ask_python
from inspector.session.controller import Session
from tests.builders.folders import shard
from tests.unit.session.documents import AtOnce

Put = Callable[[Session, AtOnce, str], None]


def _open(session: Session, runner: AtOnce, path: str) -> None:
    session.open(path)


def _begin_opening(session: Session, runner: AtOnce, path: str) -> None:
    runner.waits = True
    session.open(path)


def _fail(session: Session, runner: AtOnce, path: str) -> None:
    session.open(f"{path}.gone")


def _export(session: Session, runner: AtOnce, path: str) -> None:
    session.open(path)
    session.begin_export()
    runner.waits = True
    session.export(f"{path}.copy")


PHASES: dict[str, Put] = {
    "empty": lambda *_: None,
    "opening": _begin_opening,
    "unjudged": _open,
    "ready": _open,
    "failed": _fail,
    "exporting": _export,
}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would ask a person, or end the program, only notes that."""
    asked: list[str] = []
    for name in ("getOpenFileName", "getOpenFileNames", "getExistingDirectory", "getSaveFileName"):
        answer = ([], "") if name.endswith("s") else "" if name.endswith("Directory") else ("", "")
        ask = lambda *_, name=name, answer=answer: asked.append(name) or answer  # noqa: E731
        monkeypatch.setattr(QFileDialog, name, ask)
    monkeypatch.setattr(QApplication, "closeAllWindows", lambda: asked.append("quit"))
    answer_of = functools.cache(lambda python: ask_python(python, Progress()))
    monkeypatch.setattr("inspector.pythons.ask_python", lambda python, _: answer_of(python))
    return asked


@pytest.mark.wide
def test_every_action_in_every_phase(qtbot, theme, tmp_path, quiet):
    path = str(tmp_path / "shard.bin")
    Path(path).write_bytes(shard("a.weight", "b.weight"))
    wrong = []
    for phase, put in PHASES.items():
        window, runner = MainWindow(theme, Settings(fresh=True)), AtOnce()
        qtbot.addWidget(window)
        window.when_shown = (lambda _: None) if phase == "unjudged" else (lambda act: act())
        session = Session(window, runner)
        window.attach(session)
        window.show_screen(session.screen)
        there = None
        for action in reversed(ACTIONS):
            if there is None or there != _place(session):
                _clear(session, runner)
                put(session, runner, path)
                there = _place(session)
            wrong += [(phase, action.id, text) for text in _try(window, action)]
        _clear(session, runner)
        window.detach()
    assert wrong == []
    assert {"getOpenFileNames", "getExistingDirectory", "getOpenFileName", "quit"} <= set(quiet)


def _place(session: Session) -> tuple[str, str | None]:
    export = session.screen.export
    return session.screen.phase, None if export is None else export.stage


def _clear(session: Session, runner: AtOnce) -> None:
    """Let all work end, and close the file."""
    runner.waits = False
    while runner.waiting:
        runner.go_on()
    session.end_export()
    session.close()


def _try(window: MainWindow, action: Action) -> list[str]:
    """Trigger an entry twice: once from the menu, and once by a key that comes when it is grey already."""
    made, wrong = window.actions_by_name[action.id], []
    if made.isEnabled() != is_usable(action, window.shown):
        wrong.append(f"enabled: {made.isEnabled()}")
    try:
        made.trigger()
        action.run(window._commands)
    except Exception as error:  # noqa: BLE001 - told with its entry
        wrong.append(repr(error))
    for dialog in window.findChildren(QDialog):
        wrong += [dialog.text()] if isinstance(dialog, QMessageBox) else []
        if not isinstance(dialog, ExportDialog):
            dialog.close()
    return wrong

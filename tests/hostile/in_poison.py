"""Runs commands, then the window, in the folder where it is started; as the installed command does it.

`python in_poison.py FILE` reads a JSON list of command lines from stdin and writes their exit codes to stdout
as the last line. The window opens FILE by its bare name, checks its bytes, casts it, asks torch about a copy,
takes the file of a second launch, and ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from inspector.cli import main
from inspector.gui import app
from inspector.gui.main_window import MainWindow
from inspector.session.export.page import ExportWish

_STEP_MS = 20
_MOST_TURNS = 20_000  # however busy the machine is
# As the installed command does it, but a busy machine is no program that hangs.
_SECOND_LAUNCH = """
from inspector.cli import main
from inspector.desktop import handover
handover.ANSWER_TIMEOUT_S = 300.0
raise SystemExit(main())
"""


def _windows() -> list[MainWindow]:
    windows = [widget for widget in app.QApplication.topLevelWidgets() if isinstance(widget, MainWindow)]
    return [window for window in windows if window.isVisible() and window.shown is not None]


class Script(app.QObject):
    """Does one step after the other, each once what the last one began is over."""

    def __init__(self, other: str) -> None:
        super().__init__()
        self._steps: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
            ("open", lambda: None, lambda: self._is_ready(1)),
            ("probe", lambda: None, lambda: self._session._state.this_machine),
            ("check", self._check, lambda: _windows()[0].shown.check.lines),
            ("draft", lambda: self._wish(kind="weights", cast="float16"), lambda: self._stage == "draft"),
            ("cast", lambda: self._export("cast.pt"), lambda: self._stage == "done"),
            ("draft", lambda: self._wish(verify="torch"), lambda: self._stage == "draft"),
            ("torch", lambda: self._export("checked.pt"), lambda: self._stage == "done"),
            ("second launch", lambda: self._launch(other), lambda: self._is_ready(2)),
        ]
        self._folder, self._began, self._turns = Path.cwd(), False, 0
        self._timer = app.QTimer(self)
        self._timer.timeout.connect(self._turn)
        self._timer.start(_STEP_MS)
        self.done: list[str] = []

    @property
    def _session(self) -> object:
        return _windows()[0].session

    def _is_ready(self, count: int) -> bool:
        windows = _windows()
        return len(windows) == count and all(window.shown.phase == "ready" for window in windows)

    def _check(self) -> None:
        self._session.start_job("check")

    def _wish(self, **wish: str) -> None:
        self._session.change_export(ExportWish(**wish))

    @property
    def _stage(self) -> str:
        page = _windows()[0].shown.export
        return page.stage if page is not None else ""

    def _export(self, name: str) -> None:
        self._session.export(str(self._folder / name), overwrite=True)

    def _launch(self, other: str) -> None:
        command = [sys.executable, "-P", "-c", _SECOND_LAUNCH, other]
        self._child = subprocess.Popen(command, cwd=self._folder)

    def _turn(self) -> None:
        label, begin, is_over = self._steps[0]
        self._turns += 1
        if self._turns > _MOST_TURNS:
            self._end()
        elif not self._began:
            begin()
            self._began = True
        elif is_over():
            self.done.append(label)
            self._began = False
            del self._steps[0]
            if not self._steps:
                self._child.wait()
                self._end()

    def _end(self) -> None:
        self._timer.stop()
        app.QApplication.closeAllWindows()
        app.QApplication.exit(0)


def run(name: str, other: str) -> None:
    commands = json.load(sys.stdin)
    codes = [main(command) for command in commands]
    qt = app.make_app()
    script = Script(other)
    code = app.main([name])
    os.write(1, f"\n{json.dumps({'codes': codes, 'window': code, 'done': script.done})}\n".encode())
    del qt


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2])

"""The real program on a real X screen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end2end.file_manager import FileManager
from tests.end2end.screen import RealScreen, missing_tools

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "resources" / "demo" / "demo.pth"
COMMAND = (sys.executable, "-m", "inspector")
TITLE = "Checkpoint Inspector"


class Program:
    """Starts the program as its user would, and sees that it had nothing to complain about."""

    def __init__(self, screen: RealScreen) -> None:
        self._screen = screen
        self._logs: list[str] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str | os.PathLike[str]) -> subprocess.Popen[bytes]:
        name = f"program-{len(self._logs)}"
        self._screen.remove_log(name)
        self._logs.append(name)
        process = self._screen.start(name, *COMMAND, *arguments)
        self._processes.append(process)
        return process

    def open(self, *paths: Path) -> int:
        """Start the program and wait for its window."""
        self.start(*paths)
        return self.wait(*paths)

    def wait(self, *paths: Path) -> int:
        """Wait for the window that shows a file, or for an empty one."""
        return self._screen.wait_window(" - ".join([*(path.name for path in paths), TITLE]))

    def shows(self, *paths: Path) -> int:
        """Return the window that shows a file, or 0."""
        title = re.escape(" - ".join([*(path.name for path in paths), TITLE]))
        return next(iter(self._screen.windows(title)), 0)

    def choose_theme(self, theme: str) -> None:
        """Set what the program remembers, before it starts."""
        folder = Path(self._screen.environment["XDG_CONFIG_HOME"]) / "checkpoint-inspector"
        folder.mkdir(exist_ok=True)
        (folder / "checkpoint-inspector.conf").write_text(f"[General]\ntheme={theme}\n", encoding="utf-8")

    def end(self) -> str:
        """Close what is still open as a user does, and give everything that the program has said."""
        while windows := self._screen.windows(f".*{TITLE}"):
            self._screen.close(windows[0])
        for process in self._processes:
            process.wait(120)  # with its children: the next test shall not pay for them
        return "".join(map(self._screen.log, self._logs))

    def kill(self) -> None:
        """End what is still there after a failure: it would take the files of the next test."""
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealScreen]:
    """One screen for all tests; large enough for a window of 1920 x 1080 with its frame."""
    if missing := missing_tools():
        pytest.skip(f"a real screen needs {', '.join(missing)}")
    with RealScreen(tmp_path_factory.mktemp("screen"), width=2000, height=1160) as screen:
        screen.environment["PYTHONPATH"] = str(ROOT)
        yield screen


@pytest.fixture
def program(screen: RealScreen) -> Iterator[Program]:
    program = Program(screen)
    yield program
    try:
        assert program.end() == ""
    finally:
        program.kill()


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder whose name, and so the title of the file manager's window, is that of the test."""
    folder = tmp_path / request.node.name
    folder.mkdir()
    return folder


@pytest.fixture
def checkpoint(folder: Path) -> Path:
    """A checkpoint that was saved from two GPUs, alone in its folder."""
    return Path(shutil.copy(DEMO, folder / "best.pth"))


@pytest.fixture
def file_manager(screen: RealScreen, checkpoint: Path) -> Iterator[FileManager]:
    """A file manager in the corner of the screen, with the checkpoint as its first icon."""
    manager = FileManager(screen, checkpoint.parent)
    screen.put(manager.window, 0, 0, 600, 500)
    yield manager
    manager.close()


@pytest.fixture
def registered(screen: RealScreen) -> Iterator[None]:
    """The program as the desktop's default for checkpoints, as its user registers it."""
    screen.run(*COMMAND, "desktop", "install")
    yield
    screen.run(*COMMAND, "desktop", "remove")

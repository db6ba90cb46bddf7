"""Sessions at work: one over documents made by hand, one over a copy of the demo checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from inspector.progress import Progress
from inspector.remap.torch_check import TorchCheck
from inspector.resources import demo_path
from inspector.session.controller import Session
from inspector.session.document import Document
from inspector.session.export import steps
from inspector.session.jobs import open as opening
from tests.unit.session.documents import AtOnce, a_view, saved_on


@pytest.fixture
def view() -> MagicMock:
    return a_view()


@pytest.fixture(autouse=True)
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that torch was asked to load: it gives no answer."""
    asked: list[str] = []

    def try_with_torch(path: str, progress: Progress, python: str | None = None) -> TorchCheck:
        asked.append(path)
        return TorchCheck(verdict="unchecked", detail="no torch")

    monkeypatch.setattr(steps, "try_with_torch", try_with_torch)
    return asked


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, Document | Exception]:
    """What opening a path finds; nothing is read from the disk."""
    known: dict[str, Document | Exception] = {}

    def open_document(path: str, progress: Progress) -> Document:
        progress.advance()
        found = known[path]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(opening, "open_document", open_document)
    return known


@pytest.fixture
def session(view, runner, files) -> Session:
    """A session that nothing is open in; two files are known to it."""
    files["/a.pth"] = saved_on("cuda:0", "cuda:1", "cpu", path="/a.pth")
    files["/b.pth"] = saved_on("mps", path="/b.pth")
    return Session(view, runner)


@pytest.fixture
def opened(session) -> Session:
    """A session with a file in it."""
    session.open("/a.pth")
    return session


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(demo_path(), tmp_path / "demo.pth"))


@pytest.fixture
def real(view, runner, copy) -> Session:
    """A session with a real file in it."""
    session = Session(view, runner)
    session.set_target("cpu")
    session.open(str(copy))
    view.reset_mock()
    return session

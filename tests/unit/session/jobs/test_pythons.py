from __future__ import annotations

import pytest

from inspector.errors import CancelledError, PlanError
from inspector.progress import Progress
from inspector.pythons import Installed, Python
from inspector.session.controller import Session
from inspector.session.jobs.pythons import PYTHONS, Found, look_for_pythons, pythons_page
from inspector.session.operations import Job
from inspector.session.state import State
from inspector.target.profile import Profile
from tests.unit.session.documents import AtOnce, saved_on

ANSWERS = {
    "/venv/bin/python": Installed(version="3.12.1", torch="2.9.0"),
    "/own/bin/python": Installed(version="3.11.2", torch=None),
    "/built/python": Installed(version="3.13.0", torch=""),
    "/broken/python": None,
}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuple(Python(path=path, origin="conda") for path in ANSWERS)
    monkeypatch.setattr("inspector.pythons.find_pythons", lambda: found)
    monkeypatch.setattr("inspector.pythons.ask_python", lambda python, _progress: ANSWERS[python.path])


def probe(progress: Progress, named: str | None) -> Profile:
    """Describe a machine whose torch a Python has; one that is missing is refused, as by `choose_python`."""
    progress.advance()
    path = named or "/own/bin/python"
    if path not in ANSWERS:
        raise PlanError(f"there is no Python {path!r}")
    label = f"this machine ({path})"
    return Profile(id="this", label=label, python=Python(path=path, origin="--python"))


@pytest.fixture
def asked(view, runner: AtOnce, files) -> Session:
    files["/a.pth"] = saved_on("cuda:1")
    session = Session(view, runner, (), probe)
    session.open("/a.pth")
    return session


def test_each_is_asked_and_the_one_in_use_is_marked(asked: Session, runner: AtOnce) -> None:
    runner.waits = True
    asked.look_for_pythons()
    page = asked.screen.pythons
    assert page is not None
    assert (page.rows, page.is_looking) == ((), True)
    runner.go_on()
    page = asked.screen.pythons
    assert page is not None
    assert not page.is_looking
    assert [(row.title, row.detail, row.is_chosen, row.is_usable) for row in page.rows] == [
        ("/venv/bin/python", "conda \u00b7 Python 3.12.1, torch 2.9.0", False, True),
        ("/own/bin/python", "conda \u00b7 Python 3.11.2, no torch", True, True),
        ("/built/python", "conda \u00b7 Python 3.13.0, torch of unknown version", False, True),
        ("/broken/python", "conda \u00b7 gives no answer", False, False),
    ]
    asked.end_pythons()
    assert asked.screen.pythons is None


def test_the_chosen_one_stands_for_this_machine(asked: Session) -> None:
    assert asked.screen.targets[0].tooltip == "As torch sees it in /own/bin/python (--python)"
    asked.set_target("cuda")
    asked.use_python("/venv/bin/python")
    assert (asked.screen.target, asked.screen.python) == ("this", "/venv/bin/python")
    assert asked.screen.targets[0].label == "This machine (/venv/bin/python)"


def test_a_python_that_is_gone_is_told_and_forgotten(asked: Session, view) -> None:
    asked.use_python("/gone")
    assert asked.screen.python == ""
    assert view.show_notice.call_args.args[0].what == "there is no Python '/gone'"
    assert asked.screen.targets[0].label == "This machine (taken as CPU only)"
    asked.open("/a.pth")
    assert asked.screen.targets[0].label == "This machine (/own/bin/python)"


def test_a_remembered_one_is_used_from_the_start(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:1")
    session = Session(view, runner, (), probe, python="/built/python")
    assert session.screen.python == "/built/python"
    session.open("/a.pth")
    assert session.screen.targets[0].label == "This machine (/built/python)"


def test_without_a_file_nothing_is_known_of_any(view, runner) -> None:
    session = Session(view, runner, (), probe)
    session.look_for_pythons()
    page = session.screen.pythons
    assert page is not None
    assert not any(row.is_chosen for row in page.rows)


def test_looking_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        look_for_pythons(progress)


def test_what_a_path_holds_cannot_break_the_row() -> None:
    python = Python(path="/a\n\u202eb", origin="pyenv")
    found = (Found(python=python, installed=Installed(version="3.9", torch=None)),)
    job = Job(kind=PYTHONS, about=None, progress=Progress(), status="done", result=found)
    page = pythons_page(State().with_job(job))
    assert page is not None
    assert page.rows[0].path == "/a\n\u202eb"
    assert page.rows[0].title == r"/a\u000a\u202eb"
    assert pythons_page(State()) is None

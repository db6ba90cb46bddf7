"""What findings, pasted errors and described machines do to a session."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.progress import Progress
from inspector.resources import PROBE, resource_path
from inspector.session import controller
from inspector.session.controller import Session
from inspector.session.document import Document
from inspector.session.screen import BranchRow, Fix, Loading
from tests.unit.session.documents import AtOnce, a_view, saved_on

ERROR = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)


@pytest.fixture
def view():
    return a_view()


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def session(view, runner, monkeypatch) -> Session:
    def open_document(path: str, progress: Progress) -> Document:
        progress.advance()
        return saved_on("cuda:0", "cuda:1", "cpu", path=path)

    monkeypatch.setattr(controller, "open_document", open_document)
    session = Session(view, runner)
    session.open("/a.pth")
    return session


def going(session: Session) -> dict[str, str]:
    return {row.device: row.to for row in session.screen.device_map}


@pytest.fixture(scope="module")
def probed() -> dict[str, Any]:
    """What the probe says of a machine."""
    command = [sys.executable, "-S", str(resource_path(PROBE))]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout.splitlines()[-1])


@pytest.fixture
def profile(probed: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "node7.json"
    path.write_text(json.dumps(probed))
    return path


# ------------------------------------------------------------------------------------------------- fixes


def test_a_rule_for_devices_changes_the_map(session) -> None:
    session.set_target("cuda:2")
    assert going(session) == {"cuda:0": "cuda:0", "cuda:1": "cuda:1", "cpu": "cpu"}
    session.apply_fix(Fix(rule="cuda:*=cuda:1"))
    assert going(session) == {"cuda:0": "cuda:1", "cuda:1": "cuda:1", "cpu": "cpu"}


def test_a_rule_for_a_branch_stands_beside_the_map_until_it_is_removed(session) -> None:
    session.apply_fix(Fix(rule="path:model/layer0*@mps"))
    session.apply_fix(Fix(rule="path:model/layer0*@cpu"))
    session.apply_fix(Fix(rule="path:model/layer1*@cuda:3"))
    assert session.screen.branches == (
        BranchRow(pattern="model/layer1*", label="model/layer1*", to="cuda:3"),
        BranchRow(pattern="model/layer0*", label="model/layer0*", to="cpu"),
    )
    after = session.screen.charts[0].bars[1].segments
    assert {segment.label for segment in after} == {"cpu", "cuda:3"}
    session.remove_branch("model/layer1*")
    assert [row.pattern for row in session.screen.branches] == ["model/layer0*"]
    session.set_target("cuda:8")
    assert session.screen.branches == ()


def test_a_style_is_shown_on_its_page(session, view) -> None:
    session.apply_fix(Fix(style="plain"))
    view.show_page.assert_called_once_with("code")
    assert session.screen.code is not None
    assert session.screen.code.style == "plain"


def test_without_a_file_there_is_nothing_to_mend(view, runner) -> None:
    session = Session(view, runner)
    session.apply_fix(Fix(rule="*=cpu"))
    view.show_screen.assert_not_called()


# ------------------------------------------------------------------------------------------- pasted errors


def test_a_pasted_error_is_answered_for_this_file(session) -> None:
    session.explain_error(ERROR)
    card = session.screen.explanation
    assert card is not None
    assert card.id == "cuda-unavailable"
    assert len(card.nodes) == 2
    assert card.fix is not None
    assert session.screen.error_text == ERROR
    session.explain_error("  ")
    assert session.screen.explanation is None


def test_an_unknown_text_says_what_was_looked_for(session) -> None:
    session.explain_error("Segmentation fault in module 7")
    card = session.screen.explanation
    assert card is not None
    assert "Looked for" in dict(card.facts)


def test_the_question_goes_with_its_file(session) -> None:
    session.explain_error(ERROR)
    session.open("/b.pth")
    assert session.screen.error_text == ""


def test_a_book_is_not_read_to_its_end(session) -> None:
    session.explain_error("x" * 5_000_000)
    assert len(session.screen.error_text) == 1 << 20


def test_the_way_of_loading_decides_the_forecast(session) -> None:
    session.set_loading(Loading(ranks=2, mmap=True))
    assert session.screen.forecast is not None
    assert session.screen.forecast.loading == Loading(ranks=2, mmap=True)


# ----------------------------------------------------------------------------------------------- machines


def test_a_described_machine_becomes_the_target(session, profile) -> None:
    session.open(str(profile))
    assert session.screen.target == str(profile)
    labels = {choice.id: choice.label for choice in session.screen.targets}
    assert "node7" in labels[str(profile)]
    assert session.screen.path == "/a.pth"
    assert session.screen.doctor
    session.use_machine(str(profile))
    assert [choice.id for choice in session.screen.targets].count(str(profile)) == 1


def test_the_doctor_speaks_of_machines_that_were_looked_at_only(session, profile) -> None:
    assert session.screen.doctor == ()
    session.use_machine(str(profile))
    assert session.screen.doctor
    session.set_target("cuda:1")
    assert session.screen.doctor == ()


def test_only_so_many_machines_are_kept(session, profile, tmp_path) -> None:
    for number in range(10):
        session.use_machine(str(shutil.copy(profile, tmp_path / f"{number}.json")))
    known = [choice.id for choice in session.screen.targets if choice.id.endswith(".json")]
    assert [Path(path).name for path in known] == [f"{number}.json" for number in range(9, 1, -1)]


def test_what_is_no_machine_is_told_beside_the_screen(session, view, tmp_path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}")
    before = session.screen
    session.use_machine(str(path))
    failure = view.show_notice.call_args.args[0]
    assert "machine" in failure.what
    assert session.screen is before


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_a_json_file_that_describes_no_machine_is_opened_as_what_it_is(session, view, tmp_path, name) -> None:
    path = tmp_path / name
    path.write_text('{"hidden_size": 768}')
    session.open(str(path))
    view.show_notice.assert_not_called()
    assert session.screen.path == str(path)
    assert session.screen.target == "this"


def test_a_json_file_is_not_opened_over_a_later_one(session, runner, profile) -> None:
    runner.waits = True
    session.open(str(profile))
    session.open("/b.pth")
    runner.go_on()
    assert (session.screen.path, session.screen.target, len(runner.waiting)) == ("/b.pth", "this", 1)

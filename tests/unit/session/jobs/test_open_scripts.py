"""Scripts that are dropped, pasted or chosen, and the file that they are followed with."""

from __future__ import annotations

from inspector.session.controller import Session

SCRIPT = 'import torch\nsd = torch.load("a.pth")\n'


def write(tmp_path, text: str = SCRIPT) -> str:
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_script_is_followed_with_the_open_file(session, tmp_path) -> None:
    session.open("/a.pth")
    session.open(write(tmp_path))
    assert session.screen.path == "/a.pth"
    assert session.screen.error_text == SCRIPT
    assert session.screen.explanation.title == "Line 2 fails."
    assert "a/train.py" in session.screen.explanation.patch
    assert session.screen.shown_page == "findings"


def test_it_follows_the_target_and_ends_with_the_text(session, tmp_path) -> None:
    session.open("/a.pth")
    session.open(write(tmp_path))
    session.set_target("2xcuda")
    assert session.screen.explanation.tone == "good"
    session.explain_error(SCRIPT + "x = f().to('xpu')\n")
    assert "XPU" in session.screen.explanation.facts[0][1]
    session.explain_error("RuntimeError: what")
    assert session.screen.explanation.title == "This message is not recognized"
    session.explain_error("")
    assert session.screen.explanation is None


def test_pasted_script_is_told_from_an_error(session) -> None:
    session.open("/a.pth")
    session.explain_error(SCRIPT)
    assert session.screen.explanation.title == "Line 2 fails."
    assert "a/script.py" in session.screen.explanation.patch


def test_script_waits_for_its_file(session: Session, view, tmp_path) -> None:
    session.open(write(tmp_path))
    (notice,) = (call.args[0] for call in view.show_notice.call_args_list)
    assert notice.title == "Which file does this script load?"
    assert notice.what == "train.py is a script, and no checkpoint is open"
    assert session.screen.phase == "empty"
    session.open("/a.pth")
    assert session.screen.explanation.title == "Line 2 fails."
    session.open("/b.pth")
    assert session.screen.explanation is None


def test_script_dropped_together_with_its_file(session, view, runner, tmp_path) -> None:
    runner.waits = True
    session.open("/a.pth")
    session.open(write(tmp_path))
    while runner.waiting:
        runner.go_on()
    view.show_notice.assert_not_called()
    assert session.screen.explanation.title == "Line 2 fails."


def test_script_that_is_read_before_its_file(session, view, runner, tmp_path) -> None:
    runner.waits = True
    session.open(write(tmp_path))
    session.open("/a.pth")
    while runner.waiting:
        runner.go_on()
    view.show_notice.assert_not_called()
    assert session.screen.explanation.title == "Line 2 fails."


def test_script_that_cannot_be_read(session, view, tmp_path) -> None:
    session.open("/a.pth")
    session.open(str(tmp_path / "none.py"))
    (notice,) = (call.args[0] for call in view.show_notice.call_args_list)
    assert notice.title == "This script cannot be read"
    assert session.screen.explanation is None

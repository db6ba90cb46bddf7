from __future__ import annotations

import os
import sys

import pytest

from inspector.resources import demo_path


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """No program runs that files could be handed to."""
    from inspector.desktop import handover

    asked: list[list[str]] = []
    monkeypatch.setattr(handover, "hand_over", asked.append)
    return asked


def test_files_go_to_the_running_program(cli, monkeypatch, camera) -> None:
    from inspector.desktop import handover

    monkeypatch.setattr(handover, "hand_over", lambda files: True)
    assert cli("a.pth").code == 0
    assert "files" not in camera


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {"files": [], "demo": False, "fresh": False}),
        (["a.pth", "./show", "--fresh"], {"files": ["a.pth", "./show"], "demo": False, "fresh": True}),
        (["--demo"], {"files": [], "demo": True, "fresh": False}),
    ],
)
def test_or_to_a_window_of_their_own(cli, nobody, camera, arguments, options) -> None:
    assert cli(*arguments).code == 0
    assert {name: camera[name] for name in options} == options
    assert len(nobody) == (0 if options["demo"] else 1)


def test_the_python_that_counts_can_be_named(cli, nobody, camera) -> None:
    answer = cli("a.pth", "--python", "/no/such/python")
    assert (answer.code, "files" in camera) == (2, False)
    assert "there is no Python '/no/such/python'" in answer.err
    assert cli("a.pth", "--python", os.path.relpath(sys.executable)).code == 0
    assert camera["python"] == os.path.abspath(sys.executable)  # noqa: PTH100 - a link stays one
    assert nobody == []  # the program that runs already has one of its own
    assert cli("a.pth").code == 0
    assert camera["python"] == ""


def test_without_a_screen_the_window_is_a_wrong_command(cli, nobody, camera, monkeypatch) -> None:
    for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    answer = cli(demo_path())
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "checkpoint-inspector: error: there is no screen to open a window on "
        f"(use: checkpoint-inspector show {demo_path()})\n"
    )

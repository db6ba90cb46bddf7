from __future__ import annotations

import pytest

from inspector import __version__
from inspector.cli import checking, commands, recovering, remapping, showing, targets
from inspector.cli.options import parse
from inspector.errors import PlanError

COMMANDS = ("show", "check", "remap", "recover", "snippet", "screenshot", "desktop", "target")


@pytest.mark.parametrize(
    ("given", "run"),
    [
        ([], commands.open_window),
        (["a.pth", "b.pth"], commands.open_window),
        (["--demo"], commands.open_window),
        (["./show"], commands.open_window),
        (["--", "show"], commands.open_window),
        (["show", "a"], showing.show),
        (["show", "show"], showing.show),
        (["remap", "a", "-o", "b"], remapping.remap),
        (["recover", "a", "-o", "b"], recovering.recover),
        (["snippet", "a"], commands.snippet),
        (["screenshot", "a", "b.png"], commands.screenshot),
        (["desktop", "install"], commands.desktop),
        (["check", "a"], checking.check),
        (["target"], targets.target),
        (["target", "--probe-script"], targets.target),
    ],
)
def test_first_word_is_the_command(given: list[str], run: object) -> None:
    assert parse(given).run is run


def test_files_named_like_a_command_can_be_opened() -> None:
    assert parse(["./show"]).files == ["./show"]
    assert parse(["--", "show"]).files == ["show"]
    assert parse(["show", "show", "./remap"]).files == ["show", "./remap"]


@pytest.mark.parametrize("name", ["diff", "stats"])
def test_commands_of_later_versions_are_known(name: str) -> None:
    with pytest.raises(PlanError, match=f"this version has no command {name}"):
        parse([name, "file"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["show"], "the following arguments are required: FILE"),
        (["show", "--depth", "x", "a"], "argument --depth: 'x' is no number of levels"),
        (["show", "--depth", "0", "a"], "argument --depth: '0' is no number of levels"),
        (["show", "--depth", "-1", "a"], "argument --depth: '-1' is no number of levels"),
        (["show", "--depth", "9" * 9, "a"], f"argument --depth: '{'9' * 9}' is no number of levels"),
        (["show", "--js", "a"], "unrecognized arguments: --js"),
        (["show", "a", "--no\nsuch"], r"unrecognized arguments: --no\u000asuch"),
        (["remap", "a", "--in-place", "--undo"], "argument --undo: not allowed with argument --in-place"),
        (["remap", "-o", "b"], "the following arguments are required: FILE"),
        (["recover", "a"], "the following arguments are required: -o/--output"),
        (["screenshot", "a"], "the following arguments are required: OUT.png"),
        (["screenshot", "a", "b", "--size", "big"], "argument --size: 'big' is no size such as 1280x800"),
        (["screenshot", "a", "b", "--size", "1280x"], "argument --size: '1280x' is no size such as 1280x800"),
        (["screenshot", "a", "b", "--size", "10x10"], "argument --size: '10x10' is no size such as 1280x800"),
        (["screenshot", "a", "b", "--size", "800x9999"], "argument --size: '800x9999' is no size such as"),
        (["screenshot", "a", "b", "--size", "٣٣٣x800"], "argument --size: '٣٣٣x800' is no size such as"),
        (["screenshot", "a", "b", "--theme", "pink"], "argument --theme: invalid choice: 'pink'"),
        (["screenshot", "a", "b", "--page", "moon"], "argument --page: invalid choice: 'moon'"),
        (["desktop", "paint"], "argument action: invalid choice: 'paint'"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["a.pth", "--dem"], "unrecognized arguments: --dem"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, given: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(given)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"checkpoint-inspector: error: {said}")
    assert err.count("\n") == 1


def test_sizes_and_depths_are_numbers() -> None:
    assert parse(["screenshot", "a", "b", "--size", "640x480"]).size == (640, 480)
    assert parse(["screenshot", "a", "b"]).size == (1280, 800)
    assert parse(["show", "a", "--depth", "3"]).depth == 3
    assert parse(["show", "a"]).depth is None


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_command_explains_itself(capsys, command: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse([*command, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(['checkpoint-inspector', *command])}")


def test_the_version_is_told(capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"checkpoint-inspector {__version__}\n"

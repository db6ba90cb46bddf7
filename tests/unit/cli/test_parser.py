from __future__ import annotations

import argparse
import io
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from inspector import __version__
from inspector.cli import main
from inspector.cli.commands import COMMANDS, WINDOW
from inspector.cli.display import add_display_options
from inspector.cli.parser import SHORT, parse, parser_of, parser_tree
from tests.sweep import table

ROOT = Path(__file__).parents[3]


@table(
    ("given", "command"),
    [
        ([], "window"),
        (["a.pth", "b.pth"], "window"),
        (["--demo"], "window"),
        (["./show"], "window"),
        (["--", "show"], "window"),
        (["show", "a"], "show"),
        (["show", "show"], "show"),
        (["remap", "a", "-o", "b"], "remap"),
        (["run", "--", "python", "a.py"], "run"),
        (["verify", "a", "--against", "b"], "verify"),
        (["recover", "a", "-o", "b"], "recover"),
        (["snippet", "a"], "snippet"),
        (["screenshot", "a", "b.png"], "screenshot"),
        (["desktop", "install"], "desktop"),
        (["check", "a"], "check"),
        (["target", "--probe-script"], "target"),
    ],
)
def test_first_word_is_the_command(given: list[str], command: str) -> None:
    assert parse(given).run is import_module(COMMANDS.get(command, WINDOW)).run


def test_a_command_is_its_module_and_its_row(cli, monkeypatch) -> None:
    asked = []
    module = ModuleType("somewhere_else")
    module.SUMMARY = "Count the sheep."
    module.add_options = lambda parser: parser.add_argument("--sheep", type=int, help="how many")
    module.run = lambda options: asked.append(options.sheep) or 1
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "count", module.__name__)
    module.EXAMPLES, module.NOTES = ("count --sheep 3",), "They are counted once."
    assert "\n  count       Count the sheep.\n" in cli("--help").out
    told = cli("count", "--help").out
    assert told.endswith("examples:\n  checkpoint-inspector count --sheep 3\n\nThey are counted once.\n")
    assert told.startswith("usage: checkpoint-inspector count [options]\n\nCount the sheep.")
    assert "  --sheep SHEEP  how many" in told
    assert "Count the sheep." in told
    assert cli("count", "--sheep", "3").code == 1
    assert asked == [3]


def test_the_window_is_not_prepared_for_before_it_is_wanted() -> None:
    code = (
        "import sys; from inspector.cli.parser import parse; parse(['--demo']);"
        "print(*({'ctypes', 'socket', 'shutil', 'subprocess', 'inspector.cli.screen'} & {*sys.modules}))"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert answer.stdout.split() == []


def test_a_command_is_imported_alone() -> None:
    code = (
        "import sys; from inspector.cli.parser import parse; parse(['show', 'a']);"
        "print(*(name for name in sys.modules if name.startswith('inspector.')))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    imported = set(answer.stdout.split())
    assert imported & set(COMMANDS.values()) == {COMMANDS["show"]}
    assert not any(name.startswith(("inspector.remap", "inspector.model")) for name in imported)


def test_files_named_like_a_command_can_be_opened() -> None:
    assert parse(["./show"]).files == ["./show"]
    assert parse(["--", "show"]).files == ["show"]
    assert parse(["show", "show", "./remap"]).files == ["show", "./remap"]


def test_sizes_and_depths_are_numbers() -> None:
    assert parse(["screenshot", "a", "b", "--size", "640x480"]).size == (640, 480)
    assert parse(["screenshot", "a", "b"]).size == (1280, 800)
    assert parse(["show", "a", "--depth", "3"]).depth == 3
    assert parse(["show", "a"]).depth is None


def test_files_are_no_unknown_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shwo").mkdir()
    for word in ("shwo", "missing.pth", "./missing", "checkpoint-500"):
        assert parse([word]).files == [word]


def test_every_command_has_examples_and_every_option_its_help() -> None:
    wanting = []
    for name, place in {**COMMANDS, "": WINDOW}.items():
        command = import_module(place)
        found = argparse.ArgumentParser()
        command.add_options(found)
        wanting += [(name, action.dest) for action in found._actions if not action.help]
        for example in command.EXAMPLES:
            assert example.split()[:1] == ([name] if name else example.split()[:1])
            parse(shlex.split(re.split(r" [<>|] ", example)[0]))
    assert wanting == []


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids="".join)
def test_every_command_explains_itself(capsys, command: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse([*command, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(['checkpoint-inspector', *command])}")


def test_a_usage_says_what_must_be_given_as_people_write_it(cli) -> None:
    said = {
        "recover": "FILE -o OUT",
        "verify": "OUT... --against FILE",
        "run": "-- COMMAND",
        "stats": "FILE [PATH ...]",
        "target": "",
    }
    for name, words in said.items():
        first = cli(name, "--help").out.partition("\n")[0]
        assert first == f"usage: checkpoint-inspector {name} [options] {words}".rstrip()
    assert "\n  -o, --output OUT " in cli("recover", "--help").out
    whole = cli("--help").out
    assert "[options] [FILE ...]\n       checkpoint-inspector COMMAND [options] ...\n" in whole


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_told(capsys, option: str) -> None:
    with pytest.raises(SystemExit) as stop:
        parse([option])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"checkpoint-inspector {__version__}\n"


def options_of(name: str) -> list[argparse.Action]:
    return [action for action in parser_of(name)._actions if action.option_strings]


def shown(name: str) -> set[str]:
    return {action.option_strings[-1] for action in options_of(name) if action.help != argparse.SUPPRESS}


def test_a_short_name_is_one_option_everywhere(cli) -> None:
    meant: dict[str, set[str]] = {}
    for name in ("", *COMMANDS):
        for action in options_of(name):
            for short in (option for option in action.option_strings if not option.startswith("--")):
                meant.setdefault(short, set()).add(action.option_strings[-1])
    assert meant == {
        **{short: {long} for long, short in SHORT.items()},
        "-h": {"--help"},
        "-o": {"--output"},
        "-q": {"--quiet"},
        "-V": {"--version"},
    }
    options = parse(["remap", "a.pth", "-fnj", "-m", "cuda:*=cpu", "-tcpu", "-o", "b.pth"])
    assert (options.force, options.dry_run, options.json) == (True, True, True)
    assert (options.map, options.target, options.output) == (["cuda:*=cpu"], "cpu", "b.pth")
    assert "  -t, --target T " in cli("check", "--help").out


def test_remap_keeps_to_its_promise() -> None:
    everywhere = {"--help", "--quiet", "--color", "--no-pager"}
    assert shown("remap") - everywhere == {
        *("--output", "--into", "--in-place", "--undo", "--dry-run", "--force", "--keep-times", "--map"),
        *("--target", "--python", "--move-all", "--hidden-devices", "--verify", "--receipt", "--json"),
    }
    assert {"--ema", "--cast", "--strip-prefix", "--format", "--container", "--compact", "--strict"} <= shown(
        "export"
    )
    assert not {"--values", "--only-differences"} & shown("diff")
    assert parse(["diff", "a", "b", "--values", "--only-differences"]).values


def test_what_changes_nothing_is_shown_by_no_command_that_lays_nothing_out() -> None:
    plain = {name for name in COMMANDS if "--color" not in shown(name)}
    assert plain == {"run", "screenshot", "desktop", "schema", "completion", "help"}
    for name in plain:
        assert "--quiet" in shown(name)
        assert "--no-pager" not in shown(name)
    assert parse(["schema", "--color", "never", "--no-pager"]).color == "never"


def test_nothing_that_is_missing_is_said_in_the_words_of_argparse(cli) -> None:
    for name in COMMANDS:
        answer = cli(name) if parser_of(name).needed()[:1] not in {"", "["} else None
        assert answer is None or answer.code == 2
        assert answer is None or f"checkpoint-inspector {name} " in answer.err, name
        said = "" if answer is None else answer.err
        for action in options_of(name):
            for option in action.option_strings if action.nargs != 0 else ():
                answer = cli(name, option)
                assert answer.code == 2
                assert f"{action.option_strings[-1]} needs a value" in answer.err
                said += answer.err
        assert not re.search("argument|required|expected", said), said


def test_the_tree_holds_every_command_with_its_options() -> None:
    tree = parser_tree()
    (commands,) = (action for action in tree._actions if isinstance(action, argparse._SubParsersAction))
    assert list(commands.choices) == list(COMMANDS)
    for name, parser in commands.choices.items():
        own = argparse.ArgumentParser()
        import_module(COMMANDS[name]).add_options(own)
        add_display_options(own)
        long = {option for option in parser._option_string_actions if option not in SHORT.values()}
        assert set(own._option_string_actions) == long
        assert parser.prog == f"checkpoint-inspector {name}"
        assert parser.format_help().startswith(f"usage: checkpoint-inspector {name} ")


def test_commands_are_listed_in_the_width_of_the_terminal(monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "50")
    with pytest.raises(SystemExit):
        parse(["--help"])
    lines = terminal.getvalue().split("\n")
    listed = lines[lines.index("commands:") + 1 : -4]
    assert max(map(len, listed)) <= 48
    assert sum(not line.startswith("   ") for line in listed) == len(COMMANDS)


def test_help_leaves_a_narrow_terminal_room_for_sentences(monkeypatch) -> None:
    columns = {}
    for width in ("60", "80"):
        monkeypatch.setenv("COLUMNS", width)
        line = next(line for line in parser_of("remap").format_help().split("\n") if "  --undo " in line)
        columns[width] = line.index("undo --in-place")
    assert columns == {"60": 20, "80": 28}


def test_files_that_are_named_like_options_are_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """`check *` in a folder of somebody else: what stands there is a file, wherever it stands."""
    evil = tmp_path / "venv" / "bin" / "python3"
    evil.parent.mkdir(parents=True)
    evil.write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
    evil.chmod(0o755)
    names = ["--python=venv", "--json", "-o", "--error-file=best.pth", "--python", "best.pth"]
    for name in names:
        (tmp_path / name).write_bytes(b"\x80\x02N.")
    monkeypatch.chdir(tmp_path)
    options = parse(["check", *names[:5], "venv", "best.pth", "./--json", "--target", "cpu"])
    assert options.files == [*(f"./{name}" for name in names[:5]), "venv", "best.pth", "./--json"]
    assert (options.python, options.target, options.json) == (None, "cpu", False)
    window = parse(["--python=venv", "best.pth", "-o", "--demo"])
    assert (window.files, window.python, window.demo) == (["./--python=venv", "best.pth", "./-o"], None, True)
    assert parse(["stats", "--python=venv", "w"]).file == "./--python=venv"
    run = parse(["run", "--", "python", "--json"])
    assert run.command == ["--", "python", "--json"]
    assert parse(["show", "--", "--json"]).files == ["--json"]
    (tmp_path / "--python").unlink()
    (tmp_path / "--python=venv").unlink()
    assert main(["check", "best.pth", "--python=venv"])  # a bare word is looked for on PATH alone
    assert "there is no Python 'venv'" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_a_file_called_run_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    (tmp_path / "run").write_bytes(b"")
    (tmp_path / "x.py").write_text("open('ran', 'w')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        parse(["run", "x.py"])
    assert "./run" in capsys.readouterr().err
    assert parse(["run", "--", "x.py"]).command == ["--", "x.py"]

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from inspector.cli.commands import COMMANDS
from inspector.cli.mistakes import describe_unknown, find_unknown, nearest
from inspector.cli.parser import parse, parser_of


def test_a_slip_of_the_finger_is_told_from_another_word() -> None:
    assert nearest("shwo", COMMANDS) == "show"
    assert nearest("xylophone", COMMANDS) is None


def test_what_looks_like_an_option_and_is_none_is_found_first() -> None:
    found = {
        line: find_unknown(parser_of(line.split()[0]), line.split()[1:])
        for line in (
            "check a --trget cpu",
            "check a --target=cpu --json",
            "check --error-text --jsno a",  # a value: argparse says that there is none
            "check a -- --jsno",
            "verify a --aginst b",
            "remap a -oout.pth --map=*=cpu",
            "remap a -o - -x",
            "show --js=1 a",
            "show - -1 -.5",
            "run --map a=b --jsno -- python --jsno",
            "run --map a=b python --jsno",
            "run --map a=b -- python --jsno",
        )
    }
    assert list(found.values()) == [
        "--trget", None, None, None, "--aginst", None, "-x", "--js=1", None, "--jsno", None, None,
    ]  # fmt: skip
    assert find_unknown(parser_of("check"), ["a", "--error-text", "--a b"]) is None
    assert find_unknown(parser_of("check"), ["--a b"]) is None


SHOW_HELP = "(checkpoint-inspector show --help lists them)"
MISTAKES = {
    "show a --jsno": "show has no option --jsno; did you mean --json?",
    "show a --js=1": "show has no option --js; did you mean --json?",
    "show a --xyzzy": f"show has no option --xyzzy {SHOW_HELP}",
    "show a --no\nsuch": rf"show has no option --no\u000asuch {SHOW_HELP}",
    "check a --filter x": "check has no option --filter (show and diff have it)",
    "check a --receipt x": "check has no option --receipt (remap has it)",
    "show a --recipt x": "show has no option --recipt; did you mean --receipt of remap?",
    "recover a -o b --python x": "recover has no option --python (check, remap, verify, snippet and 3",
    "--jsno": "without a command, there is no option --jsno; did you mean --json of show",
    "--xyzzy": "without a command, there is no option --xyzzy (checkpoint-inspector --help lists them)",
    "--json show a": (
        "without a command, there is no option --json "
        "(options stand behind the command: checkpoint-inspector show --json)"
    ),
    "show a --version": "show has no option --version (checkpoint-inspector without a command has it)",
    "target a b": "target has no use for 'a', 'b' (checkpoint-inspector target --help says what it takes)",
    "SHWO x.pth": "there is no command or file 'SHWO'; did you mean show?",
    "a.pth show": "the command comes first: checkpoint-inspector show; for a file of this name, write ./show",
}


def test_each_mistake_says_what_was_meant(capsys) -> None:
    wrong = []
    for line, said in MISTAKES.items():
        with pytest.raises(SystemExit) as stop:
            parse(line.split(" "))
        out, err = capsys.readouterr()
        good = err.startswith(f"checkpoint-inspector: error: {said}") and err.count("\n") == 1
        if not good or (stop.value.code, out) != (2, ""):
            wrong.append((line, err))
    assert wrong == []


def test_a_file_that_begins_with_a_dash_can_be_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-odd.pth").touch()
    assert find_unknown(argparse.ArgumentParser(), ["-odd.pth"]) == "-odd.pth"
    said = describe_unknown("-odd.pth", "show", ("--json",), ["-odd.pth"])
    assert said == "show has no option -odd.pth (for the file of this name, write ./-odd.pth)"
    assert parse(["show", "./-odd.pth"]).files == ["./-odd.pth"]
    Path("show").touch()
    assert parse(["a.pth", "show"]).files == ["a.pth", "show"]
    assert parse(["a.pth", "--", "diff"]).files == ["a.pth", "diff"]

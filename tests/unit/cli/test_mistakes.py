from __future__ import annotations

import argparse
import re
from pathlib import Path

from inspector.cli.commands import COMMANDS
from inspector.cli.mistakes import describe_unknown, find_unknown, nearest, reword
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


def test_a_file_that_begins_with_a_dash_can_be_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-odd.pth").touch()
    assert find_unknown(argparse.ArgumentParser(), ["-odd.pth"]) == "-odd.pth"
    said = describe_unknown("-odd.pth", "show", parser_of("show"), ["-odd.pth"])
    assert said == "show has no option -odd.pth (for the file of this name, write ./-odd.pth)"
    assert parse(["show", "./-odd.pth"]).files == ["./-odd.pth"]
    Path("show").touch()
    assert parse(["a.pth", "show"]).files == ["a.pth", "show"]
    assert parse(["a.pth", "--", "diff"]).files == ["a.pth", "diff"]


def test_no_old_spelling_is_recommended() -> None:
    for word, command in (("--valuse", "diff"), ("--no-verfy", "remap"), ("--onyl", "remap")):
        said = describe_unknown(word, command, parser_of(command), [word])
        assert not re.search("--(values|no-verify|only(?! of export))", said), said
    assert "(export has it)" in describe_unknown("--ema", "verify", parser_of("verify"), ["--ema"])


def test_what_argparse_says_is_said_with_a_remedy() -> None:
    line = "checkpoint-inspector verify"
    missing = "the following arguments are required: OUT, --against"
    assert reword(missing, line, "OUT --against FILE") == f"verify: which copy? {line} OUT --against FILE"
    unforeseen = "the following arguments are required: --moon, x"
    assert reword(unforeseen, line, "X") == f"verify: no --moon was given: {line} X"
    assert reword("something else", line, "") == "something else"

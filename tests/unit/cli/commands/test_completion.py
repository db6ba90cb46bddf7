from __future__ import annotations

import argparse
import re
import shutil
import subprocess

import pytest

from inspector.cli.commands import COMMANDS
from inspector.cli.commands.completion import script
from inspector.cli.parser import parser_of

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_and_help_says_how_it_is_installed(cli, shell: str) -> None:
    answer = cli("completion", shell)
    assert (answer.code, answer.out, answer.err) == (0, script(shell), "")
    assert f"checkpoint-inspector completion {shell}" in cli("completion", "--help").out
    assert cli("completion").code == 2
    assert "did you mean zsh?" in cli("completion", "zhs").err


@pytest.mark.parametrize("shell", SHELLS)
def test_it_holds_what_help_shows_and_no_old_spelling(shell: str) -> None:
    words = set(re.findall(r"[\w-]+", script(shell)))
    shown, hidden = set(COMMANDS), set()
    for command in COMMANDS:
        for action in parser_of(command)._actions:
            options = {option.lstrip("-") if shell == "fish" else option for option in action.option_strings}
            is_hidden = action.help == argparse.SUPPRESS
            (hidden if is_hidden else shown).update(options)
            shown.update(() if is_hidden else map(str, action.choices or ()))
    assert shown - words == set()
    assert {option.lstrip("-") for option in hidden - shown} >= {"no-verify", "only-differences"}
    assert (hidden - shown) & words <= {"values", "only"}  # in fish, also words of a text
    assert {"lightning-weights", "2xcuda"} <= words  # what options without choices can be


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_takes_it_without_a_word(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n"], input=script(shell), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

from __future__ import annotations

from inspector.cli.commands import COMMANDS


def test_help_is_that_of_the_option(cli) -> None:
    for name in COMMANDS:
        assert cli("help", name).out == cli(name, "--help").out
    every = cli("help")
    assert every.out == cli("--help").out
    assert every.code == 0
    assert all(f"\n  {name} " in every.out for name in COMMANDS)


def test_a_word_that_is_no_command_is_wrong_usage(cli) -> None:
    answer = cli("help", "remp")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "checkpoint-inspector: error: there is no command 'remp' (did you mean remap?)\n"
    assert cli("help", "xyzzy").err.endswith("'xyzzy' (checkpoint-inspector help lists the commands)\n")

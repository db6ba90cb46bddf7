from __future__ import annotations

import argparse
import io
import json
import sys

import pytest

from inspector.cli import remapping
from inspector.cli.common import bars
from inspector.cli.display import Display, add_display_options, display_for
from inspector.progress import Progress
from inspector.report.page import Line, Page, page_of

PAGE = page_of([Line("a")])


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_piped_it_is_plain_text(capsys) -> None:
    with Display() as display:
        display.show(PAGE, apart=True)
        display.show(PAGE, apart=True)
        display.show(PAGE)
    assert capsys.readouterr().out == "a\n\na\na\n"


@pytest.mark.parametrize("color", ["auto", "always"])
def test_on_a_terminal_or_if_asked_for_it_is_laid_out(monkeypatch, color) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal() if color == "auto" else io.StringIO())
    with Display(color) as display:
        display.show(page_of([Line("LOADS there", "good")]))
        display.show(PAGE)
    assert "LOADS\x1b[0m there\n\na\n" in sys.stdout.getvalue()


def test_progress_is_for_those_who_look(monkeypatch) -> None:
    assert type(Display().progress()) is Progress
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    assert type(Display().progress()) is not Progress
    assert type(Display(is_quiet=True).progress()) is Progress
    monkeypatch.setenv("TERM", "dumb")
    assert type(Display().progress()) is Progress


def test_a_bar_is_taken_away_at_the_end() -> None:
    gone = []
    with Display():
        bars.append(lambda: gone.append(1))
    assert gone == [1]


def test_options_say_how() -> None:
    parser = argparse.ArgumentParser()
    add_display_options(parser)
    display = display_for(parser.parse_args(["--color", "never", "--no-pager", "--quiet"]))
    assert (display.color, display.pages, display.is_quiet) == ("never", False, True)
    assert display_for(parser.parse_args(["-q"])).is_quiet
    display = display_for(argparse.Namespace())
    assert (display.color, display.pages, display.is_quiet) == ("auto", True, False)


def test_no_text_of_a_file_is_obeyed_by_the_terminal(capsys) -> None:
    """Whatever a finding forgot to escape: the last door does."""
    evil = "\x1b[2J\x9b31m\r\x08\u202e\u2066\0\ud800\nSAFE"
    Display().show(Page(sections=((Line(f"a{evil}b\tc"), Line("d")),)))
    out = capsys.readouterr().out
    assert out.replace("\n", "").replace("\t", "").isprintable()
    assert out.startswith("a\\u001b[2J")
    assert out.endswith("\\ud800\\u000aSAFEb\tc\nd\n"), "no text ends a line of ours"


def test_quiet_leaves_errors_and_the_answer(cli, copy, tmp_path, monkeypatch) -> None:
    out = tmp_path / "out.pth"
    for words in (
        ("remap", copy, "-o", out),
        ("export", copy, "-o", out, "--force"),
        ("remap", copy, "--in-place"),
        ("remap", copy, "--undo"),
        ("remap", copy, out, "--into", tmp_path / "o"),
        ("remap", copy, "-o", out, "--force", "--only", "weights"),
    ):
        answer = cli(*words, "-q")
        assert (answer.code, answer.out, answer.err) == (0, "", ""), words
    monkeypatch.setattr(remapping, "overflowed", lambda _: "3 numbers became infinite")
    answer = cli("export", copy, "-o", out, "-f", "-q")
    assert (answer.out, answer.err) == ("", f"checkpoint-inspector: {out}: 3 numbers became infinite\n")
    assert cli("remap", copy, "-o", out, "-q").err.startswith("checkpoint-inspector: error: the file already")
    assert cli("check", copy, "--target", "cpu", "--beliefs", "-q").err == ""
    for words in (("show", copy), ("check", copy, "--target", "cpu"), ("remap", copy, "--dry-run")):
        assert cli(*words, "-q").out == cli(*words).out != "", words
    assert json.loads(cli("remap", copy, "-o", out, "-f", "-q", "--json").out)["action"] == "copy"

from __future__ import annotations

import io

from inspector.cli.terminal.paint import LEAST_WIDTH, Look, look_of
from tests.sweep import table


def look(encoding: str = "utf-8", color: str = "auto", **environment: str) -> Look:
    return look_of(io.TextIOWrapper(io.BytesIO(), encoding=encoding), color, environment)


def test_colors_are_those_that_the_terminal_says_it_has() -> None:
    wanted = {
        (): "16",
        (("TERM", "xterm-256color"),): "256",
        (("TERM", "xterm-256color"), ("COLORTERM", "truecolor")): "true",
        (("TERM", "xterm-direct"),): "true",
        (("TERM", "dumb"), ("COLORTERM", "24bit")): "none",
        (("TERM", "xterm"), ("NO_COLOR", "1")): "none",
        (("TERM", "xterm"), ("NO_COLOR", "")): "16",
    }
    assert {key: look(**dict(key)).depth for key in wanted} == wanted


def test_the_option_counts_more_than_the_variable() -> None:
    assert look(color="always", NO_COLOR="1").depth == "16"
    assert look(color="always", TERM="dumb").depth == "16"
    assert look(color="never", COLORTERM="truecolor").depth == "none"


@table(
    ("text", "ground"),
    [("", "unknown"), ("15;0", "dark"), ("0;15", "light"), ("0;default;7", "light"), ("0;x", "unknown")],
)
def test_the_background_is_light_or_dark_if_somebody_says_so(text, ground) -> None:
    assert look(COLORFGBG=text).ground == ground
    assert look(COLORFGBG="0;" + "9" * 5000).ground == "unknown"


def test_signs_are_drawn_where_they_are_shown() -> None:
    assert look(LANG="de_DE.UTF-8").is_unicode
    assert look().is_unicode
    assert look(LANG="C", LC_CTYPE="de_DE.UTF-8").is_unicode
    assert not look(LANG="C", LC_CTYPE="C.UTF-8").is_unicode
    assert not look(LC_ALL="POSIX").is_unicode
    assert not look("latin-1").is_unicode
    assert not look("cp437").is_unicode


def test_the_size_is_that_of_the_terminal(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("LINES", "50")
    assert look()[:2] == (140, 50)
    monkeypatch.setenv("COLUMNS", "3")
    assert look().width == LEAST_WIDTH

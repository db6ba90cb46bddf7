from __future__ import annotations

import io

import pytest

from inspector.cli.terminal.bar import Bar, amount_text, clock, left_text
from inspector.progress import Progress
from inspector.report.page import width_of
from tests.unit.cli.terminal.looks import seen


def drawn(monkeypatch, width: int, *stages: tuple, encoding: str = "utf-8", color: str = "always") -> str:
    """What a bar of some stages leaves on a terminal, order by order."""
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    ticks = iter(range(0, 1000, 10))
    bar = Bar(stream, color, lambda: next(ticks))
    for label, total, done, is_counted in stages:
        progress = Progress()
        progress.start(label, total, is_counted=is_counted)
        bar.show(progress)
        progress.advance(done)
        bar.show(progress)
    bar.hide()
    stream.seek(0)
    return stream.read()


COPYING = ("copying", 3_000_000_000, 1_500_000_000, False)
COUNTING = ("finding storages", 2_000, 1_200, True)
WAITING = ("waiting for the disk", 0, 0, False)


def test_each_stage_begins_anew(monkeypatch) -> None:
    text = drawn(monkeypatch, 100, COUNTING, COPYING, WAITING)
    stages = [line for line in seen(text.split("\x1b[2K")) if line.strip()]
    assert "Finding storages" in stages[0]
    assert any("1,200 of 2,000" in line for line in stages)
    assert any("Copying" in line and "1.5 GB of 3.0 GB" in line for line in stages)
    assert "1.5 GB of 3.0 GB, 150 MB/s 0:10 left" in text
    assert stages[-1].strip() == "Waiting for the disk 0:10"
    assert " of " not in stages[-1]


@pytest.mark.parametrize("width", [20, 40, 56, 80, 140])
def test_it_is_one_line_that_goes_away(monkeypatch, width) -> None:
    text = drawn(monkeypatch, width, COUNTING, COPYING)
    lines = seen(text.replace("\r", "").split("\x1b[2K"))
    assert max(width_of(line.strip("\n")) for line in lines) < width
    assert text.rpartition("\x1b[2K")[2] == ""
    assert "\x1b[?25l" not in text


def test_colors_and_signs_are_those_of_the_terminal(monkeypatch) -> None:
    plain = drawn(monkeypatch, 80, COPYING, encoding="ascii", color="never")
    assert plain.isascii()
    assert "m" not in plain.replace("Copying", "")
    assert "━" in drawn(monkeypatch, 80, COPYING)


def test_names_in_it_are_harmless(monkeypatch) -> None:
    text = drawn(monkeypatch, 80, ("\x1b]0;owned\x07[bold]x[/]", 10, 5, False))
    assert "\x1b]" not in text
    assert "\\u001b]0;owned" in text
    assert "Working" in drawn(monkeypatch, 80, ("", 10, 5, False))


def test_figures() -> None:
    assert amount_text(5, 10, None, is_counted=False) == "5 B of 10 B"
    assert amount_text(5e9, 1e10, 2.5e8, is_counted=False) == "5.0 GB of 10.0 GB, 250 MB/s"
    assert amount_text(5, 1000, 3, is_counted=True) == "5 of 1,000"
    assert amount_text(5, None, 3, is_counted=True) == ""
    assert left_text(65.2, 3, has_end=True) == "1:05 left"
    assert left_text(None, 3, has_end=True) == ""
    assert left_text(None, 3, has_end=False) == "0:03"
    assert left_text(None, None, has_end=False) == "0:00"
    assert [clock(seconds) for seconds in (0, 59.9, 3661, 1e30)] == ["0:00", "0:59", "1:01:01", "99:00:00"]

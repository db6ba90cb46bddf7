from __future__ import annotations

import pytest

from inspector.cli.terminal import writer as module
from inspector.cli.terminal.writer import Writer, open_writer
from inspector.report.page import lines_of, page_of
from tests.unit.cli.terminal.looks import PLAIN


class Pager:
    """A pager that takes so many texts."""

    takes = 100

    def __init__(self, words: tuple[str, ...], stream: object) -> None:
        self.words = words
        self.texts: list[str] = []
        self.is_closed = False
        opened.append(self)

    def write(self, text: str) -> bool:
        self.texts.append(text)
        return len(self.texts) < self.takes

    def close(self) -> None:
        self.is_closed = True


opened: list[Pager] = []


@pytest.fixture(autouse=True)
def _pagers(monkeypatch) -> None:
    opened.clear()
    monkeypatch.setattr(module, "Pager", Pager)


def page(count: int) -> object:
    return page_of(lines_of([f"line {number}" for number in range(count)]))


def test_what_fits_on_the_screen_is_not_paged(capsys) -> None:
    writer = Writer(PLAIN, ("less",))
    writer.show(page(10))
    writer.show(page(2))
    assert capsys.readouterr().out == ""
    writer.close()
    assert capsys.readouterr().out.split("\n")[8:] == ["line 8", "line 9", "", "line 0", "line 1", ""]
    assert opened == []


def test_what_is_longer_is_paged_as_it_comes(capsys, monkeypatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 10)
    writer = Writer(PLAIN, ("less",))
    writer.show(page(50))
    (pager,) = opened
    assert (pager.words, len(pager.texts)) == (("less",), 3)
    writer.close()
    assert "".join(pager.texts).count("line") == 50
    assert pager.is_closed
    assert capsys.readouterr().out == ""


def test_nothing_is_laid_out_that_nobody_reads(monkeypatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 10)
    monkeypatch.setattr(Pager, "takes", 3)
    writer = Writer(PLAIN, ("less",))
    writer.show(page(1000))
    writer.close()
    assert len(opened[0].texts) == 3


def test_without_a_pager_it_is_written_at_once(capsys) -> None:
    writer = Writer(PLAIN, ())
    writer.show(page(100))
    assert capsys.readouterr().out.count("\n") == 100
    writer.close()
    assert capsys.readouterr().out == ""


def test_paged_is_where_somebody_is(monkeypatch) -> None:
    monkeypatch.setattr(module, "pager_command", lambda: ("less",))
    monkeypatch.setattr(module, "can_page", lambda: True)
    assert open_writer("auto", pages=True)._command == ("less",)
    assert open_writer("auto", pages=False)._command == ()
    monkeypatch.setattr(module, "can_page", lambda: False)
    assert open_writer("auto", pages=True)._command == ()

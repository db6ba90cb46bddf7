"""Writes laid-out answers: at once, or through a pager once they are longer than the screen."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice

from inspector.cli.common import say
from inspector.cli.terminal.layout import lay_out
from inspector.cli.terminal.look import look_of
from inspector.cli.terminal.pager import Pager, can_page, pager_command
from inspector.cli.terminal.paint import Paint, paint_for
from inspector.report.page.blocks import Page

_BLOCK = 256
"""Lines that are written at once."""


class Writer:
    """Takes the answers of one command in their order."""

    def __init__(self, paint: Paint, pager: tuple[str, ...]) -> None:
        self._paint = paint
        self._command = pager
        self._kept: list[str] = []
        self._pager: Pager | None = None
        self._has_shown = False

    def show(self, page: Page) -> None:
        """Write an answer, or keep it until it is known whether all of them fit on the screen."""
        if self._has_shown:
            self._put([""])
        self._has_shown = True
        self._put(lay_out(page, self._paint))

    def _put(self, lines: Iterable[str]) -> None:
        rest = iter(lines)
        while block := list(islice(rest, _BLOCK)):
            if not self._command:
                say(_text(block))
            elif self._pager is None:
                self._keep(block)
            elif not self._pager.write(_text(block)):
                return

    def _keep(self, lines: list[str]) -> None:
        self._kept += lines
        if len(self._kept) >= self._paint.look.height:
            self._pager = Pager(self._command, sys.stdout)
            self._pager.write(_text(self._kept))
            self._kept = []

    def close(self) -> None:
        """Write what was kept, and wait for the pager's user."""
        kept, self._kept = self._kept, []
        if kept:
            say(_text(kept))
        if self._pager is not None:
            self._pager.close()


def _text(lines: list[str]) -> str:
    return "\n".join([*lines, ""])


def open_writer(color: str, *, pages: bool) -> Writer:
    """Return what writes to this terminal; `--color always` may have it write to a pipe as well."""
    command = pager_command() if pages and can_page() else ()
    return Writer(paint_for(look_of(sys.stdout, color)), command)

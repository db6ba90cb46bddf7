"""Where an answer goes: as plain text into files and pipes, laid out on a terminal.

Nothing of `cli.terminal` is imported where no terminal is: other programs read the plain text, which stays as
it is, and start this one often.
"""

from __future__ import annotations

import argparse
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from inspector.cli.common import hide_bars, say

if TYPE_CHECKING:
    from inspector.cli.terminal.writer import Writer
    from inspector.progress import Progress
    from inspector.report.page import Page

Color = Literal["auto", "always", "never"]


def add_display_options(parser: argparse.ArgumentParser, *, is_plain: bool = False) -> None:
    """Declare what every command takes; what changes nothing, where nothing is laid out, is hidden."""
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="errors and the answer alone: no progress, no hints, no report of what was written",
    )
    group = parser.add_argument_group("on a terminal")
    color = group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        metavar="WHEN",
        default="auto",
        help="auto (on a terminal, unless NO_COLOR is set), always (also in a pipe, laid out as on a "
        "terminal) or never",
    )
    pager = group.add_argument(
        "--no-pager", action="store_true", help="do not page what is longer than the screen"
    )
    if is_plain:
        color.help = pager.help = argparse.SUPPRESS


class Display:
    """Takes the answers of one command.

    Attributes:
        color: What `--color` says.
        pages: Whether what is longer than the screen may be paged.
        is_quiet: Whether nothing is said but errors and what was asked for.
    """

    def __init__(self, color: Color = "auto", *, pages: bool = True, is_quiet: bool = False) -> None:
        self.color = color
        self.pages = pages
        self.is_quiet = is_quiet
        self._writer: Writer | None = None
        self._has_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        hide_bars()

    def show(self, page: Page, *, apart: bool = False) -> None:
        """Write an answer; `apart` from the one before, with an empty line between them."""
        if not self._is_laid_out():
            from inspector.report.page import plain_text

            say("\n" * (apart and self._has_shown) + plain_text(page))
        else:
            self._open_writer().show(page)
        self._has_shown = True

    def report(self, page: Page, *, apart: bool = False) -> None:
        """Write what was done, where the answer is a file or stands above."""
        if not self.is_quiet:
            self.show(page, apart=apart)

    def progress(self) -> Progress:
        """Return a progress that shows itself, if somebody looks and the work takes long."""
        if self.is_quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            from inspector.progress import Progress

            return Progress()
        from inspector.cli.progress import TerminalProgress

        return TerminalProgress(self.color)

    def _is_laid_out(self) -> bool:
        return self.color == "always" or sys.stdout.isatty()

    def _open_writer(self) -> Writer:
        if self._writer is None:
            from inspector.cli.terminal.writer import open_writer

            self._writer = open_writer(self.color, pages=self.pages)
        return self._writer


def display_for(options: argparse.Namespace) -> Display:
    """Return the display that the options ask for; those of the window have none."""
    return Display(
        getattr(options, "color", "auto"),
        pages=not getattr(options, "no_pager", False),
        is_quiet=getattr(options, "quiet", False),
    )

"""A progress bar on stderr: how far, how fast, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from inspector.cli.terminal.paint import look_of, obeys_codes, paint_for
from inspector.progress import Progress
from inspector.report.page import cut_end, width_of
from inspector.units import format_nbytes

_NARROW, _WIDE = 40, 56
"""Columns from which on there is room for a bar, and for amounts."""
_MOST_BAR = 40
_LONGEST_S = 99 * 3600


class Bar:
    """One line on a terminal, written over again while work goes on, and taken away without a trace."""

    def __init__(self, stream: TextIO, color: str, clock: Callable[[], float] = time.monotonic) -> None:
        look = look_of(stream, color)
        self._stream, self._clock, self._paint = stream, clock, paint_for(look)
        self._room = look.width - 1  # a full line would begin the next one
        self._sign = "\u2501" if look.is_unicode else "-"
        self._clear = "\r\x1b[2K" if obeys_codes(stream) else f"\r{' ' * self._room}\r"
        self._stage = ("", -1)
        self._begun_s, self._begun_at = 0.0, 0

    def show(self, progress: Progress) -> None:
        """Show how far work is; a new stage of it begins anew."""
        stage, now = (progress.label, progress.total), self._clock()
        if stage != self._stage:
            self._stage, self._begun_s, self._begun_at = stage, now, progress.done
        self._write(self._line(progress, now - self._begun_s))

    def hide(self) -> None:
        """Take it off the terminal."""
        self._write("")

    def _write(self, line: str) -> None:
        self._stream.write(f"{self._clear}{line}")
        self._stream.flush()

    def _line(self, progress: Progress, elapsed_s: float) -> str:
        label = self._paint.text(progress.label) or "working"
        label = label[:1].upper() + label[1:]
        total = progress.total or None
        done = min(progress.done, progress.total or progress.done)
        speed = (progress.done - self._begun_at) / elapsed_s if elapsed_s > 0 else 0.0
        left_s = (total - done) / speed if total is not None and speed > 0 else None
        texts = [left_text(left_s, elapsed_s, has_end=total is not None)]
        if self._room >= _WIDE:
            texts.insert(0, amount_text(done, total, speed, is_counted=progress.is_counted))
        behind = "".join(f" {text}" for text in texts if text)
        bar = min(self._room // 4, _MOST_BAR) if total is not None and self._room >= _NARROW else 0
        room = self._room - width_of(behind) - (bar + 1 if bar else 0)
        line = cut_end(label, max(room, 1))
        if bar and total is not None:
            full = int(bar * done / total)
            rest = (" " if self._paint.look.depth == "none" else self._sign) * (bar - full)
            line += f" {self._paint.style(self._sign * full, 'bar')}{self._paint.style(rest, 'dim')}"
        return f"{line}{behind}"


def amount_text(done: float, total: float | None, speed: float | None, *, is_counted: bool) -> str:
    if total is None:
        return ""
    if is_counted:
        return f"{int(done):,} of {int(total):,}"
    rate = f", {format_nbytes(int(speed))}/s" if speed else ""
    return f"{format_nbytes(int(done))} of {format_nbytes(int(total))}{rate}"


def left_text(left: float | None, elapsed: float | None, *, has_end: bool) -> str:
    """Return how long work will still take; how long it has taken where nobody knows its end."""
    if not has_end:
        return clock(elapsed or 0)
    return "" if left is None else f"{clock(left)} left"


def clock(seconds: float) -> str:
    """Return a time as people read it off a clock: `0:07`, `12:34`, `1:02:03`."""
    minutes, rest = divmod(int(min(seconds, _LONGEST_S)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

"""A progress bar on stderr: how far, how fast, and how long it will take; rich draws it."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Rows
from rich.table import Column
from rich.text import Text

from inspector.cli.terminal.paint import Depth, Look, look_of, paint_for
from inspector.overriding import override
from inspector.progress import Progress
from inspector.units import format_nbytes

_NARROW, _WIDE = 40, 56
"""Columns from which on there is room for a bar, and for amounts."""
_MOST_BAR = 40
_SYSTEMS: dict[Depth, str | None] = {"none": None, "16": "standard", "256": "256", "true": "truecolor"}
_LONGEST_S = 99 * 3600


class Bar:
    """One line on a terminal, written over again while work goes on, and taken away without a trace."""

    def __init__(self, stream: TextIO, color: str) -> None:
        look = look_of(stream, color)
        self._paint = paint_for(look)
        self._rows = Rows(
            *_columns(look.width),
            console=_Console(stream, look),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: TaskID | None = None
        self._stage = ("", 0)
        self._rows.start()

    def show(self, progress: Progress) -> None:
        """Show how far work is; a new stage of it begins anew."""
        stage = (progress.label, progress.total)
        if self._task is None or stage != self._stage:
            if self._task is not None:
                self._rows.remove_task(self._task)
            label = self._paint.text(progress.label) or "working"
            self._task = self._rows.add_task(
                label[:1].upper() + label[1:], total=progress.total or None, counted=progress.is_counted
            )
            self._stage = stage
        self._rows.update(self._task, completed=min(progress.done, progress.total or progress.done))

    def hide(self) -> None:
        """Take it off the terminal."""
        self._rows.stop()


class _Console(Console):
    """A terminal whose cursor stays where people see it, also if this program is killed."""

    def __init__(self, stream: TextIO, look: Look) -> None:
        self._is_ascii = not look.is_unicode
        super().__init__(
            file=stream,
            force_terminal=True,
            color_system=_SYSTEMS[look.depth],  # type: ignore[arg-type]  # a literal of rich's
            no_color=look.depth == "none",
            width=look.width,
            highlight=False,
            markup=False,
            emoji=False,
        )

    @property
    @override
    def encoding(self) -> str:
        """What rich chooses the signs of its bar by."""
        return "ascii" if self._is_ascii else super().encoding

    @override
    def show_cursor(self, show: bool = True) -> bool:
        """Leave the cursor alone."""
        return False


def _columns(width: int) -> tuple[ProgressColumn, ...]:
    label = TextColumn("{task.description}", markup=False, table_column=_whole())
    bar = BarColumn(
        min(width // 4, _MOST_BAR), complete_style="cyan", finished_style="cyan", pulse_style="cyan"
    )
    if width < _NARROW:
        return label, _Left()
    return (label, bar, _Amount(), _Left()) if width >= _WIDE else (label, bar, _Left())


def _whole() -> Column:
    return Column(no_wrap=True, overflow="ellipsis")


class _Amount(ProgressColumn):
    def __init__(self) -> None:
        super().__init__(_whole())

    @override
    def render(self, task: Task) -> Text:
        return Text(amount_text(task.completed, task.total, task.speed, bool(task.fields.get("counted"))))


class _Left(ProgressColumn):
    def __init__(self) -> None:
        super().__init__(_whole())

    @override
    def render(self, task: Task) -> Text:
        return Text(left_text(task.time_remaining, task.elapsed, has_end=task.total is not None))


def amount_text(done: float, total: float | None, speed: float | None, is_counted: bool) -> str:  # noqa: FBT001
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

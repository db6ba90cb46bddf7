"""The session and the screen of a window that shows a series of checkpoints as lines over time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePath
from typing import Literal, Protocol

from inspector.diff.series import Series, Unit, compare_series, series_paths
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.report.charts.tables import written_csv
from inspector.report.comparing.series import Line, counters_of, format_series, modules_of
from inspector.session.operations import Operations
from inspector.session.present.failure import failure_page
from inspector.session.screen import FailurePage
from inspector.session.view import TaskRunner
from inspector.units import cut_text, escape_text, format_count

Field = Literal["norm", "step", "drift"]
FIELDS: dict[Field, str] = {
    "norm": "Norm",
    "step": "Distance from the one before",
    "drift": "Distance from the first",
}
AXES: dict[Unit, str] = {
    "epoch": "Epoch",
    "global_step": "Step",
    "step": "Step",
    "iteration": "Iteration",
    "iter": "Iteration",
    "num_steps": "Step",
    "name": "Number in the name",
    "": "Checkpoint",
}
"""The titles of the axis of files."""
MOST_LINES = 8
"""Lines that are drawn at once: more are told apart by nobody."""
_MOST_NAME = 80
_NOT_COMPARED = "This series could not be compared"
_MOST_TOLD = 3
_NO_LOGARITHM = "A figure of 0 has no logarithm, and no point."
_COUNTED = "Counters of steps and scores stand at the end of the table, and are in no module's figures."
_SKIPPED = "Elements that are NaN or infinite in a file are left out of its figures."


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLine:
    """A module over all files.

    Attributes:
        values: Its figure in each file; None where there is none.
        is_counter: Whether it counts steps, and is drawn only where it is chosen.
        label: Its name at its line, without the steps that all names in the chart begin with.
    """

    name: str
    values: tuple[float | None, ...]
    marked: tuple[bool, ...]
    is_counter: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesScreen:
    """All that the window shows.

    Attributes:
        phase: Whether the files are read, compared, or could not be.
        numbers: Where each file stands on the axis: its epoch or step; None for one that cannot be read.
        axis: What those numbers are.
        is_log: Whether figures are drawn by their logarithms; those that are 0 have none.
        lines: All modules, all of it first, and the counters of steps at the end.
        summary: What the chart shows, for those who do not see it.
        progress: How far reading is; None when it is over.
        failure: Why the files could not be compared.
    """

    phase: Literal["opening", "ready", "failed"]
    title: str
    files: tuple[str, ...] = ()
    field: Field = "norm"
    numbers: tuple[float | None, ...] = ()
    axis: str = ""
    is_log: bool = False
    lines: tuple[SeriesLine, ...] = ()
    modules: int = 0
    drawn: tuple[int, ...] = ()
    summary: str = ""
    note: str = ""
    progress: Progress | None = None
    failure: FailurePage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    series: Series | None = None
    progress: Progress | None = None
    failure: FailurePage | None = None
    field: Field = "norm"
    is_log: bool = False
    chosen: tuple[int, ...] = ()


class SeriesView(Protocol):
    """A window that shows a series; called on the main thread only."""

    def show_screen(self, screen: SeriesScreen) -> None:
        """Show a screen."""

    def take_text(self, text: str) -> None:
        """Put a text on the clipboard."""


class SeriesSession:
    """All intentions of one window."""

    def __init__(self, view: SeriesView, runner: TaskRunner, given: tuple[str, ...]) -> None:
        """Start with paths of which nothing is known yet."""
        self._view = view
        self._operations = Operations(runner)
        self._state = _State()
        self.given = given
        self.screen = _compose(self._state, given)

    def compare(self) -> None:
        """Read all files, again if they are compared already."""
        progress = Progress("reading")
        self._show(_State(progress=progress, field=self._state.field, is_log=self._state.is_log))
        self._operations.run(
            "compare", progress, partial(_compare, self.given), self._on_done, self._on_failed
        )

    def stop(self) -> None:
        """Stop what runs."""
        self._operations.keep()

    def choose_field(self, field: Field) -> None:
        """Show another figure."""
        self._show(replace(self._state, field=field))

    def choose_scale(self, *, is_log: bool) -> None:
        """Draw figures by their logarithms, or as they are."""
        self._show(replace(self._state, is_log=is_log))

    def choose_lines(self, numbers: tuple[int, ...]) -> None:
        """Draw these modules; without any, those that go farthest."""
        if numbers != self._state.chosen:
            self._show(replace(self._state, chosen=numbers))

    def copy_text(self) -> None:
        """Put the tables on the clipboard, as the command line prints them."""
        if self._state.series is not None:
            self._view.take_text(format_series(self._state.series))

    def dispose(self) -> None:
        """Stop, and release everything: the window is closed."""
        self.stop()
        self._state = _State()
        self.screen = _compose(self._state, self.given)

    def _on_done(self, series: Series) -> None:
        self._show(replace(self._state, series=series, progress=None))

    def _on_failed(self, error: Exception) -> None:
        self._show(replace(self._state, progress=None, failure=failure_page(error, _NOT_COMPARED)))

    def _show(self, state: _State) -> None:
        self._state = state
        self.screen = _compose(state, self.given)
        self._view.show_screen(self.screen)


def _compare(given: tuple[str, ...], progress: Progress) -> Series:
    return compare_series(series_paths(given), progress)


def _compose(state: _State, given: tuple[str, ...]) -> SeriesScreen:
    name = escape_text(cut_text(PurePath(given[0]).name, _MOST_NAME))
    title = f"{name} - Series - Checkpoint Inspector"
    if state.series is None:
        phase: Literal["failed", "opening"] = "opening" if state.failure is None else "failed"
        return SeriesScreen(phase=phase, title=title, progress=state.progress, failure=state.failure)
    lines = (
        *(_line(line, state.field) for line in modules_of(state.series)),
        *(_line(line, state.field, is_counter=True) for line in counters_of(state.series)),
    )
    drawn = state.chosen[:MOST_LINES] or _farthest(lines)
    return SeriesScreen(
        phase="ready",
        title=title,
        files=tuple(_name(state.series, place) for place in range(len(state.series.paths))),
        numbers=state.series.numbers,
        axis=AXES[state.series.unit],
        is_log=state.is_log,
        field=state.field,
        lines=_labeled(lines, drawn),
        modules=sum(not line.is_counter for line in lines[1:]),
        drawn=drawn,
        summary=_summary(state.field, [lines[number] for number in drawn]),
        note=" ".join(_notes(lines, state)),
        progress=None,
    )


def figures_csv(screen: SeriesScreen) -> str:
    """Return all figures as a table: a row for each file, a column for each module."""
    lines: list[list[object]] = [[screen.axis, "File", *(line.name for line in screen.lines)]]
    for place, (number, file) in enumerate(zip(screen.numbers, screen.files, strict=True)):
        values = (line.values[place] for line in screen.lines)
        lines.append([number, file, *("" if value is None else value for value in values)])
    return written_csv(lines)


def _line(line: Line, figure: Field, *, is_counter: bool = False) -> SeriesLine:
    return SeriesLine(
        name=line.name,
        values=tuple(None if point is None else getattr(point, figure) for point in line.points),
        marked=tuple(point is not None and point.leaves_out(figure) for point in line.points),
        is_counter=is_counter,
    )


def _name(series: Series, place: int) -> str:
    return escape_text(cut_text(PurePath(series.paths[place]).name, _MOST_NAME))


def _labeled(lines: tuple[SeriesLine, ...], drawn: tuple[int, ...]) -> tuple[SeriesLine, ...]:
    """Return the lines, those in the chart with a label: cut in its middle, a long name is like any other."""
    names = sorted(lines[number].name for number in drawn)
    ends = zip(names[0], names[-1], strict=False) if len(names) > 1 else ()
    agreeing = next((place for place, (one, other) in enumerate(ends) if one != other), 0)
    start = max(names[0].rfind(end, 0, agreeing) for end in "./") + 1 if names else 0
    cut = "\u2026" if start else ""
    labels = {number: cut + lines[number].name[start:] for number in drawn}
    return tuple(
        replace(line, label=labels[number]) if number in labels else line for number, line in enumerate(lines)
    )


def _farthest(lines: tuple[SeriesLine, ...]) -> tuple[int, ...]:
    """Return the modules that change most, in the order of the table; not all of it, and no counter."""
    spans = [(_span(line), number) for number, line in enumerate(lines) if number and not line.is_counter]
    first = sorted(spans, key=lambda span: (-span[0], span[1]))[:MOST_LINES]
    return tuple(sorted(number for _, number in first))


def _span(line: SeriesLine) -> float:
    known = [value for value in line.values if value is not None]
    return max(known) - min(known) if known else 0.0


def _notes(lines: tuple[SeriesLine, ...], state: _State) -> Iterator[str]:
    assert state.series is not None  # noqa: S101 - there are lines
    for place, why in state.series.problems[:_MOST_TOLD]:
        yield f"{_name(state.series, place)} was not read: {escape_text(why)}."
    if state.is_log and any(value == 0 for line in lines for value in line.values):
        yield _NO_LOGARITHM
    if any(True in line.marked for line in lines):
        yield _SKIPPED
    if any(line.is_counter for line in lines):
        yield _COUNTED


def _summary(field: Field, lines: list[SeriesLine]) -> str:
    parts = []
    for line in lines:
        known = [value for value in line.values if value is not None]
        if known:
            parts.append(f"{line.name} from {known[0]:.4g} to {known[-1]:.4g}")
    noun = "line" if any(line.is_counter for line in lines) else "module"
    return f"{FIELDS[field]} of {format_count(len(lines), noun)}: {'; '.join(parts)}"

"""The session of a window that compares: one method for each thing that a user can do there."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from inspector.diff.compare import ChangedError, Measuring, Wish, compare_paths
from inspector.diff.records import ArrayPair, Numbers, Pair
from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.comparing.text import format_diff
from inspector.session.comparing.compose import (
    Compared,
    CompareState,
    arrange,
    can_measure,
    compose,
    prepare,
)
from inspector.session.comparing.screen import CompareScreen, RowGroup
from inspector.session.operations import Operations
from inspector.session.present.failure import failure_page
from inspector.session.view import TaskRunner

_NOT_COMPARED = "These files could not be compared"
_MANY = 20_000
"""Rows above which choosing among them takes longer than a window may stand still."""


class CompareView(Protocol):
    """A window that shows a comparison; called on the main thread only."""

    def show_screen(self, screen: CompareScreen) -> None:
        """Show a screen."""

    def take_text(self, text: str) -> None:
        """Put a text on the clipboard."""


class CompareSession:
    """All intentions of one window."""

    def __init__(self, view: CompareView, runner: TaskRunner, a: str, b: str) -> None:
        """Start with two paths, of which nothing is known yet."""
        self._view = view
        self._operations = Operations(runner)
        self._state = CompareState(a=a, b=b)
        self._measuring: Measuring | None = None
        self.screen = compose(self._state)

    @property
    def paths(self) -> tuple[str, str]:
        """The files that are compared."""
        return self._state.a, self._state.b

    def compare(self) -> None:
        """Read both files and compare them, again if they are compared already."""
        self.stop()
        self._release()
        state = self._state
        progress = Progress("reading")
        self._show(
            CompareState(
                a=state.a,
                b=state.b,
                only_differences=state.only_differences,
                query=state.query,
                progress=progress,
            )
        )
        work = partial(_compare, state.a, state.b, only_differences=state.only_differences, query=state.query)
        self._operations.run("compare", progress, work, self._on_compared, self._on_failed)

    def swap(self) -> None:
        """Compare the second with the first."""
        self._state = replace(self._state, a=self._state.b, b=self._state.a)
        self.compare()

    def stop(self) -> None:
        """Stop all that runs."""
        self._operations.keep()

    def dispose(self) -> None:
        """Stop, and release both files: the window is closed."""
        self.stop()
        self._release()
        self._state = CompareState(a="", b="")
        self.screen = compose(self._state)

    def _release(self) -> None:
        """Close what was opened to compare numbers."""
        measuring, self._measuring = self._measuring, None
        if measuring is not None:
            measuring.close()

    # --- the list -------------------------------------------------------------------------------------------

    def choose_kind(self, kind: str, *, chosen: bool) -> None:
        """Narrow the list to a kind of difference, or no longer."""
        kinds = self._state.kinds | {kind} if chosen else self._state.kinds - {kind}
        self._arrange(kinds, only_differences=self._state.only_differences)

    def show_equal(self, *, shown: bool) -> None:
        """List rows that are equal as well, or no longer."""
        self._arrange(self._state.kinds, only_differences=not shown)

    def search(self, query: str) -> None:
        """List only the rows that hold all of these words; none lists all."""
        if query != self._state.query:
            self._state = replace(self._state, query=query)
            self._arrange(self._state.kinds, only_differences=self._state.only_differences)

    def select(self, row: int | None) -> None:
        """Show what both files say of a row."""
        if self._state.compared is not None and row != self._state.selected:
            self._operations.stop("measure")
            self._show(replace(self._state, selected=row, measuring=None, measure_failure=""))

    def _arrange(self, kinds: frozenset[str], *, only_differences: bool) -> None:
        compared = self._state.compared
        if compared is None:
            return
        self._operations.stop("arrange")
        query = self._state.query
        self._state = replace(self._state, kinds=kinds, only_differences=only_differences)
        work = partial(arrange, compared, kinds, only_differences=only_differences, query=query)
        if len(compared.rows) <= _MANY:
            self._on_arranged(work())
            return
        self._show(self._state)
        self._operations.run("arrange", Progress(), lambda _: work(), self._on_arranged, self._on_failed)

    def _on_arranged(self, groups: tuple[RowGroup, ...]) -> None:
        selected = self._state.selected
        is_listed = any(selected in group.rows for group in groups)
        self._show(replace(self._state, groups=groups, selected=selected if is_listed else None))

    # --- numbers --------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Compare the numbers of the selected pair."""
        state, compared = self._state, self._state.compared
        if compared is None or state.selected is None or state.measuring is not None:
            return
        row = compared.rows[state.selected]
        pair = row.pair or row.arrays
        if pair is None or not can_measure(compared.diff, row):
            return
        progress = Progress("comparing numbers")
        self._show(replace(state, measuring=progress, measure_failure=""))
        if self._measuring is None:
            self._measuring = Measuring(compared.diff)
        work = partial(self._measuring.measure, pair)
        self._operations.run(
            "measure", progress, work, partial(self._on_measured, pair), self._on_not_measured
        )

    def stop_measuring(self) -> None:
        """Stop comparing numbers."""
        if self._state.measuring is not None:
            self._operations.stop("measure")
            self._show(replace(self._state, measuring=None))

    def _on_measured(self, pair: Pair | ArrayPair, numbers: Numbers) -> None:
        measured = (*self._state.measured, (pair, numbers))
        self._show(replace(self._state, measured=measured, measuring=None))

    def _on_not_measured(self, error: Exception) -> None:
        failure = "" if isinstance(error, CancelledError) else str(error)
        state = replace(self._state, measuring=None, measure_failure=failure)
        if isinstance(error, ChangedError):  # what was measured before is not true of these files either
            state = replace(state, measured=(), changed=failure)
        self._show(state)

    # --- text -----------------------------------------------------------------------------------------------

    def copy_text(self) -> None:
        """Put the whole comparison on the clipboard, as the command line prints it."""
        compared = self._state.compared
        if compared is not None:
            work = partial(format_diff, compared.diff)
            self._operations.run("text", Progress(), lambda _: work(), self._view.take_text, _ignore)

    # --- results --------------------------------------------------------------------------------------------

    def _on_compared(self, result: tuple[Compared, tuple[RowGroup, ...]]) -> None:
        compared, groups = result
        self._show(replace(self._state, compared=compared, groups=groups, progress=None))

    def _on_failed(self, error: Exception) -> None:
        failure = failure_page(error, _NOT_COMPARED)
        self._show(replace(self._state, compared=None, progress=None, failure=failure))

    def _show(self, state: CompareState) -> None:
        self._state = state
        self.screen = compose(state)
        self._view.show_screen(self.screen)


def _compare(
    a: str, b: str, progress: Progress, *, only_differences: bool, query: str
) -> tuple[Compared, tuple[RowGroup, ...]]:
    compared = prepare(compare_paths(a, b, Wish(), progress))
    return compared, arrange(compared, frozenset(), only_differences=only_differences, query=query)


def _ignore(error: Exception) -> None:
    """Take an error that there is nobody to tell."""
    del error

"""The session of a window that compares: one method for each thing that a user can do there."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from inspector.diff.compare import ChangedError, Measuring
from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.comparing.text import format_diff
from inspector.session.comparing.compose import (
    Compared,
    CompareState,
    arrange,
    compose,
    prepare,
    with_figures,
)
from inspector.session.comparing.listing import CompareColumn, Listing, Order
from inspector.session.comparing.screen import CompareScreen
from inspector.session.operations import Operations
from inspector.session.present.failure import failure_page
from inspector.session.view import TaskRunner

_NOT_COMPARED = "These files could not be compared"
_MANY = 20_000
"""Rows above which choosing among them takes longer than a window may stand still."""
_AT_ONCE_NBYTES = 2 << 30
"""Larger files are read for their numbers only when somebody asks for them."""


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
                order=state.order,
                progress=progress,
            )
        )
        measuring = self._measuring = Measuring(state.a, state.b)
        work = partial(_compare, self._state, measuring)
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
        """Close what was opened."""
        measuring, self._measuring = self._measuring, None
        if measuring is not None:
            measuring.close()

    # --- the list -------------------------------------------------------------------------------------------

    def choose_kind(self, kind: str, *, chosen: bool) -> None:
        """Narrow the list to a kind of difference, or no longer."""
        kinds = self._state.kinds | {kind} if chosen else self._state.kinds - {kind}
        self._arrange(replace(self._state, kinds=kinds))

    def show_equal(self, *, shown: bool) -> None:
        """List rows that are equal as well, or no longer."""
        self._arrange(replace(self._state, only_differences=not shown))

    def search(self, query: str) -> None:
        """List only the rows that hold all of these words; none lists all."""
        if query != self._state.query:
            self._arrange(replace(self._state, query=query))

    def sort(self, column: CompareColumn, *, descending: bool) -> None:
        """Sort the rows of each group by a column; by name they stand as in the file."""
        self._arrange(replace(self._state, order=Order(column, descending)))

    def select(self, row: int | None) -> None:
        """Show what both files say of a row."""
        if self._state.compared is not None and row != self._state.selected:
            self._show(replace(self._state, selected=row))

    def _arrange(self, state: CompareState) -> None:
        """List the rows by the choices of a state; the last list is shown as long as that takes."""
        self._state = state
        if state.compared is None:
            return
        self._operations.stop("arrange")
        if len(state.compared.rows) <= _MANY:
            self._on_arranged(arrange(state))
            return
        self._show(state)
        self._operations.run(
            "arrange", Progress(), lambda _: arrange(state), self._on_arranged, self._on_failed
        )

    def _on_arranged(self, listing: Listing) -> None:
        state = self._state
        is_listed = False
        if state.selected is not None and state.compared is not None:
            node = state.compared.shape.nodes[state.selected]
            above = listing.parents.get(node, state.compared.shape.parents[node])
            is_listed = node in listing.below.get(above, ())
        self._show(replace(state, listing=listing, selected=state.selected if is_listed else None))

    # --- numbers --------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Compare the numbers of all pairs that were not compared yet, those of the selected row first."""
        state, compared, measuring = self._state, self._state.compared, self._measuring
        if compared is None or measuring is None or state.measuring is not None:
            return
        if len(state.found) == len(compared.pairs):
            return
        progress = Progress("comparing numbers")
        self._show(replace(state, measuring=progress, measure_failure=""))
        work = partial(_measure, measuring, self._state, compared)
        self._operations.run("measure", progress, work, self._on_measured, self._on_not_measured)

    def stop_measuring(self) -> None:
        """Stop comparing numbers; what is known by then is shown."""
        state, measuring = self._state, self._measuring
        if state.measuring is None or measuring is None:
            return
        self._operations.stop("measure")
        self._show(replace(state, measuring=None))
        found = dict(measuring.found)
        work = partial(with_figures, self._state, found)
        self._operations.run(
            "measure", Progress(), lambda _: work(), self._on_measured, self._on_not_measured
        )

    def _on_measured(self, measured: CompareState) -> None:
        self._arrange(
            replace(
                self._state,
                found=measured.found,
                figures=measured.figures,
                most=measured.most,
                measuring=None,
            )
        )

    def _on_not_measured(self, error: Exception) -> None:
        failure = "" if isinstance(error, CancelledError) else str(error)
        state = replace(self._state, measuring=None, measure_failure=failure)
        if isinstance(error, ChangedError):  # what was measured before is not true of these files either
            state = replace(state, found={}, figures=(), most=(), changed=failure)
        self._arrange(state)

    # --- text -----------------------------------------------------------------------------------------------

    def copy_text(self) -> None:
        """Put the whole comparison on the clipboard, as the command line prints it."""
        compared = self._state.compared
        if compared is not None:
            work = partial(format_diff, compared.diff)
            self._operations.run("text", Progress(), lambda _: work(), self._view.take_text, _ignore)

    # --- results --------------------------------------------------------------------------------------------

    def _on_compared(self, compared: CompareState) -> None:
        self._show(replace(self._state, compared=compared.compared, listing=compared.listing, progress=None))
        if compared.compared is not None and compared.compared.nbytes <= _AT_ONCE_NBYTES:
            self.measure()

    def _on_failed(self, error: Exception) -> None:
        failure = failure_page(error, _NOT_COMPARED)
        self._show(replace(self._state, compared=None, progress=None, failure=failure))

    def _show(self, state: CompareState) -> None:
        self._state = state
        self.screen = compose(state)
        self._view.show_screen(self.screen)


def _compare(state: CompareState, measuring: Measuring, progress: Progress) -> CompareState:
    found = replace(state, compared=prepare(measuring.compare(progress)))
    return replace(found, listing=arrange(found))


def _measure(
    measuring: Measuring, state: CompareState, compared: Compared, progress: Progress
) -> CompareState:
    selected = None if state.selected is None else compared.rows[state.selected]
    first = () if selected is None else (selected.pair, selected.arrays)
    measuring.measure(sorted(compared.pairs, key=lambda pair: pair not in first), progress)
    progress.start("adding up")
    return with_figures(state, measuring.found)


def _ignore(error: Exception) -> None:
    """Take an error that there is nobody to tell."""
    del error

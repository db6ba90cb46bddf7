"""The only way from a state to the window: composed at once, or by a worker where that takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.session.frame import frame_of, tree_screen
from inspector.session.jobs.check import check_of
from inspector.session.log import with_log
from inspector.session.operations import Job, Operations, run
from inspector.session.present.failure import failure_page
from inspector.session.state import State
from inspector.session.targets import target_of
from inspector.session.values.kinds import scan_of

if TYPE_CHECKING:
    from inspector.session.document import Document
    from inspector.session.screen import Screen, SearchPage
    from inspector.session.view import TaskRunner, View

_MANY_TENSORS = 5000
_MANY_PICKED = 2000
_COMPOSE = "compose"
_SEARCH = "search"
_NOT_SHOWN = "This could not be worked out"


class Presenter:
    """Holds the state and the screen that shows it.

    Of a file that was just opened the tree is shown at once, and all else is composed by a worker; what is
    searched meanwhile is found beside that, since it needs names and no verdict. With many
    tensors, so is a change that affects much of the screen (a target, a map, a search); meanwhile the last
    screen stays, with the parts that cost little brought up to date. An exception is reported, and the last
    choices that could be shown are restored.
    """

    def __init__(self, view: View, runner: TaskRunner, state: State) -> None:
        """Start with a state that is not shown yet."""
        self.view = view
        self._good = state
        self._worked_out: object = None
        self._wanted: object = None
        self._together = 0
        self._judged: Document | None = None  # whose screen was composed before
        self._then: Callable[[], None] | None = None
        self._found = _Found()  # by a search in a file that is not judged yet
        self.runner = runner
        self.operations = Operations(runner)
        self.state = state
        self.screen: Screen = compose(state)

    def show(self, state: State) -> None:
        """Take a new state and show it; jobs that are no longer in it are cancelled."""
        if self._together:
            state = with_log(self.state, state)
            self._take(state)
            return
        composing, state = state.job(_COMPOSE), with_log(self.state, state.without_job(_COMPOSE))
        asked = _asked(state)
        if self._takes_long(state) and asked != self._worked_out:
            is_new = composing is None or asked != self._wanted
            if composing is not None and self._is_only_searched(state, asked):
                is_new = False  # what is found comes first, and what is worked out by then serves it
            self._compose_elsewhere(state, asked, None if is_new else composing)
            return
        self._take(state)
        self._judged, self._found = state.ready, _Found()
        if state.ready is None:
            self._then = None
        if not is_large(state):
            self._worked_out = self._wanted = None  # or a closed document would be held
        try:
            screen = compose(state)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown and the window goes on
            self._recover(error)
        else:
            self._put(state, screen)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Show one screen for all states that are taken within: that of the last one."""
        before, self._together = self.state, self._together + 1
        try:
            yield
        finally:
            self._together -= 1
            if not self._together and self.state is not before:
                self.show(self.state)

    def when_judged(self, act: Callable[[], None]) -> None:
        """Call something once, when all is shown of a file that was just opened, if it is still open then."""
        if self._judged is self.state.document:
            act()
        else:
            self._then = act

    def dispose(self) -> None:
        """Release everything and cancel all jobs; nothing is shown afterwards."""
        self.operations.keep()
        self._worked_out = self._wanted = self._judged = self._then = None
        self._found = _Found()
        self.state = self._good = State()
        self.screen = compose(self.state)

    def _take(self, state: State) -> None:
        """Take a state, and leave the work behind that is not in it."""
        self.operations.keep({job.progress for job in state.jobs})
        self.state = state

    def _takes_long(self, state: State) -> bool:
        """Return whether composing may hold the window up: of many tensors, and for the first time of any."""
        return state.ready is not None and (is_large(state) or state.ready is not self._judged)

    def _compose_elsewhere(self, state: State, asked: object, running: Job | None) -> None:
        """Show what costs little at once, and wait for the worker that has the rest, a new one if need be."""
        is_first = state.document is not self._judged
        composing = running or Job(kind=_COMPOSE, about=state.path, progress=Progress("updating"))
        self._take(state.with_job(composing))
        if is_first:
            self._search(state)
            self.screen = self._with_found(tree_screen(state))
            self.view.show_screen(self.screen)
        else:
            self.screen = brought_up_to_date(self.screen, state)
            self.view.show_screen(self.screen)
        if running is None:
            self._wanted = asked
            begin = partial(self._begin, composing, state, asked)
            self.view.when_shown(begin) if is_first else begin()

    def _is_only_searched(self, state: State, asked: object) -> bool:
        """Return whether nothing but the search differs from what is worked out of a new file."""
        if state.ready is None or state.ready is self._judged or not isinstance(self._wanted, tuple):
            return False
        return asked == (state.query, *self._wanted[1:])

    def _search(self, state: State) -> None:
        """Look for rows of a file that is not judged yet, if that is asked for and not being done."""
        asked = _Found(document=state.document, query=state.query)
        if asked.query == self._found.query and asked.document is self._found.document:
            return
        self._found = asked
        document, query = state.ready, asked.query
        self._take(self.state.without_job(_SEARCH))
        if document is not None and query:
            job = Job(kind=_SEARCH, about=state.path, progress=Progress("searching"))
            self.state = self.state.with_job(job)
            self.view.when_shown(partial(self._begin_search, job, document, query))

    def _begin_search(self, job: Job, document: Document, query: str) -> None:
        if self.state.has(job):
            run(self, job, partial(_find, document, query), self._on_found, self._on_not_found)

    def _on_found(self, found: _Found) -> None:
        self._found = found
        self.show(self.state)

    def _on_not_found(self, _error: Exception) -> None:
        """Leave it to the screen that is composed, which meets the same and says so."""

    def _with_found(self, screen: Screen) -> Screen:
        return replace(screen, matches=self._found.matches, search=self._found.page)

    def _begin(self, composing: Job, state: State, asked: object) -> None:
        if self.state.has(composing):  # or the file was closed before its tree was painted
            run(self, composing, partial(_work_out, state), partial(self._on_composed, asked), self._recover)

    def _on_composed(self, asked: object, _screen: Screen) -> None:
        """Compose the screen again, of parts that are cached by now, with what has changed meanwhile."""
        self._worked_out = asked
        self.show(self.state)
        if self._then is not None and self._judged is self.state.document:
            then, self._then = self._then, None
            then()

    def _put(self, state: State, screen: Screen) -> None:
        self.state = self._good = state
        self.screen = screen
        self.view.show_screen(screen)

    def _recover(self, error: Exception) -> None:
        """Take the last choices again that could be shown; without any, say that the file cannot be shown."""
        state, good = self.state, self._good
        page = failure_page(error, _NOT_SHOWN)
        if good.document is not None and good.document is state.document:
            state = _with_choices_of(good, state)
            try:
                screen = compose(state)
            except Exception:  # noqa: BLE001 - the first error is the one that is shown
                screen = None
            if screen is not None:
                self._put(state, screen)
                self.view.show_notice(page)
                return
        state = replace(state, phase="failed", document=None, failure=page)
        self._put(state, compose(state))


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What a search found, or looks for."""

    document: Document | None = None
    query: str = ""
    matches: tuple[int, ...] | None = None
    page: SearchPage | None = None


def _find(document: Document, query: str, _progress: Progress) -> _Found:
    """Search in a worker; what only a scan knows has no answer yet, as there was none."""
    from inspector.session.present import rows  # noqa: PLC0415 - after the tree

    matches, page = rows.matches_of(document, query, None), rows.search_page(document, query, None)
    return _Found(document=document, query=query, matches=matches, page=page)


def compose(state: State) -> Screen:
    """Return the screen that shows a state."""
    if state.ready is None:
        return frame_of(state)
    from inspector.session.present import compose as parts  # noqa: PLC0415 - after the tree

    return parts.compose(state)


def _work_out(state: State, _progress: Progress) -> Screen:
    """Compose a screen in the worker; of a large file, prepare there what the first click needs as well."""
    screen = compose(state)
    if state.ready is not None and is_large(state):
        from inspector.session.present.rows import prepare_rows  # noqa: PLC0415 - after the tree

        prepare_rows(state.ready)
    return screen


def brought_up_to_date(screen: Screen, state: State) -> Screen:
    """Return the screen of another state of the same file with all that is known at once of this one."""
    from inspector.session.present import compose as parts  # noqa: PLC0415 - imported by the worker before

    return parts.brought_up_to_date(screen, state)


def is_large(state: State) -> bool:
    """Return whether the file of a state has so many tensors that a worker composes its screens."""
    return state.ready is not None and len(state.ready.checkpoint.tensors) >= _MANY_TENSORS


def _asked(state: State) -> tuple[object, ...]:
    """Return what decides whether much has to be worked out anew; what is searched comes first."""
    return (
        state.query,
        state.document,
        target_of(state),
        state.chosen,
        state.branches,
        state.loading,
        state.error_text,
        state.script_name,
        state.map_by,
        state.flat,
        state.picked if len(state.picked) > _MANY_PICKED else (),
        state.style,
        check_of(state),
        scan_of(state),
        state.beside[1],
    )


def _with_choices_of(good: State, state: State) -> State:
    """Return a state with the choices of another; what runs, and what came of it, stays."""
    return replace(
        state,
        target=good.target,
        wanted=good.wanted,
        this_machine=good.this_machine,
        machines=good.machines,
        chosen=good.chosen,
        branches=good.branches,
        selected=good.selected,
        query=good.query,
        flat=good.flat,
        error_text=good.error_text,
        script_name=good.script_name,
        loading=good.loading,
        style=good.style,
        map_by=good.map_by,
        map_root=good.map_root,
    )

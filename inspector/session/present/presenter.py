"""The only way from a state to the window: composed at once, or by a worker where that takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.frame import Found, frame_of, tree_screen
from inspector.session.log import with_log
from inspector.session.operations import Job, Operations, run
from inspector.session.present.failure import failure_page
from inspector.session.state import SEARCH, State

if TYPE_CHECKING:
    from inspector.session.document import Document
    from inspector.session.screen import Screen
    from inspector.session.view import TaskRunner, View

_MANY_TENSORS = 5000
_COMPOSE = "compose"
_NOT_SHOWN = "This could not be worked out"
_CHOICES = (
    *("target", "wanted", "this_machine", "machines", "chosen", "branches", "selected", "query", "flat"),
    *("error_text", "script_name", "loading", "style", "looks_at_map", "map_by"),
    "map_root",
)


class Presenter:
    """Holds the state and the screen that shows it.

    Of a file that was just opened the tree is shown at once, and all else is composed by a worker; what is
    searched meanwhile is found beside that, since it needs names and no verdict. With many
    tensors, so is a change of which not all parts are remembered (a target, a map, a search); meanwhile the
    last screen stays, with the parts that cost little brought up to date. An exception is reported, and the
    last choices that could be shown are restored.
    """

    def __init__(self, view: View, runner: TaskRunner, state: State) -> None:
        """Start with a state that is not shown yet."""
        self.view = view
        self._good = state
        self._together = 0
        self._composed: Document | None = None  # of which a worker has composed a screen
        self._judged: Document | None = None  # whose screen was shown
        self._then: Callable[[], None] | None = None
        self.runner = runner
        self.operations = Operations(runner)
        self.state = state
        self.screen: Screen = compose(state)

    def show(self, state: State) -> None:
        """Take a new state and show it; jobs that are no longer in it are cancelled."""
        if self._together:
            self._take(with_log(self.state, state))
            return
        state = with_log(self.state, state)
        if self._takes_long(state):
            self._compose_elsewhere(state)
            return
        state = state.without_job(_COMPOSE).without_job(SEARCH)
        self._take(state)
        self._judged = state.ready
        if state.ready is None:
            self._composed = self._then = None
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
        self._composed = self._judged = self._then = None
        self.state = self._good = State()
        self.screen = compose(self.state)

    def _take(self, state: State) -> None:
        """Take a state, and leave the work behind that is not in it."""
        self.operations.keep({job.progress for job in state.jobs})
        self.state = state

    def _takes_long(self, state: State) -> bool:
        """Return whether composing may hold the window up: of many tensors, and for the first time of any."""
        document = state.ready
        if document is None or (document is self._judged and not is_large(state)):
            return False
        return document is not self._composed or not is_remembered(state)

    def _compose_elsewhere(self, state: State) -> None:
        """Show what costs little at once, and wait for the worker that has the rest.

        There is one at a time: what it does not know of a later state is worked out after it.
        """
        is_first, running = state.document is not self._judged, state.job(_COMPOSE)
        job = running or Job(kind=_COMPOSE, about=state.path, progress=Progress("updating"))
        self._take(state.with_job(job))
        if is_first:
            self._search()
        self.screen = tree_screen(self.state) if is_first else brought_up_to_date(self.screen, self.state)
        self.view.show_screen(self.screen)
        if running is None:
            begin = partial(self._begin, job, state)
            self.view.when_shown(begin) if is_first else begin()

    def _begin(self, job: Job, state: State) -> None:
        if self.state.has(job):  # or the file was closed before its tree was painted
            run(
                self, job, partial(_work_out, state), self._on_composed, partial(self._on_not_composed, state)
            )

    def _on_composed(self, _screen: Screen) -> None:
        """Compose the screen again, of parts that are remembered by now, with what has changed meanwhile."""
        self._composed = self.state.document
        self.show(self.state)
        if self._then is not None and self._judged is self.state.document:
            then, self._then = self._then, None
            then()

    def _on_not_composed(self, state: State, error: Exception) -> None:
        if _choices(state) == _choices(self.state):
            self._recover(error)
        else:
            self.show(self.state)

    def _search(self) -> None:
        """Look for rows of a file that is not judged yet, if that is asked for and not being done."""
        job, query = self.state.job(SEARCH), self.state.query
        if query == ("" if job is None else cast("Found", job.result).query):
            return
        state = self.state.without_job(SEARCH)
        if not query:
            self._take(state)
            return
        progress = Progress("searching")
        job = Job(kind=SEARCH, about=state.path, progress=progress, result=Found(query=query))
        self._take(state.with_job(job))
        self.view.when_shown(partial(self._begin_search, job, state))

    def _begin_search(self, job: Job, state: State) -> None:
        if self.state.has(job):
            run(self, job, partial(_find, state))

    def _put(self, state: State, screen: Screen) -> None:
        self.state = self._good = state
        self.screen = screen
        self.view.show_screen(screen)

    def _recover(self, error: Exception) -> None:
        """Take the last choices again that could be shown; without any, say that the file cannot be shown."""
        state, good = self.state, self._good
        page = failure_page(error, _NOT_SHOWN)
        if good.document is not None and good.document is state.document:
            state = replace(state, **_choices(good))
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


def compose(state: State) -> Screen:
    """Return the screen that shows a state."""
    if state.ready is None:
        return frame_of(state)
    from inspector.session.present import compose as parts  # noqa: PLC0415 - after the tree

    return parts.compose(state)


def is_remembered(state: State) -> bool:
    """Return whether composing a screen costs little, as all that costs more was worked out before."""
    from inspector.session.present import compose as parts  # noqa: PLC0415 - imported by the worker before

    return parts.is_remembered(state)


def brought_up_to_date(screen: Screen, state: State) -> Screen:
    """Return the screen of another state of the same file with all that is known at once of this one."""
    from inspector.session.present import compose as parts  # noqa: PLC0415 - as above

    return parts.brought_up_to_date(screen, state)


def _work_out(state: State, _progress: Progress) -> Screen:
    return compose(state)


def _find(state: State, _progress: Progress) -> Found:
    """Search in a worker."""
    from inspector.session.present.compose import ask  # noqa: PLC0415 - after the tree

    return Found(query=state.query, matches=ask(state, "matches"), page=ask(state, "search"))


def is_large(state: State) -> bool:
    """Return whether the file of a state has so many tensors that a worker composes its screens."""
    return state.ready is not None and len(state.ready.checkpoint.tensors) >= _MANY_TENSORS


def _choices(state: State) -> dict[str, Any]:
    """Return what was chosen, without what runs and what came of it."""
    return {name: getattr(state, name) for name in _CHOICES}

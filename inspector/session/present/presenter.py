"""The only way from a state to the window: composed at once, or by a worker where that takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.jobs.check import check_of
from inspector.session.jobs.job import Job
from inspector.session.jobs.running import cancel_left, run
from inspector.session.log import with_log
from inspector.session.present.compose import brought_up_to_date, compose
from inspector.session.present.failure import failure_page
from inspector.session.screen import Screen
from inspector.session.state import State
from inspector.session.targets import target_of
from inspector.session.values.showing import scan_of
from inspector.session.view import TaskRunner, View

_MANY_TENSORS = 5000
_MANY_PICKED = 2000
_COMPOSE = "compose"
_NOT_SHOWN = "This could not be worked out"


class Presenter:
    """Holds the state and the screen that shows it.

    With many tensors, a change that affects much of the screen (a target, a map, a search) is composed by a
    worker. Meanwhile the last screen stays, with the parts that cost little brought up to date. An exception
    is reported, and the last choices that could be shown are restored.
    """

    def __init__(self, view: View, runner: TaskRunner, state: State) -> None:
        """Start with a state that is not shown yet."""
        self.view = view
        self._good = state
        self._worked_out: object = None
        self._wanted: object = None
        self._together = 0
        self.runner = runner
        self.state = state
        self.screen: Screen = compose(state)

    def show(self, state: State) -> None:
        """Take a new state and show it; jobs that are no longer in it are cancelled."""
        if self._together:
            state = with_log(self.state, state)
            cancel_left(self.state, state)
            self.state = state
            return
        composing, state = state.job(_COMPOSE), with_log(self.state, state.without_job(_COMPOSE))
        asked = _asked(state)
        if is_large(state) and asked != self._worked_out:
            is_new = composing is None or asked != self._wanted
            self._compose_elsewhere(state, asked, None if is_new else composing)
            return
        cancel_left(self.state, state)
        self.state = state
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

    def note_worked_out(self, state: State) -> None:
        """Note that a worker has composed the screen of a state, so that its parts are cached."""
        self._worked_out = _asked(state)

    def dispose(self) -> None:
        """Release everything and cancel all jobs; nothing is shown afterwards."""
        cancel_left(self.state, State())
        self._worked_out = self._wanted = None
        self.state = self._good = State()
        self.screen = compose(self.state)

    def _compose_elsewhere(self, state: State, asked: object, running: Job | None) -> None:
        """Show what costs little at once, and wait for the worker that has the rest, a new one if need be."""
        composing = running or Job(kind=_COMPOSE, about=state.path, progress=Progress("updating"))
        old, self.state = self.state, state.with_job(composing)
        cancel_left(old, self.state)
        if self.screen.phase == "ready" and self._good.document is state.document:
            self.screen = brought_up_to_date(self.screen, state)
            self.view.show_screen(self.screen)
        if running is None:
            self._wanted = asked
            run(self, composing, lambda _: compose(state), partial(self._on_composed, asked), self._recover)

    def _on_composed(self, asked: object, _screen: Screen) -> None:
        """Compose the screen again, of parts that are cached by now, with what has changed meanwhile."""
        self._worked_out = asked
        self.show(self.state)

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


def is_large(state: State) -> bool:
    """Return whether the file of a state has so many tensors that a worker composes its screens."""
    return state.ready is not None and len(state.ready.checkpoint.tensors) >= _MANY_TENSORS


def _asked(state: State) -> object:
    """Return what decides whether much has to be worked out anew."""
    return (
        state.document,
        target_of(state),
        state.chosen,
        state.branches,
        state.loading,
        state.error_text,
        state.script_name,
        state.asks_beliefs,
        state.map_by,
        state.query,
        state.flat,
        state.picked if len(state.picked) > _MANY_PICKED else (),
        state.style,
        check_of(state),
        scan_of(state),
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

"""The one way from a state to the window: composed at once, or by a worker where that would take long."""

from __future__ import annotations

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.checker import check_page
from inspector.session.failing import failure_page
from inspector.session.present.compose import compose, target_of, targets_of
from inspector.session.screen import Screen, TaskRunner, View
from inspector.session.state import State

_MANY_TENSORS = 5000
_NOT_SHOWN = "This could not be worked out"


class Presenter:
    """Holds the state and the screen that shows it.

    With many tensors, a change that needs much anew (a target, a map, a search) is worked out by a worker.
    Meanwhile the last screen stays, with what is known at once brought up to date. An exception on the way is
    reported, and the last choices that could be shown are taken again.
    """

    def __init__(self, view: View, runner: TaskRunner, state: State) -> None:
        """Start with a state that is not shown yet."""
        self._view = view
        self._runner = runner
        self._good = state
        self._composing: Progress | None = None
        self._worked_out: object = None
        self.state = state
        self.screen: Screen = compose(state)

    def show(self, state: State) -> None:
        """Show a state."""
        self.state = state
        asked = _asked(state)
        if _is_large(state) and asked != self._worked_out:
            self._compose_elsewhere(state, asked)
            return
        self._composing = None
        if not _is_large(state):
            self._worked_out = None  # or a closed document would be held
        try:
            screen = compose(state)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown and the window goes on
            self._recover(error)
        else:
            self._put(state, screen)

    def note_worked_out(self, state: State) -> None:
        """Take note that a worker has composed the screen of a state, so that its parts are remembered."""
        self._worked_out = _asked(state)

    def dispose(self) -> None:
        """Let go of everything; nothing is shown afterwards."""
        self._composing = None
        self._worked_out = None
        self.state = self._good = State()
        self.screen = compose(self.state)

    def _compose_elsewhere(self, state: State, asked: object) -> None:
        composing = self._composing = Progress("thinking")
        if self.screen.phase == "ready" and self._good.document is state.document:
            self.screen = _brought_up_to_date(self.screen, state)
            self._view.show_screen(self.screen)
        self._runner.run(
            lambda _: compose(state),
            composing,
            lambda screen: self._on_composed(composing, asked, screen),
            lambda error: self._on_failed(composing, error),
        )

    def _on_composed(self, composing: Progress, asked: object, screen: Screen) -> None:
        """Show what a worker has worked out; a later question makes it void."""
        if self._composing is composing:
            self._composing = None
            self._worked_out = asked
            self._put(self.state, screen)

    def _on_failed(self, composing: Progress, error: Exception) -> None:
        if self._composing is composing:
            self._composing = None
            self._recover(error)

    def _put(self, state: State, screen: Screen) -> None:
        self.state = self._good = state
        self.screen = screen
        self._view.show_screen(screen)

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
                self._view.show_notice(page)
                return
        state = replace(state, phase="failed", document=None, failure=page, progress=None)
        self._put(state, compose(state))


def _is_large(state: State) -> bool:
    document = state.document if state.phase == "ready" else None
    return document is not None and len(document.checkpoint.tensors) >= _MANY_TENSORS


def _asked(state: State) -> object:
    """Return what decides whether much has to be worked out anew."""
    return (
        state.document,
        target_of(state),
        state.chosen,
        state.branches,
        state.loading,
        state.error_text,
        state.query,
        state.style,
        state.check.result,
    )


def _brought_up_to_date(screen: Screen, state: State) -> Screen:
    """Return a screen with all that is known of a state at once."""
    return replace(
        screen,
        targets=targets_of(state),
        target=state.target,
        query=state.query,
        error_text=state.error_text,
        check=check_page(state.check),
        export=state.export,
        recent=state.recent,
    )


def _with_choices_of(good: State, state: State) -> State:
    """Return a state with the choices of another; what runs, and what came of it, stays."""
    return replace(
        state,
        target=good.target,
        this_machine=good.this_machine,
        machines=good.machines,
        chosen=good.chosen,
        branches=good.branches,
        selected=good.selected,
        query=good.query,
        error_text=good.error_text,
        loading=good.loading,
        style=good.style,
    )

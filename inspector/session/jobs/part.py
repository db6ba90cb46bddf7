"""What the parts of the session share: the state of one window."""

from __future__ import annotations

from inspector.session.document import Document
from inspector.session.history import with_history
from inspector.session.present.presenter import Presenter
from inspector.session.screen import Screen
from inspector.session.state import State


class Part:
    """Some of the intentions of a session; `Session` has them all."""

    def __init__(self, desk: Presenter) -> None:
        """Work on the state of a presenter."""
        self._desk = desk

    @property
    def screen(self) -> Screen:
        """The screen that was shown last."""
        return self._desk.screen

    @property
    def _state(self) -> State:
        return self._desk.state

    @property
    def _ready(self) -> Document | None:
        return self._desk.state.ready

    def _show(self, state: State) -> None:
        self._desk.show(with_history(self._desk.state, state))

"""A session that does nothing and remembers what it was asked."""

from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import MagicMock, NonCallableMagicMock, _check_signature

from inspector.session.controller import Session


class AskedSession(NonCallableMagicMock):
    """What `create_autospec(Session, instance=True)` makes, but each method when it is first asked for.

    Most tests ask for two of more than a hundred, and to make all takes longer than to build the window.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"spec": Session, **options})

    def _get_child_mock(self, /, **options: Any) -> MagicMock:
        method = getattr(Session, options.get("_new_name") or "", None)
        if not inspect.isfunction(method):
            return MagicMock(**options)
        child = MagicMock(spec=method, _eat_self=True, **options)
        _check_signature(method, child, skipfirst=True)  # a call that the real one would not take is an error
        return child

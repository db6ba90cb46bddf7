"""Regular expressions that are compiled when they are first used.

Python compiles one in a quarter of a millisecond, and most commands use few of those that they import.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # type checkers take it for true, and `typing` takes long to import
if TYPE_CHECKING:
    from typing import Any, AnyStr


class _Later:
    def __init__(self, text: Any, flags: int) -> None:  # noqa: ANN401 - str or bytes
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        found = getattr(re.compile(*self._given), name)
        self.__dict__[name] = found  # found by itself from now on
        return found


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what has the methods of `re.compile(text, flags)`; functions of `re` do not take it."""
    return _Later(text, flags)  # type: ignore[return-value]  # as said

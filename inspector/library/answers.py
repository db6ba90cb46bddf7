"""What answers of the library have in common: the document of the command, and its text."""

from __future__ import annotations

from typing import Any, Protocol


class _Told(Protocol):
    @property
    def _document(self) -> dict[str, Any]: ...

    @property
    def _text(self) -> str: ...


def to_dict(self: _Told) -> dict[str, Any]:
    """Return the document that the command of the same name writes with `--json`."""
    return self._document


def text_of(self: _Told) -> str:
    """Return what the command of the same name prints."""
    return self._text

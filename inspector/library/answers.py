"""What answers of the library have in common: the document of the command, and its text.

Each record names these functions in its own body: records do not inherit.
"""

from __future__ import annotations

from typing import Any, Protocol

from inspector.units import cut_text

_MOST_CHARS = 200


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


def repr_of(self: _Told) -> str:
    """Return the first line of that in brackets: an answer in a list, or in a debugger."""
    first = cut_text(self._text.partition("\n")[0], _MOST_CHARS)
    return f"<{type(self).__name__}: {first}>"


class _Printer(Protocol):
    def text(self, obj: str, /) -> None: ...


def show_in_notebook(self: object, printer: _Printer, cycle: bool) -> None:  # noqa: FBT001 - as IPython calls it
    """Show an answer at the end of a cell as `print` does."""
    printer.text(repr(self) if cycle else str(self))

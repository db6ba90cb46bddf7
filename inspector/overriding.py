"""`override` for Python 3.11 too: `typing` has it from 3.12 on, and it is worth no package of its own."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true, and `typing` takes long to import
if TYPE_CHECKING:
    from typing_extensions import override as override  # noqa: PLC0414  # re-exported
else:

    def override(method):  # noqa: ANN001, ANN201  # seen by nobody who checks types
        """Mark a method that takes the place of one in a base class."""
        return method

"""Answers what its Python has: its version, and torch's, without importing it.

Answer: `version`, and `torch`, which is null where there is none.
"""

from __future__ import annotations

import platform
from importlib import metadata, util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def answer(_head: dict[str, Any], _blocks: Iterator[bytes]) -> Iterator[tuple[dict[str, str | None], bytes]]:
    """Look for torch where `import` would."""
    torch: str | None = None
    if util.find_spec("torch") is not None:
        try:
            torch = metadata.version("torch")
        except metadata.PackageNotFoundError:  # a build that was put on the path
            torch = ""
    yield {"version": platform.python_version(), "torch": torch}, b""

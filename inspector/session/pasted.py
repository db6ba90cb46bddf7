"""What a text or a file is that was pasted or dropped: an error message, or a script."""

from __future__ import annotations

import re

_MOST_CHARS = 200_000
_NOT_A_SCRIPT = ("Traceback (most recent call last)", "Error:", "Error(s) in loading")
_LOADS = re.compile(
    r"^[^#\n]*\b(?:torch\.load|load_state_dict|from_pretrained|load_from_checkpoint)\(", re.MULTILINE
)
_IMPORTS = re.compile(r"^\s*(?:import|from)\s+torch\b", re.MULTILINE)


def is_script_name(path: str) -> bool:
    """Return whether a file is a Python script or a notebook, by its name."""
    return path.lower().endswith((".py", ".ipynb"))


def may_be_script(text: str) -> bool:
    """Return whether a pasted text is a script rather than an error message."""
    text = text[:_MOST_CHARS]
    if any(mark in text for mark in _NOT_A_SCRIPT):
        return False
    if text.lstrip().startswith("{"):
        return '"cells"' in text and '"cell_type"' in text
    return _IMPORTS.search(text) is not None or _LOADS.search(text) is not None

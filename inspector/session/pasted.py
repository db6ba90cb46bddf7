"""What was pasted or dropped: an error message or a script, and which file it names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import PurePath

WHICH_FILE = "Which file does this script load?"
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


_NAMED = re.compile(
    r"""["']([^"'\n]{1,400}\.(?:pth?|pt2|ckpt|bin|safetensors|tar|pkl|pickle|joblib|gguf)(?:\.gz)?)["']"""
    r"""|\bload\(\s*["']([^"'\n]{1,400})["']"""
)
_FRAME = re.compile(r"""File ["']([^"'\n]{1,400}\.py)["'], line \d""")
_MOST_LOOKS = 64


def find_named(text: str, folders: Iterable[str], known: Iterable[str]) -> str:
    """Return the checkpoint that an error message or a script names, if there is one; else an empty text.

    Args:
        folders: Where relative paths may begin, besides the folders of the scripts in a traceback.
        known: Files that may be meant where only their name is said.
    """
    text = text[:_MOST_CHARS]
    named = dict.fromkeys(one or other for one, other in _NAMED.findall(text))
    scripts = [os.path.dirname(path) for path in reversed(_FRAME.findall(text))]  # noqa: PTH120 - a text
    places = _places([*named][::-1], [*dict.fromkeys([*scripts, *filter(None, folders)])], [*known])
    return next((place for place in islice(places, _MOST_LOOKS) if _is_there(place)), "")


def _places(named: list[str], folders: list[str], known: list[str]) -> Iterator[str]:
    for path in named:
        if os.path.isabs(path):  # noqa: PTH117 - as below
            yield path
        else:
            yield from (os.path.join(folder, path) for folder in folders if os.path.isabs(folder))  # noqa: PTH117, PTH118
        yield from (place for place in known if PurePath(place).name == PurePath(path).name)


def _is_there(path: str) -> bool:
    if path[:2].replace("\\", "/") == "//":  # another machine: to look there, Windows sends it who asks
        return False
    try:
        return os.path.isfile(path)  # noqa: PTH113 - a path that cannot be is no error here
    except ValueError:
        return False

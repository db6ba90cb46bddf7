"""Whether the objects of a stream can be written again so that they load as the same."""

from __future__ import annotations

import re
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING

from inspector.errors import DamagedError, ExportError
from inspector.pickles.machine import Stream

TOO_ODD = "the object is made in a way that cannot be written again"
_EXTENSION = re.compile(r"extension_-?\d+")
_PRESENT = 3
"""From this protocol on, Python takes names for what they are; below, some are those of Python 2."""


def refuse_odd(stream: Stream) -> None:
    """Refuse to write objects again that readers understand differently: which would they be?"""
    if stream.oddities:
        raise DamagedError(
            "the objects are written in a way that programs read differently, so they are not written again",
            where=str(stream.oddities[0]),
            remedy="do not load the file: no honest program writes that",
        )


def refuse_name(module: str, name: str) -> None:
    """Refuse a name to import that would be another one in a copy."""
    both = f"{module}.{name}"
    if "\n" in both:
        raise ExportError(TOO_ODD, where="a name of two lines")
    if "\\" in both or not _is_unicode(both):
        raise ExportError(TOO_ODD, where=f"a name that is no text: {both!a}")
    if module == "copyreg" and _EXTENSION.fullmatch(name):
        raise ExportError(
            "only the program that wrote the file knows what an extension code stands for", where=name
        )


def names_are_present(stream: Stream) -> bool:
    """Return whether a name of the stream would be taken for one of Python 2 below protocol 3."""
    return stream.protocol >= _PRESENT and any(
        node.module in IMPORT_MAPPING or (node.module, node.name.partition(".")[0]) in NAME_MAPPING
        for node in stream.globals
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

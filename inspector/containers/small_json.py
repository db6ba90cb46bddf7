"""JSON that lies beside weights: indexes and configurations, read within bounds.

`json` builds whatever a text says: a few megabytes of brackets become gigabytes, and nesting has no end.
What it will build is counted before.
"""

from __future__ import annotations

import json

from inspector.containers.source import Source
from inspector.errors import DamagedError, TooLargeError
from inspector.limits import Limits
from inspector.pickles.values import Dict, Value

_MOST_DEPTH = 100
_MARKS = (b"[", b"{", b",")
_FETCH = "fetch or copy the file again"


class Members(list[tuple[str, object]]):
    """The members of an object in order, those of one name included."""

    def first(self, name: str) -> object:
        """Return the first member of a name; None without one."""
        return next((value for key, value in self if key == name), None)


def value_of(found: object, depth: int = 0) -> Value:
    """Return JSON as inert values."""
    if depth > _MOST_DEPTH:
        raise TooLargeError("the values of JSON are nested too deeply")
    if isinstance(found, Members):
        return Dict([(key, value_of(value, depth + 1)) for key, value in found])
    if isinstance(found, list):
        return [value_of(item, depth + 1) for item in found]
    return found if isinstance(found, str | int | float) else None


def read_json(source: Source, limits: Limits) -> Members:
    """Return the object that a file of JSON is."""
    data = source.read(0, source.nbytes) if source.nbytes <= limits.directory_nbytes else b""
    if (not data and source.nbytes) or sum(map(data.count, _MARKS)) > limits.values:
        raise TooLargeError("the file of JSON holds more than is read of one", where=source.path)
    try:
        found = json.loads(data, object_pairs_hook=Members)
    except (ValueError, RecursionError) as error:
        raise DamagedError("the file is no valid JSON", where=source.path, remedy=_FETCH) from error
    if not isinstance(found, Members):
        raise DamagedError("the file of JSON holds no object", where=source.path, remedy=_FETCH)
    return found

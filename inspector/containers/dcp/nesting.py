"""Flat names put where their keys lead, as torch's `set_element` does it for `dcp_to_torch_save`."""

from __future__ import annotations

from itertools import pairwise

from inspector.containers.dcp.metadata import PathKeys
from inspector.pickles.values import Dict, Value

_MOST_MORE = 1024


class Nesting:
    """A state dict that is filled one name after the other.

    Attributes:
        root: The state dict.
    """

    def __init__(self, entries: int) -> None:
        """Prepare for so many entries; a list of more items than that and some is nobody's."""
        self.root = Dict([])
        self._most = entries + _MOST_MORE
        self._inside: dict[int, dict[str, Value]] = {id(self.root): {}}

    def put(self, name: str, path: PathKeys, value: Value) -> None:
        """Put a value where its keys lead; under its flat name where they lead nowhere."""
        if not self._put(path, value):
            self._put((name,), value, anew=True)

    def _put(self, path: PathKeys, value: Value, *, anew: bool = False) -> bool:
        at: Value = self.root
        for key, following in pairwise(path):
            found = self._find(at, key)
            if found is None:
                found = self._made(following)
                if not self._set(at, key, found):
                    return False
            at = found
            if not isinstance(at, Dict | list) or id(at) not in self._inside:
                return False
        last = path[-1]
        if self._find(at, last) is not None and not anew:
            return False
        return self._set(at, last, value)

    def _made(self, following: str | int) -> Dict | list[Value]:
        made: Dict | list[Value] = Dict([]) if isinstance(following, str) else []
        self._inside[id(made)] = {}
        return made

    def _find(self, at: Value, key: str | int) -> Value:
        if isinstance(at, list):
            return at[key] if isinstance(key, int) and key < len(at) else None
        return self._inside[id(at)].get(key) if isinstance(key, str) else None

    def _set(self, at: Value, key: str | int, value: Value) -> bool:
        if isinstance(at, list):
            if not isinstance(key, int) or key > self._most:
                return False
            at.extend([None] * (key + 1 - len(at)))
            at[key] = value
            return True
        if not isinstance(at, Dict) or not isinstance(key, str):
            return False
        self._inside[id(at)][key] = value
        at.pairs.append((key, value))
        return True

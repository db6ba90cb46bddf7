"""Parts of a screen, each worked out once for as long as all that it comes from stays the same.

A part is a function whose arguments name what it needs, as those of a test name fixtures: other parts,
inputs, or fields of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from inspector.session.document import Document
from inspector.session.state import State

Table = Mapping[str, Callable[..., object]]


class Parts:
    """The tables of a screen.

    Attributes:
        inputs: What is read from a state otherwise than as its field of that name.
        at_once: What costs little, and is made anew for every screen.
        remembered: What is made once for the same inputs, see `Document.recall`.
    """

    def __init__(self, inputs: Table, at_once: Table, remembered: Table) -> None:
        self.inputs, self.at_once, self.remembered = inputs, at_once, remembered
        self.make = {**at_once, **remembered}
        self._sources: dict[str, frozenset[str]] = {}

    def needs_of(self, name: str) -> tuple[str, ...]:
        """Return what a part needs; nothing of what is no part."""
        if name not in self.make:
            return ()
        code = getattr(self.make[name], "__code__")  # noqa: B009 - of a function, which a callable need not be
        return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    def sources_of(self, name: str) -> frozenset[str]:
        """Return the inputs that a part comes from, by whatever way."""
        if name not in self._sources:
            found = {source for need in self.needs_of(name) for source in self.sources_of(need)}
            self._sources[name] = frozenset(found or {name})
        return self._sources[name]


class Answers:
    """The parts of one state with an open document, worked out when they are asked for."""

    def __init__(self, parts: Parts, state: State) -> None:
        self._parts, self._state, self._document = parts, state, cast("Document", state.ready)
        self._found: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever the part is
        """Return a part, an input, or a field of the state."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def knows(self, name: str) -> bool:
        """Return whether nothing has to be worked out that is remembered."""
        if name in self._parts.remembered:
            return self._key(name) in self._document.remembered.get(name, {})
        return all(map(self.knows, self._parts.needs_of(name)))

    def _find(self, name: str) -> object:
        parts = self._parts
        if name in parts.remembered:
            return self._document.recall(name, self._key(name), partial(self._made, name))
        if name in parts.at_once:
            return self._made(name)
        return parts.inputs[name](self._state) if name in parts.inputs else getattr(self._state, name)

    def _made(self, name: str) -> object:
        return self._parts.make[name](**{need: self[need] for need in self._parts.needs_of(name)})

    def _key(self, name: str) -> tuple[object, ...]:
        return tuple(self[source] for source in sorted(self._parts.sources_of(name) - {"document"}))

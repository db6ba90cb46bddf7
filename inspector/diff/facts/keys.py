"""Keys on the way to two rows of one path: None is no key "None", though both are shown so."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.model.checkpoint import Key, OddKey


def are_same_ways(one: Sequence[Key], other: Sequence[Key]) -> bool:
    """Return whether two ways have the same keys, of the same types."""
    return one is other or (one == other and list(map(type, one)) == list(map(type, other)))


def other_keys(one: Sequence[Key], other: Sequence[Key]) -> tuple[str, str]:
    """Return the first keys that two ways differ in, as Python writes them; odd ones by their short text."""
    a, b = next(pair for pair in zip(one, other, strict=False) if not are_same_ways(pair[:1], pair[1:]))
    return _text(a), _text(b)


def _text(key: Key) -> str:
    return str(key) if isinstance(key, OddKey) else repr(key)

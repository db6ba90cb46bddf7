"""Foreign text as code, in the only forms in which it may enter a snippet."""

from __future__ import annotations

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING  # plain tables of names, no unpickler
from keyword import iskeyword

from inspector.model.checkpoint import Key, OddKey


def literal(text: str) -> str:
    """Return a text as a literal of pure ASCII, in double quotes as formatters want it."""
    quoted = ascii(text)
    body = quoted[1:-1]
    return quoted if '"' in body or "'" in body else f'"{body}"'


def lookup(variable: str, keys: tuple[Key, ...]) -> str:
    """Return the expression that reaches a place: `checkpoint["optimizer_states"][0]`."""
    return variable + "".join(f"[{key if isinstance(key, int) else literal(key)}]" for key in keys)


def is_reachable(keys: tuple[Key, ...]) -> bool:
    """Return whether `lookup` reaches a place: attributes and odd keys cannot be looked up."""
    return not any(isinstance(key, OddKey) or (isinstance(key, str) and key.startswith(".")) for key in keys)


def split_global(name: str) -> tuple[str, str] | None:
    """Split the dotted name of a global into module and name, both fit for code, or return None.

    Names of Python 2 become those of Python 3, as in torch's unpickler.
    """
    module, _, last = name.rpartition(".")
    module, last = NAME_MAPPING.get((module, last), (IMPORT_MAPPING.get(module, module), last))
    parts = [*module.split("."), last]
    return (module, last) if all(_is_plain(part) for part in parts) else None


def _is_plain(part: str) -> bool:
    # Python reads identifiers in Unicode's NFKC form: one that is not ASCII might become another name.
    return part.isascii() and part.isidentifier() and not iskeyword(part)

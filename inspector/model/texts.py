"""Values as short plain text, without calling, hashing or recursing into anything."""

from __future__ import annotations

from inspector.model.checkpoint import Key
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value
from inspector.units import cut_text, escape_text, format_count, format_nbytes

MOST_CHARS = 200
_MOST_ITEMS = 24
_MOST_BITS = 512
# Python hashes integers modulo 2**61 - 1, so that smaller ones cannot be made to collide in a dictionary.
_MOST_KEY_BITS = 61
_BLOB_TYPES = {"text": "str", "bytes": "bytes", "int": "int", "buffer": "buffer"}


def type_of(value: Value) -> str:
    """Name a value's type: Python's for plain values, the dotted class for objects."""
    if isinstance(value, Blob):
        return _BLOB_TYPES[value.kind]
    if isinstance(value, Call):
        return escape_text(cut_text(class_of(value) or "object", MOST_CHARS))
    if isinstance(value, Dict):
        return "dict"
    if isinstance(value, Set):
        return "frozenset" if value.frozen else "set"
    if isinstance(value, Global):
        return "global"
    return "persistent id" if isinstance(value, PersistentId) else type(value).__name__


def class_of(call: Call) -> str | None:
    """Give the dotted name of what a call makes, or None if it is made up while loading.

    The class of an `nn.Module` in a legacy file is a persistent id that carries its source; and what
    `copyreg` and NumPy rebuild is named by an argument.
    """
    maker: Value = call.func
    args = call.args if isinstance(call.args, tuple) else ()
    if isinstance(maker, Global):
        dotted = maker.dotted
        if dotted == "_codecs.encode":
            return "bytes"
        if dotted.startswith(("copyreg.", "copy_reg.")) or dotted.endswith("multiarray._reconstruct"):
            maker = args[0] if args else maker
    if isinstance(maker, PersistentId) and isinstance(maker.pid, tuple) and len(maker.pid) > 1:
        maker = maker.pid[1]
    return maker.dotted if isinstance(maker, Global) else None


def text_of(value: Value) -> str:
    """Give a value in at most 200 characters of plain text."""
    return cut_text(_text(value, nested=False), MOST_CHARS)


def _text(value: Value, *, nested: bool) -> str:
    if isinstance(value, str):
        text = escape_text(cut_text(value, MOST_CHARS + 1))
        return f'"{text}"' if nested else text
    if isinstance(value, bool | float) or value is None:
        return repr(value)
    if isinstance(value, int):
        return int_text(value)
    if isinstance(value, bytes):
        return f"{format_nbytes(len(value))}: {value[:MOST_CHARS].hex(' ')}" if value else "0 B"
    if isinstance(value, list | tuple):
        return _sequence_text(value, nested=nested)
    return _node_text(value, nested=nested)


def int_text(value: int) -> str:
    """Give an integer in digits, or in hexadecimal and by its size when it is enormous."""
    if value.bit_length() <= _MOST_BITS:
        return str(value)
    return f"{value.bit_length():,}-bit integer {hex(value)[:40]}\u2026"


def _sequence_text(value: list[Value] | tuple[Value, ...], *, nested: bool) -> str:
    opening, closing = "[]" if isinstance(value, list) else "()"
    if nested and value:
        return f"{opening}\u2026{closing}"
    shown = ", ".join(_text(item, nested=True) for item in value[:_MOST_ITEMS])
    more = ", \u2026" if len(value) > _MOST_ITEMS else ""
    return f"{opening}{shown}{more}{closing}"


def _node_text(value: Dict | Set | Global | Call | PersistentId | Blob, *, nested: bool) -> str:
    if isinstance(value, Dict):
        return format_count(len(value.pairs), "item") if value.pairs else "{}"
    if isinstance(value, Set):
        items = ["\u2026"] if nested else [_text(item, nested=True) for item in value.items[:_MOST_ITEMS]]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, Global):
        return escape_text(cut_text(value.dotted, MOST_CHARS))
    if isinstance(value, Call):
        return f"{cut_text(type_of(value), 80)}(\u2026)" if nested else _call_text(value)
    if isinstance(value, Blob):
        return f"{format_nbytes(value.nbytes)}, not shown"
    return "persistent id"


def _call_text(value: Call) -> str:
    args = value.args if isinstance(value.args, tuple) else ()
    shown = ", ".join(_text(item, nested=True) for item in args[:_MOST_ITEMS])
    return f"{cut_text(type_of(value), 80)}({shown})"


def key_of(value: Value) -> Key:
    """Give a mapping key as a path step: strings and ints as they are, others as short text."""
    if type(value) is str:
        return value
    if type(value) is int and value.bit_length() <= _MOST_KEY_BITS:
        return value
    return text_of(value)


def step_text(key: Key) -> str:
    """Escape one step of a path as in JSON Pointer (RFC 6901), invisible characters too."""
    text = key if isinstance(key, str) else str(key)
    if "~" in text or "/" in text:
        text = text.replace("~", "~0").replace("/", "~1")
    return escape_text(text)

"""Values as short plain text, without calling, hashing or recursing into anything."""

from __future__ import annotations

import re
from functools import lru_cache

from inspector.model.checkpoint import Key, OddKey
from inspector.model.tensors.numpy_arrays import (
    FROM_BUFFERS,
    RECONSTRUCTS,
    Bytes,
    describe_array,
    describe_bytes,
    describe_scalar,
)
from inspector.pickles.values import (
    BLOB_TYPES,
    Blob,
    ByteArray,
    ByteString,
    Call,
    Dict,
    Global,
    PersistentId,
    Set,
    StoredTensor,
    Value,
    noun_for,
)
from inspector.units import cut_text, escape_text, format_count, format_nbytes, format_shape

# Keys of one container that read alike, each with what tells it apart in a path.


class TwinText(str):
    """A key that reads like another one beside it, as 1 and "1" do, and how many such stand before it."""

    __slots__ = ("turn",)
    turn: int


class TwinOddKey(OddKey):
    """The same of a key that is shown by its short text."""

    __slots__ = ("turn",)
    turn: int


class TwinNumber(int):
    """The same of a number."""

    turn: int


Twin = TwinText | TwinOddKey | TwinNumber


def twin_of(key: Key, turn: int) -> Twin:
    """Return a key that is equal to `key`, and whose step in a path is told apart by `turn`."""
    kind: type[Twin] = (
        TwinNumber if isinstance(key, int) else TwinOddKey if isinstance(key, OddKey) else TwinText
    )
    twin = kind(key)
    twin.turn = turn
    return twin


MOST_CHARS = 200
_MOST_ITEMS = 24
_MOST_BITS = 512
# Python hashes integers modulo 2**61 - 1, so that smaller ones cannot be made to collide in a dictionary.
MOST_KEY_BITS = 60
MOST_STEP_CHARS = 512
_MARK = "~#"
_DIGEST_NBYTES = 16  # nobody finds two names with the same digest, which 8 bytes would not promise
_KEPT = (MOST_STEP_CHARS - len(_MARK) - 2 * _DIGEST_NBYTES - 2) // 2
_TWINS = (TwinText, TwinOddKey, TwinNumber)
_MOST_LABEL_CHARS = 100
_OWN_TYPES: dict[type, str] = {
    ByteString: "str",
    ByteArray: "bytearray",
    PersistentId: "persistent id",
    StoredTensor: "tensor",
}
_MOST_NAME = 300
_LIKE_ESCAPE = re.compile(r"\\(?=u[0-9a-f]{4}|U[0-9a-f]{8})")
# Shown as what they hold: {1, 2} for set([1, 2]).
_SEQUENCES = {"set": "{}", "frozenset": "{}", "list": "[]", "tuple": "()", "torch.Size": "()"}


# --- types --------------------------------------------------------------------------------------------------


def type_of(value: Value) -> str:
    """Name a value's type: Python's for plain values, the dotted class for objects."""
    if isinstance(value, Blob):
        return BLOB_TYPES[value.kind]
    if isinstance(value, Call):
        return _type_of_call(value)
    if isinstance(value, Dict):
        return "dict"
    if isinstance(value, Set):
        return "frozenset" if value.frozen else "set"
    if isinstance(value, Global):
        return "global"
    kind = type(value)
    return _OWN_TYPES.get(kind, kind.__name__)


def _type_of_call(call: Call) -> str:
    scalar = describe_scalar(call)
    if scalar is not None:
        return f"numpy.{scalar.dtype}"
    name = cut_text(class_of(call) or "object", _MOST_NAME)
    for prefix in ("builtins.", "__builtin__."):
        name = name.removeprefix(prefix)
    return escape_text(cut_text(name, MOST_CHARS))


def class_of(call: Call) -> str | None:
    """Return the dotted name of what a call makes, or None if it is made up while loading.

    The class of an `nn.Module` in a legacy file is a persistent id that carries its source; and what
    `copyreg` and NumPy rebuild is named by an argument.
    """
    maker: Value = call.func
    if isinstance(maker, Global):
        name = maker.present
        if name == "_codecs.encode":
            return "bytes"
        if name in FROM_BUFFERS:
            return "numpy.ndarray"
        if name.startswith("copyreg.") or name in RECONSTRUCTS:
            maker = call.args[0] if isinstance(call.args, tuple) and call.args else maker
    if isinstance(maker, PersistentId) and isinstance(maker.pid, tuple) and len(maker.pid) > 1:
        maker = maker.pid[1]
    return maker.dotted if isinstance(maker, Global) else None


# --- values -------------------------------------------------------------------------------------------------


def text_of(value: Value) -> str:
    """Return a value in at most 200 characters of plain text."""
    return cut_text(_text(value, nested=False), MOST_CHARS)


def _text(value: Value, *, nested: bool) -> str:
    if isinstance(value, str):
        text = str(escape_text(cut_text(value, MOST_CHARS + 1)))
        return f'"{text}"' if nested else text
    if isinstance(value, bool | float) or value is None:
        return repr(value)
    if isinstance(value, int):
        return int_text(value)
    if isinstance(value, bytes):
        return _bytes_text(Bytes(len(value), value[:MOST_CHARS]))
    if isinstance(value, list | tuple):
        return _sequence_text("[]" if isinstance(value, list) else "()", value, nested=nested)
    return _node_text(value, nested=nested)


def int_text(value: int) -> str:
    """Return an integer in digits, or in hexadecimal and by its size when it is enormous."""
    if value.bit_length() <= _MOST_BITS:
        return str(value)
    sign, head = "-" if value < 0 else "", abs(value) >> (value.bit_length() - 128)
    return f"{value.bit_length():,}-bit integer {sign}{head:#x}\u2026"


def _bytes_text(value: Bytes) -> str:
    return f"{format_nbytes(value.nbytes)}: {value.head.hex(' ')}" if value.nbytes else "0 B"


def _sequence_text(brackets: str, items: list[Value] | tuple[Value, ...], *, nested: bool) -> str:
    opening, closing = brackets[0], brackets[1]
    if nested and items:
        return f"{opening}\u2026{closing}"
    more = ", \u2026" if len(items) > _MOST_ITEMS else ""
    return f"{opening}{_listed(items)}{more}{closing}"


def _listed(items: list[Value] | tuple[Value, ...]) -> str:
    """Return the first items, and no more than what is shown anyway: the rest would be written in vain."""
    shown: list[str] = []
    room = MOST_CHARS
    for item in items[:_MOST_ITEMS]:
        if room < 0:
            break
        shown.append(_text(item, nested=True))
        room -= len(shown[-1])
    return ", ".join(shown)


def _node_text(
    value: Dict | Set | Global | Call | PersistentId | Blob | StoredTensor, *, nested: bool
) -> str:
    if isinstance(value, Dict):
        return format_count(len(value.pairs), "item") if value.pairs else "{}"
    if isinstance(value, Set):
        return _sequence_text("{}", value.items, nested=nested)
    if isinstance(value, Global):
        return escape_text(cut_text(value.dotted, MOST_CHARS))
    if isinstance(value, Call):
        return _call_text(value, nested=nested)
    if isinstance(value, Blob):
        return f"{format_nbytes(value.nbytes)}, not shown"
    return _OWN_TYPES[type(value)]


def _call_text(call: Call, *, nested: bool) -> str:
    special = _special_text(call)
    if special is not None:
        return special
    name = cut_text(type_of(call), 80)
    if nested:
        return f"{name}(\u2026)"
    args = call.args if isinstance(call.args, tuple) else ()
    if name in _SEQUENCES and len(args) == 1 and isinstance(args[0], list | tuple):
        return _sequence_text(_SEQUENCES[name], args[0], nested=False)
    return f"{name}({_listed(args)})"


def format_call(call: Call) -> str:
    """Return a call as it would be made, with its arguments as far as they fit; see `text_of`."""
    func = call.func
    name = func.dotted if isinstance(func, Global) else f"<{noun_for(func)}>"
    args = call.args if isinstance(call.args, tuple) else (call.args,)
    return cut_text(f"{escape_text(cut_text(name, _MOST_LABEL_CHARS))}({_listed(args)})", MOST_CHARS)


def _special_text(call: Call) -> str | None:
    """Return the text of what has a shorter one than its call: bytes, NumPy's arrays and numbers."""
    data = describe_bytes(call)
    if data is not None:
        return _bytes_text(data)
    array = describe_array(call)
    if array is not None:
        return f"{array.dtype} {format_shape(array.shape)}"
    scalar = describe_scalar(call)
    if scalar is not None:
        return scalar.dtype if scalar.number is None else str(scalar.number)
    args = call.args
    if type_of(call) == "complex" and isinstance(args, tuple) and len(args) == 2:
        real, imaginary = args
        if isinstance(real, float) and isinstance(imaginary, float):
            return str(complex(real, imaginary))
    return None


# --- places -------------------------------------------------------------------------------------------------


def path_key(value: Value) -> Key:
    """Return a mapping key as a path step: strings and ints as they are, others as short text."""
    if type(value) is str:
        return value
    if type(value) is int and value.bit_length() <= MOST_KEY_BITS:
        return value
    return str(value) if type(value) is ByteString else OddKey(text_of(value))


def step_text(key: Key) -> str:
    r"""Return one step of a path, so that no two different keys beside one another have the same.

    Escaped as in JSON Pointer (RFC 6901), with invisible characters as `\uXXXX`, and a backslash as well
    where it would read as one of those. Of huge keys the middle is left out, with a digest of the whole
    in its place. `~#` stands in no other step: pointers escape a `~` as `~0`.
    """
    step = _escaped(key) if isinstance(key, str) else str(int(key))
    return f"{step}{_MARK}{key.turn}" if isinstance(key, _TWINS) else step


def _escaped(key: str) -> str:
    if len(key) > MOST_STEP_CHARS:
        return f"{_escaped(key[:_KEPT])}{_left_out(key)}{_escaped(key[-_KEPT:])}"
    if "~" in key or "/" in key:
        key = key.replace("~", "~0").replace("/", "~1")
    if "\\" in key:
        key = _LIKE_ESCAPE.sub(r"\\u005c", key)
    return str(key) if key.isascii() and key.isprintable() else escape_text(key)


def _left_out(text: str) -> str:
    """Return what stands for the middle of a huge text: a digest of all of it."""
    from hashlib import blake2b  # noqa: PLC0415 - no genuine name is so long

    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_NBYTES).hexdigest()
    return f"\u2026{_MARK}{digest}\u2026"


def is_same_step(one: Key, other: Key) -> bool:
    """Return whether two keys of one container are the same step of a path."""
    return type(one) is type(other) and one == other and getattr(one, "turn", 0) == getattr(other, "turn", 0)


@lru_cache(maxsize=256)
def device_label(location: str) -> str:
    """Return a location tag as it is shown: as in the file, unless it is long or has invisible characters."""
    return str(escape_text(cut_text(location, _MOST_LABEL_CHARS)))


def cut_name(name: str) -> str:
    """Return an imported name or a parameter's as it is shown; no genuine one is cut."""
    if len(name) > MOST_STEP_CHARS:
        name = f"{name[:_KEPT]}{_left_out(name)}{name[-_KEPT:]}"
    return escape_text(name)

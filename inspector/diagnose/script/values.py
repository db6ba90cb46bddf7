"""What expressions of a script come to, as far as that is known. Constants stand for themselves."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from inspector.diagnose.script.read import Script
from inspector.model.checkpoint import Key
from inspector.records import dataclass

Value = object
HOLE = "\0"
"""Stands in a text for a part that is not known: `cuda:` with a rank behind it."""
_MOST_SIZE = 1000
"""Of a sequence, the items of its items counted with it."""
_MOST_TEXT = 4000
_MOST_NUMBER = 1 << 60


@dataclass(frozen=True, slots=True)
class Unknown:
    """What is not known, and where it comes from."""

    why: str = ""


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Device:
    """A `torch.device`."""

    text: str


@dataclass(frozen=True, slots=True)
class External:
    """Something of a package or module that is not read."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the script with the scope it was made in, and the object that it is a method of."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: int
    script: Script
    owner: Value = None


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class of the script; its body is the scope `id`."""

    node: ast.ClassDef
    id: int
    script: Script
    bases: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Ref:
    """An object: `model`, `optimizer`, `instance`, `dict`, `parser`, `options`, `module`, or any `object`."""

    id: int
    kind: str


@dataclass(frozen=True, slots=True)
class Method:
    """An attribute of something, which is called next."""

    owner: Value
    name: str


@dataclass(frozen=True, slots=True)
class Seq:
    """A list, tuple or set."""

    items: tuple[Value, ...]
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The items of a dictionary, and whether these are all."""

    items: dict[Value, Value]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class File:
    """What stands at some keys of what a load returned."""

    load: int
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameters:
    """`model.parameters()`, or some of them."""

    model: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """What `load_state_dict` returns."""


def seq(items: list[Value]) -> Value:
    """Return a sequence; unknown where it would be too large, as what doubles again and again soon is."""
    size = 1 + sum(item.size if isinstance(item, Seq) else 1 for item in items)
    return UNKNOWN if size > _MOST_SIZE else Seq(tuple(items), size)


def text(value: Value) -> str:
    """Return what `str` gives of a value, with a hole where that is not known."""
    if isinstance(value, Device):
        return value.text
    return str(value) if isinstance(value, str | bool | int | float) else HOLE


def truth(value: Value) -> bool | None:
    """Return whether a value is true; None where that is not known."""
    if value is None or isinstance(value, str | bool | int | float):
        return None if value == HOLE else bool(value)
    if isinstance(value, Seq):
        return bool(value.items)
    is_some = isinstance(value, Ref) and value.kind not in {"dict", "object"}
    return True if is_some or isinstance(value, Device | Function | Class) else None


# --- what Python itself works out ---------------------------------------------------------------------------

_OPERATORS: Mapping[type, Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, two: one in two,
    ast.NotIn: lambda one, two: one not in two,
}
_OF_TEXTS = frozenset(
    {"replace", "removeprefix", "removesuffix", "startswith", "endswith", "split", "rsplit", "strip"}
    | {"lstrip", "rstrip", "lower", "upper", "partition", "rpartition", "format", "join"}
)
_OF_PATHS = frozenset({"resolve", "absolute", "expanduser", "as_posix", "open", "__str__"})
_WIDE = re.compile(r"%[^a-z%]*[0-9]{3}")


def operated(op: ast.operator | ast.cmpop, left: Value, right: Value) -> Value:
    """Return what an operator gives; a text of which a part is not known has a hole there."""
    if isinstance(op, ast.Div) and (isinstance(left, str) or (isinstance(right, str) and left is not None)):
        return joined_path([left, right])
    if isinstance(op, ast.Mod) and isinstance(left, str):
        items = right.items if isinstance(right, Seq) else (right,)
        return _pure(
            operator.mod, re.sub("%[0-9.]*[di]", "%s", left), Seq(tuple(map(text, items)), len(items))
        )
    if isinstance(op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):
        return _pure(operator.add, text(left), text(right))
    if isinstance(op, ast.cmpop) and HOLE in "".join(one for one in (left, right) if isinstance(one, str)):
        return UNKNOWN
    if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and (left is None or right is None):
        is_known = not any(isinstance(one, Unknown | File | External | Method) for one in (left, right))
        return (left is right) is isinstance(op, ast.Is | ast.Eq) if is_known else UNKNOWN
    made = _OPERATORS.get(type(op))
    return UNKNOWN if made is None else _pure(made, left, right)


def of_text(owner: str, name: str, args: list[Value]) -> Value:
    """Return what a method of a text gives; of a path, which is its text here, as well."""
    if name == "joinpath":
        return joined_path([owner, *args])
    if name in _OF_PATHS:
        return owner
    if name == "format":
        plain = re.sub(
            r"\{(\w*)(?::[ds])?\}|\{[^{}]*\}",
            lambda one: "{" + one[1] + "}" if one[1] is not None else HOLE,
            owner,
        )
        return _pure(str.format, plain, *map(text, args))
    if name not in _OF_TEXTS or HOLE in owner:
        return UNKNOWN
    return _pure(getattr(str, name), owner, *args)


def joined_path(parts: list[Value]) -> Value:
    """Return a path of its parts."""
    return _pure("/".join, Seq(tuple(map(text, parts)), len(parts)))


def sliced(owner: Value, ends: list[Value]) -> Value:
    """Return a part of a text or sequence."""
    if isinstance(owner, Seq):
        items = _pure(lambda *rows: rows[0][slice(*rows[1:])], Seq(tuple(range(len(owner.items))), 1), *ends)
        return seq([owner.items[int(str(one))] for one in items.items]) if isinstance(items, Seq) else UNKNOWN
    return UNKNOWN if HOLE in text(owner) else _pure(lambda *rows: rows[0][slice(*rows[1:])], owner, *ends)


def _pure(function: Callable[..., object], *values: Value) -> Value:
    """Call what makes one constant of others, if these are known and small, and so is what comes of them."""
    rows = [_plain(value) for value in values]
    length = 1
    for row in rows:
        length *= max(len(row), 1) if isinstance(row, str) else 1
    wide = function is operator.mod and _WIDE.search(str(rows[0]))
    if ... in rows or length > 1 << 16 or wide:
        return UNKNOWN
    try:
        made = function(*rows)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return UNKNOWN
    if isinstance(made, list | tuple):
        return seq(list(made))
    is_small = (
        len(made) <= _MOST_TEXT
        if isinstance(made, str)
        else not isinstance(made, int) or abs(made) < _MOST_NUMBER
    )
    return made if is_small else UNKNOWN


def _plain(value: Value) -> object:
    """Return a value as Python has it; Ellipsis for what is none of Python's constants."""
    if isinstance(value, Seq):
        items = tuple(_plain(item) for item in value.items)
        return ... if ... in items else items
    if isinstance(value, Device):
        return value.text
    return value if value is None or isinstance(value, str | bool | int | float) else ...


def pure_of(function: Callable[..., object], *values: Value) -> Value:
    """Return what a function of constants gives."""
    has_hole = any(HOLE in text(value) for value in values if isinstance(value, str))
    return UNKNOWN if has_hole else _pure(function, *values)

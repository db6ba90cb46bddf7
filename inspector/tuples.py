"""Named tuples that cost nothing until one is made.

`typing.NamedTuple` compiles a function and makes five more for each class, and turns each annotation into an
object: a third of a millisecond a class, with a hundred of them on the way to the window. Here `__new__` is
compiled when there are more than a few instances, and all other methods are shared.

Type checkers see the standard class, and instances are the same: tuples, with the same names and methods.
What is refused when the class is made is what the standard one refuses, and any second base.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]  # the part of namedtuple that is in C

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NamedTuple  # noqa: TID251 - for the type checker alone

__all__ = ["NamedTuple"]

_FEW = 30
"""So many instances take less time without a compiled `__new__` than compiling it takes."""
_made: dict[type, int] = {}
_SOURCE = """
def __new__(_cls, {names}):
    return make(_cls, ({names}))
def _make(cls, values):
    made = make(cls, values)
    if len(made) != {count}:
        refuse(cls, made)
    return made
"""


def _new(cls: Any, /, *given: object, **named: object) -> Any:  # noqa: ANN401 - any named tuple
    """Make one of the first instances, or compile what makes all others."""
    count = _made.get(cls, 0)
    if count < _FEW:
        _made[cls] = count + 1
        values = given if not named and len(given) == len(cls._fields) else _filled(cls, given, named)
        if values is not None:
            return tuple.__new__(cls, values)
    owner = next(base for base in cls.__mro__ if "_fields" in base.__dict__)
    _compile(owner)
    return owner.__new__(cls, *given, **named)


def _filled(cls: Any, given: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...] | None:  # noqa: ANN401 - as above
    """Return the values of all fields, or None if the arguments are not those of `__new__`."""
    rest = cls._fields[len(given) :]
    values = cls._field_defaults | named
    if len(given) > len(cls._fields) or not named.keys() <= set(rest) or not values.keys() >= set(rest):
        return None
    return (*given, *[values[name] for name in rest])


def _compile(cls: Any) -> None:  # noqa: ANN401 - any named tuple
    """Compile `__new__`, which also words the error for wrong arguments, and `_make`."""
    names = "".join([f"{name}, " for name in cls._fields])
    scope: dict[str, Any] = {"make": tuple.__new__, "refuse": _refuse_length}
    # All of the text comes from class bodies in this program: names that Python took for annotations.
    exec(compile(_SOURCE.format(names=names, count=len(cls._fields)), __name__, "exec"), scope)  # noqa: S102
    new = scope["__new__"]
    new.__defaults__ = tuple(cls._field_defaults.values())
    new.__qualname__ = f"{cls.__qualname__}.__new__"
    cls.__new__, cls._make = new, classmethod(scope["_make"])


def _refuse_length(cls: Any, made: tuple[object, ...]) -> None:  # noqa: ANN401 - any named tuple
    raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")


def _make(cls: Any, values: Iterable[object]) -> Any:  # noqa: ANN401 - any named tuple
    made = tuple.__new__(cls, values)
    if len(made) != len(cls._fields):
        _refuse_length(cls, made)
    return made


def _replace(self: Any, /, **changes: object) -> Any:  # noqa: ANN401 - any named tuple
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise ValueError(f"Got unexpected field names: {list(changes)!r}")
    return made


def _asdict(self: Any) -> dict[str, object]:  # noqa: ANN401 - any named tuple
    return dict(zip(self._fields, self, strict=True))


def _repr(self: Any) -> str:  # noqa: ANN401 - any named tuple
    fields = ", ".join([f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)])
    return f"{type(self).__name__}({fields})"


def _getnewargs(self: Any) -> tuple[object, ...]:  # noqa: ANN401 - any named tuple
    """Return what a copy is made of."""
    return tuple(self)


_SHARED: dict[str, object] = {
    "__slots__": (),
    "__new__": _new,
    "_make": classmethod(_make),
    "_replace": _replace,
    "_asdict": _asdict,
    "__repr__": _repr,
    "__getnewargs__": _getnewargs,
}
_TAKEN = frozenset({*_SHARED, "__init__", "_fields", "_field_defaults", "__match_args__"}) - {"__repr__"}


class _Maker(type):
    """Makes a class of each body that follows `(NamedTuple)`."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:  # noqa: ANN401 - no instance
        """Return a class of tuples."""
        if not bases:
            return type.__new__(cls, name, bases, body)
        names = tuple(body.get("__annotations__", ()))
        _refuse_unsupported(name, bases, body, names)
        made = _SHARED | body
        made["_fields"] = made["__match_args__"] = names
        made["_field_defaults"] = {field: body[field] for field in names if field in body}
        for place, field in enumerate(names):
            made[field] = _tuplegetter(place, "")
        made.setdefault("__doc__", f"{name}({', '.join(names)})")
        return type(name, (tuple,), made)


def _refuse_unsupported(
    name: str, bases: tuple[type, ...], body: dict[str, object], names: tuple[str, ...]
) -> None:
    wrong = None
    given = [field in body for field in names]
    if len(bases) > 1:
        wrong = "has a second base"
    elif not _TAKEN.isdisjoint(body):
        wrong = "has a method or a name that is made for it"
    elif any(field.startswith("_") for field in names):
        wrong = "has a field whose name begins with an underscore"
    elif given != sorted(given):
        wrong = "has a field without a default behind one with a default"
    if wrong is not None:
        raise TypeError(f"the named tuple {name} {wrong}")


if not TYPE_CHECKING:  # pragma: no branch - always so when it runs

    class NamedTuple(metaclass=_Maker):
        """The base of named tuples."""

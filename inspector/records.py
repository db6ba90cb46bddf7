"""Records: data classes that cost nothing until one is made.

`dataclasses` compiles up to seven functions for every class while its module is imported, about half a
millisecond a class, and imports `inspect`: together a third of what the command line needs to start. Here
`__init__` is compiled when there are more than a few instances, and all other methods are shared.

Type checkers see the standard decorator, so they refuse what it would refuse. What it would take and this one
does not do is refused when the class is made: inheritance, class variables, `__post_init__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, field, replace  # noqa: TID251 - for the type checker alone

__all__ = ["as_document", "dataclass", "field", "replace"]

_REQUIRED = object()
_FEW = 30
"""So many instances take less time without a compiled `__init__` than compiling it takes."""
_MADE = frozenset({"__init__", "__post_init__", "__slots__"})


class _Made:
    """A default that every instance gets a new one of."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def _field(*, default_factory: Callable[[], object]) -> _Made:
    """Return a default that is made anew for each instance."""
    return _Made(default_factory)


def _dataclass(
    *,
    slots: bool,
    frozen: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    weakref_slot: bool = False,
) -> Callable[[type], type]:
    """Make a class of the annotations in its body, as `dataclasses.dataclass` does."""
    if not slots:
        raise TypeError("a record has slots")

    def decorate(plain: type) -> type:
        names = tuple(plain.__annotations__)
        _refuse_unsupported(plain, names, kw_only=kw_only)
        body = {
            name: value
            for name, value in plain.__dict__.items()
            if name not in names and name not in {"__dict__", "__weakref__"}
        }
        body["__slots__"] = (*names, "__weakref__") if weakref_slot else names
        body["__record_fields__"] = names
        body["__match_args__"] = () if kw_only else names
        body["__init_subclass__"] = _refuse_subclass
        for name, method in _methods(frozen=frozen, eq=eq).items():
            body.setdefault(name, method)
        body["__init__"] = _compile_when_called
        body["__record_init__"] = (
            frozen,
            kw_only,
            {name: plain.__dict__.get(name, _REQUIRED) for name in names},
        )
        made = type(plain)(plain.__name__, plain.__bases__, body)
        made.__qualname__ = plain.__qualname__
        return made

    return decorate


def _refuse_unsupported(plain: type, names: tuple[str, ...], *, kw_only: bool) -> None:
    wrong = None
    body = plain.__dict__
    kinds = " ".join(map(str, plain.__annotations__.values()))
    given = [name in body for name in names]
    if plain.__bases__ not in {(object,), (Generic,)}:
        wrong = "inherits"
    elif not _MADE.isdisjoint(body):
        wrong = "has a method that is made for it"
    elif "ClassVar" in kinds or "InitVar" in kinds:
        wrong = "has a variable that is no field"
    elif True in given and any(body[name].__hash__ is None for name in names if name in body):
        wrong = "has a default that instances would share and might change: use field(default_factory=...)"
    elif not kw_only and given != sorted(given):
        wrong = "has a field without a default behind one with a default"
    if wrong is not None:
        raise TypeError(f"the record {plain.__qualname__} {wrong}")


def _refuse_subclass(cls: type, **_named: object) -> None:
    raise TypeError(f"{cls.__qualname__} inherits from a record")


def _methods(*, frozen: bool, eq: bool) -> dict[str, object]:
    methods: dict[str, object] = {"__repr__": _repr, "__reduce__": _reduce}
    if eq:
        methods["__eq__"] = _eq
        methods["__hash__"] = _hash if frozen else None
    if frozen:
        methods["__setattr__"] = methods["__delattr__"] = _refuse
    return methods


_made: dict[type, int] = {}


def _compile_when_called(self: Any, *given: object, **named: object) -> None:  # noqa: ANN401 - any record
    cls = type(self)
    count = _made.get(cls, 0)
    if count < _FEW and not given and _is_filled(self, cls, named):
        _made[cls] = count + 1
        return
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, *given, **named)


def _is_filled(record: object, cls: Any, named: dict[str, object]) -> bool:  # noqa: ANN401 - the class of any record
    """Set the fields of a record one by one; return False if the arguments are not those of `__init__`."""
    _, _, defaults = cls.__record_init__
    if not named.keys() <= defaults.keys():
        return False
    for name, default in defaults.items():
        value = named.get(name, default)
        if value is _REQUIRED:
            return False
        cls.__dict__[name].__set__(record, value.make() if isinstance(value, _Made) else value)
    return True


def _compile_init(cls: Any) -> object:  # noqa: ANN401 - the class of any record
    """Compile `__init__`; it sets frozen slots by their descriptors, quickly and around `__setattr__`."""
    frozen, kw_only, defaults = cls.__record_init__
    parameters, lines = [], []
    scope: dict[str, object] = {"required": _REQUIRED}
    for name, default in defaults.items():
        scope[f"default_{name}"] = default
        parameters.append(name if default is _REQUIRED else f"{name}=default_{name}")
        value = name
        if isinstance(default, _Made):
            scope[f"make_{name}"] = default.make
            value = f"make_{name}() if {name} is default_{name} else {name}"
        if frozen:
            scope[f"set_{name}"] = cls.__dict__[name].__set__
        lines.append(f"set_{name}(self, {value})" if frozen else f"self.{name} = {value}")
    star = "*, " if kw_only and parameters else ""
    head = f"def __init__(self, {star}{', '.join(parameters)}):"
    # All of the text comes from class bodies in this program: names that Python took for annotations.
    # A str would do, but of a Ctrl+C while it runs Python remembers that nobody handled it, and ends the
    # program by the signal, whatever is done about it (`run_eval_code_obj` in CPython's Python/pythonrun.c).
    exec(compile("\n    ".join([head, *(lines or ["pass"])]), __name__, "exec"), scope)  # noqa: S102
    return scope["__init__"]


def _values(record: Any) -> tuple[object, ...]:  # noqa: ANN401 - any record
    return tuple([getattr(record, name) for name in record.__record_fields__])


def _repr(self: Any) -> str:  # noqa: ANN401 - any record
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__record_fields__)
    return f"{type(self).__qualname__}({fields})"


def _eq(self: Any, other: object) -> bool:  # noqa: ANN401 - any record
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _reduce(self: Any) -> tuple[object, ...]:  # noqa: ANN401 - any record
    """Return how a copy is made: what is frozen cannot be filled one by one."""
    return _remake, (type(self), _values(self))


def _remake(cls: Any, values: tuple[object, ...]) -> object:  # noqa: ANN401 - the class of any record
    return cls(**dict(zip(cls.__record_fields__, values, strict=True)))


def _hash(self: Any) -> int:  # noqa: ANN401 - any record
    return hash(_values(self))


def _refuse(self: object, name: str, *_value: object) -> None:
    raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot change")


def as_document(value: object) -> Any:  # noqa: ANN401 - whatever JSON has
    """Return a value as JSON has it: a record is an object of its fields, a tuple is a list."""
    if isinstance(value, tuple):
        return [as_document(part) for part in value]
    names = getattr(type(value), "__record_fields__", None)
    return value if names is None else {name: as_document(getattr(value, name)) for name in names}


def _replace(record: Any, /, **changes: object) -> object:  # noqa: ANN401 - any record
    """Make another record with some fields changed."""
    return type(record)(**{name: getattr(record, name) for name in record.__record_fields__} | changes)


if not TYPE_CHECKING:  # pragma: no branch - always so when it runs
    dataclass, field, replace = _dataclass, _field, _replace

"""Makes the enumerations of Qt as Python classes in a third of the time.

PySide makes a class of each enumeration when the class around it is first used: three hundred of them with
four thousand members until the window is there, each member checked as if a person had written it. That is a
quarter of the start. Here an empty enumeration is made as always, once, each other is a class of the same
parts, and members are put into it. Whether that comes to the same with this Python is tried on small ones
first; if not, or where anything about an enumeration is unusual, it is made as always.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Pairs = list[tuple[str, int]]
_KINDS: tuple[Any, ...] = (enum.Enum, enum.IntEnum, enum.Flag, enum.IntFlag)
_SAMPLE: Pairs = [("Late", 8), ("Zero", 0), ("One", 1), ("Two", 2), ("Again", 1), ("Both", 3), ("Below", -1)]
_create: Callable[..., Any] = enum.EnumMeta._create_  # type: ignore[attr-defined]
_PLACE = "__qualname__"
_MADE_ANEW = frozenset({"__dict__", "__weakref__", "__module__", "__qualname__", "__doc__"})
_templates: dict[Any, dict[str, Any]] = {}
"""What an empty enumeration of each kind is made of."""


def make_enums_quickly() -> bool:
    """Have enumerations made quickly from now on; return whether that comes to the same with this Python."""
    if not all(_is_same(kind, _SAMPLE) for kind in _KINDS):
        return False
    enum.EnumMeta._create_ = _create_quickly  # type: ignore[attr-defined]
    return True


def describe(made: Any) -> dict[str, object]:  # noqa: ANN401 - any enumeration
    """Return all that makes an enumeration what it is, to be compared with another."""
    parts: dict[str, object] = {}
    for name, value in vars(made).items():
        parts[name] = _plain(value, made)
    members = [(name, _plain(member, made), vars(member)) for name, member in made.__members__.items()]
    parts["members"] = [
        (name, one, {key: _plain(part, made) for key, part in inner.items()}) for name, one, inner in members
    ]
    parts["iterated"] = [_plain(member, made) for member in made]
    return parts


def _plain(value: object, made: Any) -> object:  # noqa: ANN401 - any enumeration
    """Return a part of an enumeration without what two of them never share."""
    if value is made:
        return "the enumeration"
    if isinstance(value, made):
        return value._name_, value._value_
    if isinstance(value, dict):
        return [(key, _plain(part, made)) for key, part in value.items()]
    if isinstance(value, (list, int, str)) or value is None:
        return value
    return getattr(value, _PLACE, type(value).__name__)


def _is_same(kind: Any, pairs: Pairs) -> bool:  # noqa: ANN401 - any class of enumerations
    try:
        plain = _create(kind, "Tried", pairs, module=__name__, qualname="A.Tried", boundary=enum.KEEP)
        return describe(_filled(kind, "Tried", pairs, __name__, "A.Tried")) == describe(plain)
    except Exception:  # noqa: BLE001 - whatever it is, another Python does it in another way
        return False


def _create_quickly(cls: Any, class_name: str, names: Any, **more: Any) -> Any:  # noqa: ANN401 - as Python's own
    """Stand in for `EnumMeta._create_`."""
    if more.get("module") is None:  # Python looks who called; that is one call further away here
        more["module"] = sys._getframe(2).f_globals.get("__name__")  # noqa: SLF001 - as Python does
    module, qualname = more["module"], more.get("qualname")
    is_known = cls in _KINDS and more.get("type") is None and more.get("boundary") is enum.KEEP
    if not is_known or module is None or not _is_usual(cls, names):
        return _create(cls, class_name, names, **more)
    return _filled(cls, class_name, names, module, qualname)


@lru_cache(maxsize=8)
def _taken(cls: Any) -> frozenset[str]:  # noqa: ANN401 - any class of enumerations
    return frozenset({"mro"}.union(*map(vars, cls.__mro__)))


def _is_usual(cls: Any, names: Any) -> bool:  # noqa: ANN401 - whatever was given
    if type(names) is not list or not set(map(type, names)) <= {tuple} or not set(map(len, names)) <= {2}:
        return False
    given = dict(names)
    kinds = set(map(type, given)) <= {str} and set(map(type, given.values())) <= {int}
    if not kinds or len(given) != len(names) or "\n_" in "\n" + "\n".join(given):
        return False
    return _taken(cls).isdisjoint(given)


def _template_of(cls: Any) -> dict[str, Any]:  # noqa: ANN401 - any class of enumerations
    """Return what an empty enumeration is made of."""
    if cls not in _templates:
        parts = vars(_create(cls, "Empty", [], module=__name__, boundary=enum.KEEP))
        _templates[cls] = {name: part for name, part in parts.items() if name not in _MADE_ANEW}
    return _templates[cls]


def _empty(cls: Any, class_name: str, module: str, qualname: str | None) -> Any:  # noqa: ANN401 - as above
    """Return an enumeration without members."""
    parts: dict[str, Any] = {"__module__": module}
    if qualname is not None:
        parts["__qualname__"] = qualname
    template = _template_of(cls)
    for name, part in template.items():
        parts[name] = type(part)() if type(part) in (list, dict, set) else part
    del parts["__new__"]
    made = type.__new__(type(cls), class_name, (cls,), parts)
    type.__setattr__(made, "__new__", template["__new__"])  # within the class it would become another thing
    return made


def _filled(cls: Any, class_name: str, pairs: Pairs, module: str, qualname: str | None) -> Any:  # noqa: ANN401 - as above
    """Return an enumeration of some members: an empty one, with these put into it."""
    made: Any = _empty(cls, class_name, module, qualname)
    new, takes, is_flag = made._new_member_, made._use_args_, issubclass(made, enum.Flag)
    names, by_name, by_value = made._member_names_, made._member_map_, made._value2member_map_
    put, mask, singles = type.__setattr__, 0, 0
    for name, value in pairs:
        member = new(made, value) if takes else new(made)
        member._value_ = value
        member._name_ = name
        member.__objclass__ = made
        member._sort_order_ = len(names)
        is_single = value > 0 and value & (value - 1) == 0
        mask |= value
        if is_single:
            singles |= value
        member = by_value.setdefault(value, member)
        if member._name_ == name and (is_single or not is_flag):
            names.append(name)
        put(made, name, member)
        by_name[name] = member
    if is_flag and pairs:
        has_singles = hasattr(made, "_singles_mask_")  # an early Python 3.11 keeps those alone
        made._flag_mask_ = mask if has_singles else singles
        if has_singles:
            made._singles_mask_ = singles
        made._all_bits_ = 2 ** mask.bit_length() - 1
        values = [member._value_ for member in made]
        if values != sorted(values):
            made._iter_member_ = made._iter_member_by_def_
    return made

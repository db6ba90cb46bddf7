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
from functools import lru_cache, partial, reduce
from operator import or_
from typing import Any

from inspector.gui.quick.waiting import LATER, Pairs, Waiting, wait

_KINDS: tuple[Any, ...] = (enum.Enum, enum.IntEnum, enum.Flag, enum.IntFlag)
_SAMPLE: Pairs = [("Late", 8), ("Zero", 0), ("One", 1), ("Two", 2), ("Again", 1), ("Both", 3), ("Below", -1)]
_create: Callable[..., Any] = enum.EnumMeta._create_  # type: ignore[attr-defined]
_PLACE = "__qualname__"
_MADE_ANEW = frozenset({"__dict__", "__weakref__", "__module__", "__qualname__", "__doc__"})
_MUTABLE = (list, dict, set)


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
        return describe(_waiting(kind, "Tried", pairs, __name__, "A.Tried")) == describe(plain)
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
    return _waiting(cls, class_name, names, module, qualname)


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


@lru_cache(maxsize=8)
def _template_of(cls: Any) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ANN401 - any class of enumerations
    """Return what an empty enumeration is made of at once, and what of it its members make."""
    parts = vars(_create(cls, "Empty", [], module=__name__, boundary=enum.KEEP))
    usual = {name: part for name, part in parts.items() if name not in _MADE_ANEW}
    later = {name: part for name, part in usual.items() if name in LATER or type(part) in _MUTABLE}
    return {name: part for name, part in usual.items() if name not in later}, later


def _waiting(cls: Any, class_name: str, pairs: Pairs, module: str, qualname: str | None) -> Any:  # noqa: ANN401 - as above
    """Return an enumeration that gets its members when it is first asked for one."""
    at_once, later = _template_of(cls)
    parts = at_once | {"__module__": module}
    if qualname is not None:
        parts["__qualname__"] = qualname
    new = parts.pop("__new__")
    made = type.__new__(Waiting, class_name, (cls,), parts)
    type.__setattr__(made, "__new__", new)  # within the class it would become another thing
    wait(made, pairs, partial(_members, made, pairs, later))
    return made


def _members(made: Any, pairs: Pairs, later: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Return the members, and what they make of the parts of their enumeration."""
    new, takes, is_flag = made._new_member_, made._use_args_, issubclass(made, enum.Flag)
    by_name: dict[str, Any] = {}
    by_value: dict[int, Any] = {}
    names: list[str] = []
    for name, value in pairs:
        member = new(made, value) if takes else new(made)
        member._value_ = value
        member._name_ = name
        member.__objclass__ = made
        member._sort_order_ = len(names)
        by_name[name] = member = by_value.setdefault(value, member)
        if member._name_ == name and (not is_flag or _is_single(value)):
            names.append(name)
    parts = {name: type(part)() if type(part) in _MUTABLE else part for name, part in later.items()}
    parts |= {"_member_names_": names, "_member_map_": by_name, "_value2member_map_": by_value}
    if is_flag and pairs:
        parts |= _bits(made, by_name, names, later)
    return by_name | parts


def _is_single(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _bits(made: Any, by_name: dict[str, Any], names: list[str], later: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Return what the members of a flag make of its masks."""
    values = [member._value_ for member in by_name.values()]
    mask, singles = reduce(or_, values), reduce(or_, filter(_is_single, values), 0)
    has_singles = "_singles_mask_" in later  # an early Python 3.11 keeps those alone
    parts = {"_flag_mask_": mask if has_singles else singles, "_all_bits_": 2 ** mask.bit_length() - 1}
    if has_singles:
        parts["_singles_mask_"] = singles
    own = [by_name[name]._value_ for name in names]
    if own != sorted(own):
        parts["_iter_member_"] = made._iter_member_by_def_
    return parts

"""The objects of a TorchScript archive as plain mappings, so that its tensors have the keys of a state dict.

A module is written as an object of a class of `__torch__` with a dictionary of attributes, see `Pickler` in
torch's `torch/csrc/jit/serialization/pickler.cpp`; typed lists and dictionaries are wrapped in calls of
`torch.jit._pickle`, which only say their type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from inspector.containers.container import Declared
from inspector.containers.rebuilds import names_of
from inspector.containers.torchscript.code import Members
from inspector.pickles.values import Call, Dict, Global, Value

CLASSES = "__torch__"
_TYPED = "torch.jit._pickle"
_TENSORS = names_of(lambda _: True)
_MOST_WRAPPERS = 64
_MOST_AGAIN = 50_000
"""How many attributes of modules are listed again, where one module stands in several places."""


class Objects:
    """Makes the mappings of one archive.

    Attributes:
        declared: What tensors are for, by the `id` of the value, where their class says so.
    """

    def __init__(self, members: Mapping[str, Members]) -> None:
        self.declared: dict[int, Declared] = {}
        self._members = members
        self._made: dict[int, Dict | list[Value]] = {}
        self._open: set[int] = set()
        self._again = _MOST_AGAIN
        self._stack: list[tuple[int, Iterator[None]]] = []

    def plain(self, root: Value) -> Value:
        """Return a value with mappings in the place of objects; tensors are those of the pickle."""
        made = self._plain(root)
        while self._stack:
            number, steps = self._stack[-1]
            depth = len(self._stack)
            for _ in steps:
                if len(self._stack) > depth:
                    break
            else:
                self._stack.pop()
                self._open.discard(number)
        return made

    def _plain(self, value: Value) -> Value:
        """Return what stands for a value; what is in it is filled in later."""
        value, cls = _unwrapped(value)
        if not isinstance(value, Dict | list | tuple) or not _size(value):
            return value
        number = id(value)
        known = self._made.get(number)
        if known is not None and (cls is None or number in self._open or _size(value) > self._again):
            return known
        if known is not None:
            # A state dict lists a module that stands in two places in both.
            self._again -= _size(value)
        if isinstance(value, Dict):
            mapping = Dict([])
            self._made[number] = mapping
            self._stack.append((number, self._fill(value, mapping, cls)))
            self._open.add(number)
            return mapping
        items: list[Value] = []
        self._made[number] = items
        self._stack.append((number, self._fill_list(value, items)))
        self._open.add(number)
        return items

    def _fill(self, value: Dict, made: Dict, cls: str | None) -> Iterator[None]:
        members = None if cls is None else self._members.get(cls)
        for key, item in value.pairs:
            if cls is not None and is_tensor(item):
                made.pairs.append((key, self._declare(item, _declared(members, key))))
            else:
                made.pairs.append((key, self._plain(item)))
            yield

    def _fill_list(self, value: list[Value] | tuple[Value, ...], made: list[Value]) -> Iterator[None]:
        for item in value:
            made.append(self._plain(item))
            yield

    def _declare(self, value: Call, role: Declared) -> Call:
        """Return a tensor once more, as what it is at one place: at another it may be something else."""
        copy = Call(value.func, value.args, value.kind)
        copy.state = value.state
        self.declared[id(copy)] = role
        return copy


def _size(value: Dict | list[Value] | tuple[Value, ...]) -> int:
    return len(value.pairs) if isinstance(value, Dict) else len(value)


def _unwrapped(value: Value) -> tuple[Value, str | None]:
    """Return what an object or a typed container holds, and the class of an object."""
    cls = None
    for _ in range(_MOST_WRAPPERS):
        if type(value) is not Call or type(value.func) is not Global:
            break
        func = value.func
        if func.package == CLASSES and value.kind == "newobj":
            cls = func.dotted
            value = value.state
        elif func.module == _TYPED and isinstance(value.args, tuple) and value.args:
            value = value.args[0]
        else:
            break
    return value, cls


def is_tensor(value: Value) -> TypeGuard[Call]:
    """Return whether a value is made by one of the functions that make tensors."""
    return type(value) is Call and type(value.func) is Global and value.func.name in _TENSORS


def _declared(members: Members | None, key: Value) -> Declared:
    """Return what a tensor is for; of a class whose code is not there, nothing may be left out of a copy."""
    if members is None:
        return "parameter"
    if not isinstance(key, str):
        return "other"
    if key in members.parameters:
        return "parameter"
    return "buffer" if members.buffers is None or key in members.buffers else "other"

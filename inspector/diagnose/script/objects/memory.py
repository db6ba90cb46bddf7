"""The memory of a script that is followed: its scopes and objects, which can be forked and joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.diagnose.script.objects.values import (
    UNKNOWN,
    DictObject,
    InstanceObject,
    ListObject,
    LoaderObject,
    ModuleObject,
    Object,
    OptimizerObject,
    Ref,
    Tensor,
    Value,
)
from inspector.model.checkpoint import Key
from inspector.records import replace

Place = tuple[int, tuple[Key, ...]]


class Memory:
    """Scopes and objects by number, and what was changed of the file's values."""

    def __init__(self) -> None:
        self.scopes: dict[int, dict[str, Value]] = {0: {}}
        self.objects: dict[int, Object] = {}
        self.changed: dict[Place, int] = {}
        self.default_device: str | None = "cpu"
        self.is_grad: bool | None = True
        self._next = 1

    def fork(self) -> Memory:
        """Return a copy that can be changed by itself."""
        twin = Memory()
        twin.restore(self)
        return twin

    def restore(self, other: Memory) -> None:
        """Become what another memory is."""
        self.scopes = {number: dict(scope) for number, scope in other.scopes.items()}
        self.objects = dict(other.objects)
        self.changed = dict(other.changed)
        self.default_device = other.default_device
        self.is_grad = other.is_grad
        self._next = max(self._next, other._next)

    @property
    def size(self) -> int:
        """How much a fork copies."""
        return len(self.objects) + len(self.changed) + sum(map(len, self.scopes.values()))

    def join(self, other: Memory) -> None:
        """Keep what this memory and another agree on."""
        for number, scope in self.scopes.items():
            theirs = other.scopes.get(number, {})
            for name in [*scope, *(name for name in theirs if name not in scope)]:
                one, two = scope.get(name), theirs.get(name)
                if one is two:
                    continue
                scope[name] = UNKNOWN if one is None or two is None else _joined(one, two)
        for number, found in other.objects.items():
            mine = self.objects.get(number)
            if mine is not found:
                self.objects[number] = found if mine is None or mine == found else _blurred(mine, found)
        for place in {**self.changed, **other.changed}:
            here, there = self.changed.get(place), other.changed.get(place)
            if here == there:
                continue
            sides = ((self, here), (other, there))
            held = [memory.objects[number] for memory, number in sides if number is not None]
            number = self.changed.setdefault(place, there or 0)
            self.objects[number] = _vague(held)
        self.default_device = self.default_device if self.default_device == other.default_device else None
        self.is_grad = self.is_grad if self.is_grad == other.is_grad else None
        self._next = max(self._next, other._next)

    def new_scope(self) -> int:
        """Make an empty scope."""
        self._next += 1
        self.scopes[self._next] = {}
        return self._next

    def put(self, made: Object) -> Ref:
        """Put an object into the memory."""
        self._next += 1
        self.objects[self._next] = made
        return Ref(id=self._next)

    def get(self, value: Value) -> Object | None:
        """Return the object that a value points to, or None."""
        return self.objects.get(value.id) if isinstance(value, Ref) else None

    def names(self, numbers: set[int]) -> bool:
        """Return whether the script still has a name for one of these objects, or something that holds it."""
        numbers = self._holders(numbers)
        values = [value for scope in self.scopes.values() for value in scope.values()]
        for found in self.objects.values():
            if isinstance(found, InstanceObject | ModuleObject):
                values += found.attributes.values()
            elif isinstance(found, ListObject):
                values += found.items
            elif isinstance(found, DictObject):
                values += found.pairs.values()
        return any(isinstance(value, Ref) and value.id in numbers for value in values)

    def _holders(self, numbers: set[int]) -> set[int]:
        """Return modules and all that they are a part of."""
        above: dict[int, list[int]] = {}
        for number, found in self.objects.items():
            for child in found.children.values() if isinstance(found, ModuleObject) else ():
                above.setdefault(child, []).append(number)
        waiting, seen = list(numbers), set(numbers)
        for number in waiting:  # which grows
            new = [holder for holder in above.get(number, ()) if holder not in seen]
            seen.update(new)
            waiting += new
        return seen

    def module(self, value: Value | int) -> ModuleObject | None:
        """Return the module that a value points to, or None."""
        found = self.objects.get(value) if isinstance(value, int) else self.get(value)
        return found if isinstance(found, ModuleObject) else None

    def below(self, number: int) -> Iterator[tuple[str, int, ModuleObject]]:
        """Yield (prefix, number, module) for a module and all below it, each once."""
        waiting, seen = [("", number)], set[int]()
        while waiting:
            prefix, at = waiting.pop()
            module = self.module(at)
            if module is None or at in seen:
                continue
            seen.add(at)
            yield prefix, at, module
            children = list(module.children.items())
            waiting += [(f"{prefix}{name}.", child) for name, child in reversed(children)]


def _joined(one: Value, two: Value) -> Value:
    if one == two:
        return one
    if isinstance(one, Tensor) and isinstance(two, Tensor):
        return Tensor(
            device=one.device if one.device == two.device else None,
            dtype=one.dtype if one.dtype == two.dtype else None,
            shape=one.shape if one.shape == two.shape else None,
            is_number=one.is_number if one.is_number == two.is_number else None,
            grad=one.grad if one.grad == two.grad else None,
        )
    return UNKNOWN


def _vague(held: Sequence[Object]) -> Object:
    """Return what is known of a container that was changed in one way or another, or perhaps not."""
    kinds = {type(one) for one in held}
    if kinds == {ListObject}:
        return ListObject(whole=False)
    return DictObject(whole=False) if kinds == {DictObject} else InstanceObject()


def _blurred(one: Object, two: Object) -> Object:
    """Return what is known of an object that is one thing or the other."""
    if isinstance(one, ModuleObject) and isinstance(two, ModuleObject):
        return _blurred_module(one, two)
    if isinstance(one, OptimizerObject) and isinstance(two, OptimizerObject):
        return replace(one, modules=None, groups=None, state=None)
    if isinstance(one, InstanceObject) and isinstance(two, InstanceObject):
        names = {**one.attributes, **two.attributes}
        both = {
            name: _joined(one.attributes.get(name, UNKNOWN), two.attributes.get(name, UNKNOWN))
            for name in names
        }
        return replace(one, attributes=both, whole=False)
    if isinstance(one, DictObject) and isinstance(two, DictObject):
        both_pairs = {key: value for key, value in one.pairs.items() if two.pairs.get(key) == value}
        return DictObject(pairs=both_pairs, whole=False)
    if isinstance(one, LoaderObject) and isinstance(two, LoaderObject):
        return LoaderObject(element=UNKNOWN)
    are_lists = isinstance(one, ListObject) and isinstance(two, ListObject)
    return ListObject(whole=False) if are_lists else InstanceObject()


def _blurred_module(one: ModuleObject, two: ModuleObject) -> ModuleObject:
    device = one.device if one.device == two.device else None
    if (one.cls, one.script, one.layer, one.wrapper) != (two.cls, two.script, two.layer, two.wrapper):
        return ModuleObject(cls="Module", whole=False, device=device, dtype=None, frozen=None)
    return replace(
        one,
        whole=one.whole and two.whole and one.own == two.own and one.children == two.children,
        device=device,
        dtype=one.dtype if one.dtype == two.dtype else None,
        frozen=one.frozen if one.frozen == two.frozen else None,
        attributes={
            name: _joined(value, two.attributes.get(name, UNKNOWN)) for name, value in one.attributes.items()
        },
    )

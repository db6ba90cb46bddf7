"""What holds tensors and values: of which type it is in both files, and in which order its keys stand.

The rows of a checkpoint are its leaves. A list and a tuple of the same tensors have the same rows, so what is
compared here is the containers between the root and them, wherever each of them went.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from inspector.diff.records import ContainerChange, Pair
from inspector.diff.side import Side
from inspector.diff.tokens import Tokens
from inspector.model.values.children import (
    breadth_of,
    mapping_pairs,
    mapping_steps,
    told_apart,
    unlisted_arguments,
)
from inspector.model.values.text import MOST_KEY_BITS, class_of, step_text, text_of, type_of
from inspector.pickles.values import Call, Dict, Value, present_name
from inspector.units import cut_text, escape_text

_KEYS = frozenset({str, int})
"""What nearly all keys are, and what can be compared without entering anything."""
_SETS = frozenset({"set", "frozenset"})
_MANGLED = re.compile(r"\.___torch_mangle_\d+")
"""What TorchScript puts into the name of a class that a process compiles for the second time."""
_MOST_KEYS = 3
_MOST_KEY_CHARS = 40

Look = Callable[[int], object]
Contents = tuple[Callable[[str], bytes] | None, Callable[[str], bytes] | None]


class Containers(NamedTuple):
    """What became of containers.

    Attributes:
        equal_sets: Places of sets that are equal, in whatever order both files list what is in them.
    """

    changed: tuple[ContainerChange, ...] = ()
    reordered: tuple[ContainerChange, ...] = ()
    equal_sets: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False


def are_comparable(a: Side, b: Side) -> bool:
    """Return whether both files say themselves what holds their tensors, in terms that can be compared."""
    return a.has_containers and b.has_containers and a.checkpoint.is_program == b.checkpoint.is_program


def compare_containers(
    a: Side, b: Side, pairs: Iterable[Pair], look: Look, contents: Contents = (None, None)
) -> Containers:
    """Compare all containers of two files.

    Args:
        contents: What digests the bytes of each file's storages, where those of keys are to be compared.
    """
    if not are_comparable(a, b):
        return Containers()
    return _Comparing(a, b, pairs, look, contents).run()


class _Comparing:
    def __init__(self, a: Side, b: Side, pairs: Iterable[Pair], look: Look, contents: Contents) -> None:
        self._a, self._b = a, b
        self._look = look
        rows, others = a.checkpoint.tensors, b.checkpoint.tensors
        paths = ((rows[pair.a].path, others[pair.b].path) for pair in pairs if pair.how != "shared")
        self._names = list(paths)
        self._moved = {one: other for one, other in self._names if one != other}
        self._tokens = Tokens(a.data, lambda: look(1)), Tokens(b.data, lambda: look(1))
        self._keys = tuple(
            Tokens(side.data, lambda: look(1), storages=one)
            for side, one in zip((a, b), contents, strict=True)
        )

    def run(self) -> Containers:
        places = self._places()
        self._moved.update((one, other) for one, other in places if one != other)
        changed, reordered, sets = [], [], []
        for one, other in (*places, *self._shared(places)):
            self._look(1)
            value, another = self._a.containers[one], self._b.containers[other]
            types = self._types(value, another)
            if (
                types[0] == types[1]
                and self._is_cycle(one, other)
                and breadth_of(value) != breadth_of(another)
            ):
                types = types[0], f"{types[1]} (of another length)"
            if types[0] != types[1]:
                changed.append(ContainerChange(*self._shown(one, other), *types))
            elif types[0] in _SETS and self._tokens[0].of(value) == self._tokens[1].of(another):
                sets.append((one, other))
            orders = self._orders(one, other)
            if orders is not None:
                reordered.append(ContainerChange(*self._shown(one, other), *orders))
        is_cut = any(one.is_cut for one in (*self._tokens, *self._keys))
        return Containers(tuple(changed), tuple(reordered), tuple(sets), is_cut)

    def _types(self, value: Value, another: Value) -> tuple[str, str]:
        """Return the types of two containers, with what they were made with where only that differs."""
        one, other = _type_of(value), _type_of(another)
        if one == other and self._have_other_keys(value, another):
            return one, f"{other} (other keys)"
        if one != other or type(value) is not Call or type(another) is not Call:
            return one, other
        made, made_too = unlisted_arguments(value), unlisted_arguments(another)
        if made is made_too or self._tokens[0].of(made) == self._tokens[1].of(made_too):
            return one, other
        one, other = text_of(value), text_of(another)
        return one, other if other != one else f"{other} (other arguments)"

    def _is_cycle(self, one: str, other: str) -> bool:
        """Return whether a container of one file stands in itself where that of the other is another one.

        What is below has no rows of its own then, which would tell that there is more of it or less.
        """
        if one == other or self._moved.get(one) == other:
            return False
        return f"{other}/".startswith(f"{one}/" if one else "") or f"{one}/".startswith(
            f"{other}/" if other else ""
        )

    def _have_other_keys(self, value: Value, another: Value) -> bool:
        """Return whether keys that are shown by the same short text are others, such as long tuples."""
        own, others = map(_tokens_of_keys, (value, another), self._keys)
        return any(own[step] != others[step] for step in own.keys() & others.keys())

    def _shown(self, one: str, other: str) -> tuple[str, str]:
        """Return the places of a container; of an object at two places, the one in question."""
        if self._moved.get(one, one) == other:
            return one, other
        place = other if self._a.listed_at(other) == one else one
        return place, place

    def _places(self) -> list[tuple[str, str]]:
        partners = self._partners() if self._moved else {}
        found: dict[str, str] = {}
        for place in self._a.containers:
            partner = partners.get(place, place)
            if partner in self._b.containers:
                found.setdefault(partner, place)
        return [(place, partner) for partner, place in found.items()]

    def _shared(self, places: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield places where one file keeps one object, and the other two that are equal by their rows."""
        a, b = self._a, self._b
        own, others = {place for place, _ in places}, {place for _, place in places}
        for place in a.containers if b.aliases else ():
            self._look(place.count("/") + 1)
            partner = b.listed_at(place) if place not in own else place
            if partner != place and partner in b.containers:
                yield place, partner
        for place in b.containers if a.aliases else ():
            self._look(place.count("/") + 1)
            partner = a.listed_at(place) if place not in others else place
            if partner != place and partner in a.containers:
                yield partner, place

    def _partners(self) -> dict[str, str]:
        """Return which place became which: that to which most of what is in it went."""
        votes: Counter[tuple[str, str]] = Counter()
        for one, other in self._names:
            votes[_parent(one), _parent(other)] += 1
        for (inner, other_inner), count in list(votes.items()):
            self._look(inner.count("/") + 1)
            one, other = inner, other_inner
            while one and other and _last(one) == _last(other):
                one, other = _parent(one), _parent(other)
                votes[one, other] += count
        found: dict[str, str] = {}
        taken: set[str] = set()
        for one, other in sorted(votes, key=lambda pair: (-votes[pair], pair[0] != pair[1])):
            if one not in found and other not in taken:
                found[one] = other
                taken.add(other)
        return found

    def _orders(self, one: str, other: str) -> tuple[str, str] | None:
        """Return the keys of two mappings from the first on that stands elsewhere; None for equal orders."""
        value, another = self._a.containers[one], self._b.containers[other]
        if type(value) not in {Dict, Call} or type(another) not in {Dict, Call}:
            return None
        self._look(breadth_of(value) + breadth_of(another))
        pairs, others = mapping_pairs(value), mapping_pairs(another)
        if pairs is None or others is None or _have_equal_keys(pairs, others):
            return None
        own, partners = _steps(pairs), _steps(others)
        prefix, start = (f"{place}/" if place else "" for place in (one, other))
        went = (self._moved.get(prefix + step, "") for step in own) if self._moved else ("" for _ in own)
        names = [_below(path, start) or step for path, step in zip(went, own, strict=True)]
        both = set(names).intersection(partners)
        first = [step for step in names if step in both]
        second = [step for step in partners if step in both]
        return None if first == second else _windows(first, second)


def _type_of(value: Value) -> str:
    if type(value) is Call:
        name = class_of(value)
        if name is not None:
            present = present_name(name).replace("numpy._core.", "numpy.core.").removeprefix("builtins.")
            return escape_text(_MANGLED.sub("", cut_text(present, 200)))
    return type_of(value)


def _tokens_of_keys(value: Value, tokens: Tokens) -> dict[str, set[bytes]]:
    """Return the digests of those keys of a mapping whose text in a path may be short, by that text."""
    found: dict[str, set[bytes]] = {}
    pairs = (mapping_pairs(value) or []) if type(value) in {Dict, Call} else []
    if not _KEYS.issuperset(map(type, (key for key, _ in pairs))) or any(map(_is_huge, pairs)):
        steps = map(step_text, mapping_steps(pairs))
        for step, (key, _) in zip(steps, pairs, strict=True):
            if type(key) not in _KEYS or _is_huge((key,)):
                found.setdefault(step, set()).add(tokens.of(key))
    return found


def _is_huge(pair: tuple[Value, ...]) -> bool:
    return type(pair[0]) is int and pair[0].bit_length() > MOST_KEY_BITS


def _have_equal_keys(pairs: list[tuple[Value, Value]], others: list[tuple[Value, Value]]) -> bool:
    return len(pairs) == len(others) and all(
        type(one) is type(other) and type(one) in _KEYS and one == other
        for (one, _), (other, _) in zip(pairs, others, strict=True)
    )


def _steps(pairs: list[tuple[Value, Value]]) -> list[str]:
    keys = dict.fromkeys((type(key), key) for key in mapping_steps(pairs))
    return [step_text(key) for key, _ in told_apart([(key, None) for _, key in keys])]


def _below(path: str, start: str) -> str:
    """Return what stands behind a place, if that is one step."""
    rest = path[len(start) :] if path.startswith(start) else ""
    return "" if "/" in rest else rest


def _windows(first: list[str], second: list[str]) -> tuple[str, str]:
    place = next(number for number in range(len(first)) if first[number] != second[number])
    one, other = (_window(keys, place) for keys in (first, second))
    return one, other


def _window(keys: list[str], place: int) -> str:
    shown = ", ".join(cut_text(key, _MOST_KEY_CHARS) for key in keys[place : place + _MOST_KEYS])
    return f"{'…, ' if place else ''}{shown}{', …' if place + _MOST_KEYS < len(keys) else ''}"


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def holders_of(paths: Iterable[str]) -> Iterator[str]:
    """Yield the places around paths, each once."""
    seen: set[str] = set()
    for path in paths:
        place = path
        while place:
            place = _parent(place)
            if place in seen:
                break
            seen.add(place)
            yield place

"""Values other than tensors, compared as trees: the leaves of both files by their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from inspector.diff.content.arrays import StoredArray, array_of, compare_arrays
from inspector.diff.facts.keys import are_same_ways, other_keys
from inspector.diff.facts.tokens import Tokens
from inspector.diff.pairs.paths import Left, pair_names, without
from inspector.diff.records import Rule, ValueChange
from inspector.diff.side import Side
from inspector.model.checkpoint import ValueRow
from inspector.model.values.text import text_of
from inspector.pickles.values import Value
from inspector.records import dataclass
from inspector.units import cut_text, escape_text, format_count

_AROUND = 24
_MOST_SHOWN = 120
_OTHER = "other contents"
_METADATA = "._metadata/"


@dataclass(slots=True, kw_only=True)
class Values:
    """What became of values.

    Attributes:
        removed: Those that only the first file has, by number.
        added: Those that only the second has.
        changed: Those that differ.
        is_cut: Whether values are nested too deeply to be compared wholly.
    """

    removed: tuple[int, ...]
    added: tuple[int, ...]
    changed: tuple[ValueChange, ...]
    is_cut: bool


def compare_values(
    a: Side,
    b: Side,
    rules: Iterable[Rule],
    look: Callable[[], object],
    equal_sets: Sequence[tuple[str, str]] = (),
) -> Values:
    """Compare all values but those of tensors.

    Args:
        a: The first file.
        b: The second.
        rules: What became of the names of tensors: values beside them were moved with them.
        look: Counts the work.
        equal_sets: Places of sets in which nothing differs, in whatever order their items come.
    """
    one, other = a.checkpoint.values, b.checkpoint.values
    names = [row.path for row in one], [row.path for row in other]
    listed = Left(_listed(one, a, b), _listed(other, b, a))
    if equal_sets:
        places, others = zip(*equal_sets, strict=True)
        listed = Left(_outside(places, names[0], listed.a), _outside(others, names[1], listed.b))
    pairs, left = pair_names(*names, listed)
    for rule in rules:
        if left.a and left.b and _is_place(rule):
            pairs, left = _moved(rule, names, pairs, left)
        elif left.a and left.b and _is_module(rule):
            pairs, left = _versions(rule, names, pairs, left)
    pairs, left = _shared(a, b, pairs, left)
    tokens = Tokens(a.data, look), Tokens(b.data, look)
    changed = []
    for first, second in pairs:
        look()
        change = _change(first, second, (a, b), tokens)
        if change is not None:
            changed.append(change)
    is_cut = any(one.is_cut for one in tokens)
    return Values(removed=tuple(left.a), added=tuple(left.b), changed=tuple(changed), is_cut=is_cut)


def _listed(rows: Sequence[ValueRow], side: Side, other: Side) -> list[int]:
    """Return the rows that are compared: not those that point at an object that the other file has twice."""
    if not side.aliases:
        return list(range(len(rows)))
    kept = {row.path for row in other.checkpoint.values}
    return [number for number, row in enumerate(rows) if row.path not in side.aliases or row.path in kept]


def _outside(places: Sequence[str], names: list[str], rows: list[int]) -> list[int]:
    """Return the rows that stand in none of some places."""
    starts = tuple(f"{place}/" if place else "" for place in places)
    return [row for row in rows if not names[row].startswith(starts)]


def _is_place(rule: Rule) -> bool:
    return all(part == "" or part.endswith("/") for part in (rule.a, rule.b))


def _is_module(rule: Rule) -> bool:
    return all(part == "" or part.endswith(".") for part in (rule.a, rule.b))


def _versions(
    rule: Rule, names: tuple[list[str], list[str]], pairs: list[tuple[int, int]], left: Left
) -> tuple[list[tuple[int, int]], Left]:
    """Pair the versions that a state dict keeps of modules that have another name."""
    others = {names[1][row]: row for row in left.b}
    found = []
    for row in left.a:
        place, _, rest = names[0][row].partition(_METADATA)
        module, _, leaf = rest.rpartition("/")
        if rest and f"{module}.".startswith(rule.a):
            renamed = (rule.b + f"{module}."[len(rule.a) :]).removesuffix(".")
            partner = others.pop(f"{place}{_METADATA}{renamed}/{leaf}", None)
            if partner is not None:
                found.append((row, partner))
    return [*pairs, *found], _rest(left, found)


def _moved(
    rule: Rule, names: tuple[list[str], list[str]], pairs: list[tuple[int, int]], left: Left
) -> tuple[list[tuple[int, int]], Left]:
    """Pair values of a state dict that stands at another place."""
    own = [row for row in left.a if names[0][row].startswith(rule.a)]
    others = {names[1][row]: row for row in left.b}
    found = []
    for row in own:
        partner = others.pop(rule.b + names[0][row][len(rule.a) :], None)
        if partner is not None:
            found.append((row, partner))
    return [*pairs, *found], _rest(left, found)


def _shared(a: Side, b: Side, pairs: list[tuple[int, int]], left: Left) -> tuple[list[tuple[int, int]], Left]:
    """Pair values that one file lists at two places with those of the object that the other keeps at both."""
    found: list[tuple[int, int]] = []
    for side, rows, other, is_first in ((a, left.b, b, True), (b, left.a, a, False)):
        if side.aliases and rows:
            places = {row.path: number for number, row in enumerate(side.checkpoint.values)}
            for number in rows:
                place = places.get(side.listed_at(other.checkpoint.values[number].path))
                if place is not None:
                    found.append((place, number) if is_first else (number, place))
    return [*pairs, *found], _rest(left, found)


def _rest(left: Left, found: list[tuple[int, int]]) -> Left:
    return Left(without(left.a, [a for a, _ in found]), without(left.b, [b for _, b in found]))


def _change(
    first: int, second: int, sides: tuple[Side, Side], tokens: tuple[Tokens, Tokens]
) -> ValueChange | None:
    """Return how two values differ; None for equal ones."""
    a, b = sides
    one, other = a.checkpoint.values[first], b.checkpoint.values[second]
    value, another = a.values[first], b.values[second]
    has_keys = a.has_keys and b.has_keys
    what = ["key"] if has_keys and one.path == other.path and not are_same_ways(one.keys, other.keys) else []
    arrays = array_of(value, a.data), array_of(another, b.data)
    if arrays[0] is not None and arrays[1] is not None:
        return _array_change(ValueChange(first, second, tuple(what), "", ""), arrays[0], arrays[1])
    if one.path in a.aliases and other.path in b.aliases:
        is_same = a.aliases[one.path] == b.aliases[other.path]
    else:
        is_same = one.type == other.type and tokens[0].of(value) == tokens[1].of(another)
    if not is_same:
        what.append("value" if one.type == other.type else "type")
    if not what:
        return None
    texts = (one.text, other.text)
    if not is_same:
        if one.type == other.type:  # else both types are said
            texts = _texts(value, another, texts)
    else:
        first_key, second_key = other_keys(one.keys, other.keys)
        texts = f"under the key {first_key}", f"under the key {second_key}"
    return ValueChange(first, second, tuple(what), *texts)


def _array_change(change: ValueChange, one: StoredArray, other: StoredArray) -> ValueChange | None:
    """Return how two arrays differ; None for equal ones under equal keys."""
    facts = compare_arrays(one, other)
    if not facts and not change.what:
        return None
    is_changed = facts not in {(), ("bits",)}
    return change._replace(
        what=(*change.what, *(("value",) if is_changed else ()), *facts),
        a_text=one.text,
        b_text=other.text,
        is_measurable=one.numel == other.numel > 0,
    )


def _texts(value: Value, other: Value, texts: tuple[str, str]) -> tuple[str, str]:
    """Return what is shown of two values that differ: where they are long, the first place that does."""
    if isinstance(value, str) and isinstance(other, str):
        return _windows(value, other)
    if (
        isinstance(value, list | tuple)
        and isinstance(other, list | tuple)
        and max(len(value), len(other)) > 1
    ):
        return _items(value, other)
    one, another = texts
    return (one, another) if one != another else (one, f"{another} ({_OTHER})")


def _windows(one: str, other: str) -> tuple[str, str]:
    if max(len(one), len(other)) <= _MOST_SHOWN:
        return escape_text(one), escape_text(other)
    place = _agreeing(one, other)
    return _window(one, place), _window(other, place)


def _agreeing(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike, in steps that halve."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _window(text: str, place: int) -> str:
    """Return a text around a place, and where that is."""
    start = max(place - _AROUND, 0)
    shown = escape_text(cut_text(text[start : start + _MOST_SHOWN + 1], _MOST_SHOWN))
    cut = "\u2026" if start else ""
    return f"{format_count(len(text), 'character')}, from {place:,} on: {cut}{shown}"


def _items(one: Sequence[Value], other: Sequence[Value]) -> tuple[str, str]:
    """Return the first item of two sequences of plain values that differs."""
    most = min(len(one), len(other))
    place = next((number for number in range(most) if not _is_equal(one[number], other[number])), most)
    return _item(one, place), _item(other, place)


def _item(items: Sequence[Value], place: int) -> str:
    count = format_count(len(items), "item")
    return (
        f"{count}, [{place}] is {cut_text(text_of(items[place]), _MOST_SHOWN)}"
        if place < len(items)
        else count
    )


def _is_equal(one: Value, other: Value) -> bool:
    return type(one) is type(other) and text_of(one) == text_of(other)

"""What is said of the tensors and values of two checkpoints, compared: all but the numbers in tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diff.content import MARKS, UNMARKED, Marks, StoredArray, array_of, compare_arrays
from inspector.diff.pairing import Left, pair_names, without
from inspector.diff.records import NameChange, Pair, Rule, Sharing, ValueChange
from inspector.diff.side import Side
from inspector.diff.tokens import Tokens
from inspector.model.checkpoint import Checkpoint, Key, OddKey, Tensor, ValueRow
from inspector.model.tensors.dtypes import PLAIN_ITEMSIZES
from inspector.model.tensors.numpy_arrays import DATA_MAKERS
from inspector.model.tensors.row_blocks import View
from inspector.model.values.text import text_of
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.records import dataclass
from inspector.safety.verdict import SafetyVerdict, judge
from inspector.units import cut_text, escape_text, format_count


def are_same_ways(one: Sequence[Key], other: Sequence[Key]) -> bool:
    """Return whether two ways have the same keys, of the same types."""
    return one is other or (one == other and list(map(type, one)) == list(map(type, other)))


def other_keys(one: Sequence[Key], other: Sequence[Key]) -> tuple[str, str]:
    """Return the first keys that two ways differ in, as Python writes them; odd ones by their short text."""
    a, b = next(pair for pair in zip(one, other, strict=False) if not are_same_ways(pair[:1], pair[1:]))
    return _text(a), _text(b)


def _text(key: Key) -> str:
    return str(key) if isinstance(key, OddKey) else repr(key)


# --- what two rows say of one tensor ------------------------------------------------------------------------


def compare_rows(
    one: Tensor, other: Tensor, *, has_pickles: bool, has_roles: bool = False, has_keys: bool = True
) -> tuple[str, ...]:
    """Return the facts that two rows differ in.

    What a file does not say is no difference: formats without a pickle name neither devices nor gradients.

    Args:
        has_roles: Whether both files say themselves what a tensor is for. Elsewhere that is told by its
            place and by what stands beside it.
    """
    found = {
        "key": has_keys and one.path == other.path and not are_same_ways(one.keys, other.keys),
        "device": one.device != other.device and NO_DEVICE not in {one.device, other.device},
        "dtype": one.dtype != other.dtype,
        "shape": one.shape != other.shape,
        "stride": one.shape == other.shape and one.stride != other.stride and _steps(one) != _steps(other),
        "layout": one.layout != other.layout,
        "requires_grad": has_pickles and one.requires_grad != other.requires_grad,
        "role": one.role != other.role and has_roles,
        "problem": one.problem != other.problem,
    }
    return tuple(fact for fact, differs in found.items() if differs)


def _steps(row: Tensor) -> tuple[tuple[int, int], ...] | None:
    if row.stride is None:
        return _contiguous(row)
    return (
        tuple((size, step) for size, step in zip(row.shape, row.stride, strict=True) if size > 1)
        if 0 not in row.shape
        else ()
    )


def _contiguous(row: Tensor) -> tuple[tuple[int, int], ...]:
    found, step = [], 1
    for size in reversed(row.shape):
        if size > 1:
            found.append((size, step))
        step *= size
    return tuple(reversed(found)) if step else ()


# ------------------------------------------------------------------------------------------------------------
# What a pickle says of a tensor and no row shows: its class, its quantizer, bits such as conjugation.

_PARAMETERS = frozenset({"_rebuild_parameter", "_rebuild_parameter_with_state"})
_TYPED = frozenset({"_rebuild_from_type", "_rebuild_from_type_v2"})
_QUANTIZED, _QUANTIZER = "_rebuild_qtensor", 4
_SPARSE = "_rebuild_sparse_tensor"
# How many arguments the row says itself; behind them stands what it does not.
_SAID = {
    "_rebuild_tensor": 4,
    "_rebuild_tensor_v2": 6,
    "_rebuild_tensor_v3": 7,
    "_rebuild_meta_tensor_no_storage": 4,
}
_MOST_NESTED = 8
_TENSOR, _PARAMETER = "torch.Tensor", "torch.nn.parameter.Parameter"


@dataclass(slots=True, kw_only=True)
class Unsaid:
    """What no row shows.

    Attributes:
        is_sparse: Whether it is sparse: of another layout, other settings are none that differ.
    """

    cls: str
    rest: list[Value]
    is_sparse: bool = False


def compare_unsaid(one: Value, other: Value, one_tokens: Tokens, other_tokens: Tokens) -> tuple[str, ...]:
    """Return `class` and `metadata` where the pickles of two tensors differ in them.

    A format without a pickle says neither, which is no difference.
    """
    if _is_plain(one) and _is_plain(other):
        return ()
    first, second = unsaid_of(one), unsaid_of(other)
    if first is None or second is None:
        return ()
    found = () if first.cls == second.cls else ("class",)
    is_same = first.is_sparse != second.is_sparse or one_tokens.of(first.rest) == other_tokens.of(second.rest)
    return found if is_same else (*found, "metadata")


def _is_plain(value: Value) -> bool:
    return (
        type(value) is Call
        and type(value.func) is Global
        and value.func.name == "_rebuild_tensor_v2"
        and isinstance(value.args, tuple)
        and len(value.args) <= _SAID["_rebuild_tensor_v2"]
    )


def unsaid_of(value: Value) -> Unsaid | None:
    """Return what no row shows of a tensor; None for what says nothing of the kind."""
    cls = _TENSOR
    rest: list[Value] = []
    for _ in range(_MOST_NESTED):
        if type(value) is not Call or type(value.func) is not Global or not isinstance(value.args, tuple):
            return None
        name, args = value.func.name, value.args
        if name in _PARAMETERS and args:
            cls = _PARAMETER
            rest += args[3:]
            value = args[0]
        elif name in _TYPED and len(args) == 4:
            cls = args[1].dotted if type(args[1]) is Global else cls
            value = Call(args[0], args[2], "reduce")
        elif name == _QUANTIZED:
            return Unsaid(cls=cls, rest=[*rest, *args[_QUANTIZER : _QUANTIZER + 1]])
        elif name == _SPARSE and len(args) == 2:  # its last part says whether it is coalesced; none means no
            data = args[1] if isinstance(args[1], tuple) else ()
            coalesced = (part for part in data[3:] if part is True)
            return Unsaid(cls=cls, rest=[*rest, *coalesced], is_sparse=True)
        elif name in _SAID:
            return Unsaid(cls=cls, rest=[*rest, *filter(_says, args[_SAID[name] :])])
        else:  # what it is made of has rows of its own
            return Unsaid(cls=cls, rest=rest)
    return None


def marks_of(value: Value) -> Marks:
    """Return whether a tensor is said to be conjugated or negated, and holds the elements of before."""
    if _is_plain(value):
        return UNMARKED
    found = unsaid_of(value)
    parts = [] if found is None else found.rest
    said = [key for part in parts if isinstance(part, Dict) for key, is_so in part.pairs if is_so is True]
    return frozenset(mark for mark in MARKS if mark in said)


def _says(value: Value) -> bool:
    """Return whether an argument says anything: torch writes an empty dictionary where there is nothing."""
    return value is not None and not (isinstance(value, Dict) and not value.pairs)


# --- values other than tensors, compared as trees: the leaves of both files by their paths ------------------

_AROUND = 24
_MOST_SHOWN = 120
_OTHER = "other contents"
_METADATA = "._metadata/"


@dataclass(slots=True, kw_only=True)
class Values:
    """What became of values."""

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
        rules: What became of the names of tensors: values beside them were moved with them.
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
        found = _renamed(rule, names, left) if left.a and left.b else []
        pairs, left = [*pairs, *found], _rest(left, found)
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
    starts = tuple(f"{place}/" if place else "" for place in places)
    return [row for row in rows if not names[row].startswith(starts)]


def _renamed(rule: Rule, names: tuple[list[str], list[str]], left: Left) -> list[tuple[int, int]]:
    """Pair values that went along with the tensors beside them, and the versions of renamed modules."""
    others = {names[1][row]: row for row in left.b}
    found = []
    for row in left.a:
        name = _new_name(rule, names[0][row])
        partner = None if name is None else others.pop(name, None)
        if partner is not None:
            found.append((row, partner))
    return found


def _new_name(rule: Rule, name: str) -> str | None:
    parts = (rule.a, rule.b)
    if all(part == "" or part.endswith("/") for part in parts):
        return rule.b + name[len(rule.a) :] if name.startswith(rule.a) else None
    place, _, rest = name.partition(_METADATA)
    module, _, leaf = rest.rpartition("/")
    is_of_modules = all(part == "" or part.endswith(".") for part in parts)
    if not is_of_modules or not rest or not f"{module}.".startswith(rule.a):
        return None
    renamed = (rule.b + f"{module}."[len(rule.a) :]).removesuffix(".")
    return f"{place}{_METADATA}{renamed}/{leaf}"


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


# --- tensors that share their memory in one of two files and have memory of their own in the other ----------

_Place = tuple[str, int]
_Found = tuple[Pair, _Place, _Place]


class _Run(NamedTuple):
    """The bytes of a storage that a tensor sees, from the first to the last, and whether it sees them all."""

    storage: str
    start: int
    end: int
    is_dense: bool

    def overlaps(self, other: _Run) -> bool:
        return self.storage == other.storage and self.start < other.end and other.start < self.end


def compare_sharing(a: Sequence[Tensor], b: Sequence[Tensor], pairs: Iterable[Pair]) -> tuple[Sharing, ...]:
    """Return the tensors that one file alone ties together, by their places in the first."""
    with_bytes: list[_Found] = [
        (pair, _place(a[pair.a]), _place(b[pair.b]))
        for pair in pairs
        if _has_bytes(a[pair.a]) and _has_bytes(b[pair.b])
    ]
    return (
        *_tied(a, with_bytes, "a"),
        *_tied(a, with_bytes, "b"),
        *_overlapping(a, b, with_bytes, "a"),
        *_overlapping(a, b, with_bytes, "b"),
    )


def _tied(rows: Sequence[Tensor], found: list[_Found], only_in: Literal["a", "b"]) -> list[Sharing]:
    groups: dict[_Place, list[tuple[Pair, _Place]]] = defaultdict(list)
    for pair, one, other in found:
        here, there = (one, other) if only_in == "a" else (other, one)
        groups[here].append((pair, there))
    return [
        Sharing(tuple(dict.fromkeys(rows[pair.a].path for pair, _ in group)), only_in)
        for group in groups.values()
        if len({there for _, there in group}) > 1
    ]


def _overlapping(
    a: Sequence[Tensor], b: Sequence[Tensor], found: list[_Found], only_in: Literal["a", "b"]
) -> list[Sharing]:
    """Return tensors that overlap and begin at other places of their storage, in one file alone."""
    storages: dict[str, list[Pair]] = defaultdict(list)
    places: set[_Place] = set()
    for pair, one, other in found:  # a place is looked at once: what stands there is the same memory
        place = one if only_in == "a" else other
        if place not in places:
            places.add(place)
            storages[place[0]].append(pair)
    tied = []
    for pairs in storages.values():
        if pairs[1:]:
            runs = [(_run(a[pair.a]), _run(b[pair.b]), pair) for pair in pairs]
            turned = runs if only_in == "a" else [(there, here, pair) for here, there, pair in runs]
            tied += [Sharing((a[one].path, a[other].path), only_in) for one, other in _crossing(turned)]
    return tied


def _crossing(runs: list[tuple[_Run, _Run, Pair]]) -> Iterator[tuple[int, int]]:
    """Yield neighbors that overlap here and not there; with gaps, two can stand between each other."""
    runs = sorted((one for one in runs if one[0].is_dense), key=lambda one: one[0].start)
    for before, after in pairwise(runs):
        if after[0].overlaps(before[0]) and not after[1].overlaps(before[1]):
            yield before[2].a, after[2].a


def _run(row: Tensor) -> _Run:
    size = PLAIN_ITEMSIZES.get(row.dtype, 1)
    start = (row.storage_offset or 0) * size
    seen = row.nbytes if row.stride is None else View(row.shape, row.stride, 0).reach * size
    return _Run(row.storage or "", start, start + seen, seen == row.nbytes)


def _has_bytes(row: Tensor) -> bool:
    return row.storage is not None and row.nbytes > 0 and row.layout != "storage"


def _place(row: Tensor) -> _Place:
    return row.storage or "", row.storage_offset or 0


# --- what loading the one file would import and call that loading the other would not -----------------------

_MOST_CALLS = 200
_NEWS = ("dangerous", "unknown")
"""Verdicts of names that say something: which class of storage a pickle names follows from its tensors."""
_CALL = "call"


def compare_programs(a: Checkpoint, b: Checkpoint) -> tuple[tuple[NameChange, ...], tuple[str, str]]:
    """Return what only one of the files imports or calls, what is worst first, and both safety verdicts."""
    first, second = judge(a), judge(b)
    found = [
        *_names(b, second, {use.name for use in a.globals}, "b"),
        *_names(a, first, {use.name for use in b.globals}, "a"),
    ]
    found.sort(key=lambda one: (_NEWS.index(one.verdict), one.only_in == "a"))
    calls = [*_calls(b, a, "b"), *_calls(a, b, "a")]
    return (*found, *calls[:_MOST_CALLS]), (first.verdict, second.verdict)


def _names(
    checkpoint: Checkpoint, safety: SafetyVerdict, others: set[str], only_in: Literal["a", "b"]
) -> Iterator[NameChange]:
    for use, verdict in zip(checkpoint.globals, safety.globals, strict=True):
        if use.name not in others and verdict in _NEWS:
            yield NameChange(use.name, verdict, only_in)


def _calls(checkpoint: Checkpoint, other: Checkpoint, only_in: Literal["a", "b"]) -> Iterator[NameChange]:
    """Yield calls of names that both files call, with arguments that the other never hands them.

    What only spells data is none of them: with other numbers in an array, its bytes are other arguments.
    """
    names = {call.name for call in other.needs.calls} - DATA_MAKERS
    texts = {call.text for call in other.needs.calls}
    for call in checkpoint.needs.calls:
        if call.path is None and call.name in names and call.text not in texts:
            yield NameChange(call.text, _CALL, only_in)

"""Which tensor of one checkpoint is which of the other: by place, rules, parameters, and bytes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from inspector.diff.content import Elements, elements_of, has_elements, read_elements
from inspector.diff.records import How, Pair, Rule
from inspector.diff.side import Side
from inspector.errors import CancelledError, CheckpointError
from inspector.model.checkpoint import ROLES, Checkpoint, Role, Tensor
from inspector.progress import Progress


class Left(NamedTuple):
    """The rows that have no partner yet, by number, in their order."""

    a: list[int]
    b: list[int]


def pair_names(a: Sequence[str], b: Sequence[str], left: Left) -> tuple[list[tuple[int, int]], Left]:
    """Pair rows of equal names; return the pairs, in the order of the first, and what is left.

    A name that stands twice is paired from its last place on: that is the one that loading keeps.
    """
    places: dict[str, int] = {}
    earlier: dict[str, list[int]] = {}
    for number in left.b:
        name = b[number]
        before = places.get(name)
        if before is not None:
            earlier.setdefault(name, []).append(before)
        places[name] = number
    pairs = []
    alone = []
    for number in reversed(left.a):
        name = a[number]
        partner = places.pop(name, None)
        if partner is None:
            alone.append(number)
            continue
        pairs.append((number, partner))
        more = earlier.get(name)
        if more:
            places[name] = more.pop()
    pairs.reverse()
    alone.reverse()
    return pairs, Left(alone, without(left.b, (partner for _, partner in pairs)))


def unique_names(names: Sequence[str], rows: Iterable[int]) -> dict[str, int]:
    """Return the rows by their names; a name that stands twice belongs to nobody."""
    found: dict[str, int] = {}
    twice = set()
    for row in rows:
        if found.setdefault(names[row], row) != row:
            twice.add(names[row])
    for name in twice:
        del found[name]
    return found


def without(rows: list[int], taken: Iterable[int]) -> list[int]:
    """Return rows but for those that are taken."""
    gone = set(taken)
    return [row for row in rows if row not in gone] if gone else rows


# ------------------------------------------------------------------------------------------------------------
# Names that differ by a prefix: wrappers of modules, and the place that a state dict stands at.
#
# A rule is believed where it explains several names at once. Wrappers that frameworks put around modules are
# known; of others, one of the two sides must have nothing in the place of the prefix, or both must be
# mappings: `encoder.` that became `decoder.` is another thing, until the bytes say that it is not.

WRAPPERS = (
    "module",
    "_orig_mod",
    "_fsdp_wrapped_module",
    "_checkpoint_wrapped_module",
    "_forward_module",
    "_fpw_module",
)
"""What DataParallel and its like, torch.compile, FSDP, activation checkpointing, Lightning's Fabric and
FairScale put before the names of what they wrap."""

_WRAPPER = re.compile(rf"(?:(?<=[./])|^)(?:(?:{'|'.join(WRAPPERS)})\.)+")
_STEP = re.compile(r"[^./]*[./]|[^./]+$")
_MOST_DROPPED = 6
_FEWEST = 2
_MOST_RULES = 32  # each costs a look at all names that are left

Alike = Callable[[int, int], bool]
"""Returns whether two rows have the same shape and dtype."""


class _Prefix(NamedTuple):
    a: str
    b: str


def unwrapped(name: str) -> str:
    """Return a name without the wrappers in it."""
    return _WRAPPER.sub("", name) if "m" in name else name


def pair_wrapped(a: Sequence[str], b: Sequence[str], left: Left) -> tuple[list[tuple[int, int]], Left]:
    """Pair rows whose names differ by wrappers alone; names that two rows of a file have then stay alone."""
    others = unique_names(b, left.b)
    own = unique_names(a, left.a)
    pairs = [(row, others[name]) for name, row in own.items() if name in others]
    return pairs, _rest(left, pairs)


def pair_moved(
    a: Sequence[str], b: Sequence[str], left: Left, alike: Alike
) -> tuple[list[tuple[int, int]], Left]:
    """Pair rows by the prefixes that explain most of their names.

    Args:
        a: The names of the rows of the first side, by number, without wrappers.
    """
    found: list[tuple[int, int]] = []
    votes = Counter(_votes(a, b, left))
    for prefix, count in votes.most_common(_MOST_RULES):
        if not (count >= _FEWEST or count == min(len(left.a), len(left.b))):
            break
        pairs = _explained(prefix, a, b, left)
        same = sum(alike(*pair) for pair in pairs)
        if pairs and 2 * same >= len(pairs):
            found += pairs
            left = _rest(left, pairs)
    return found, left


def difference(a: str, b: str) -> tuple[str, str]:
    """Return the steps of two names in which they differ, without those that both begin and end with."""
    one, other = _STEP.findall(a), _STEP.findall(b)
    most = min(len(one), len(other))
    end = next((place for place in range(most) if one[-1 - place] != other[-1 - place]), most)
    most -= end
    start = next((place for place in range(most) if one[place] != other[place]), most)
    return "".join(one[start : len(one) - end]), "".join(other[start : len(other) - end])


def _votes(a: Sequence[str], b: Sequence[str], left: Left) -> Iterator[_Prefix]:
    """Yield a prefix for each name that has one partner at most when both lose some steps."""
    endings = _endings(b, left.b)
    own = _endings(a, left.a)
    for row in left.a:
        for prefix, rest in _divided(a[row]):
            partner = endings.get(rest, -1)
            if partner >= 0 and own[rest] == row:
                vote = _Prefix(prefix, b[partner][: len(b[partner]) - len(rest)])
                if _is_plausible(vote):
                    yield vote
                break


def _is_plausible(prefix: _Prefix) -> bool:
    return not (prefix.a and prefix.b) or (prefix.a[-1] == prefix.b[-1] == "/")


def _endings(names: Sequence[str], rows: list[int]) -> dict[str, int]:
    """Return which row has a name that ends so, behind a step; -1 where several have."""
    found: dict[str, int] = {}
    for row in rows:
        for _, rest in _divided(names[row]):
            if found.setdefault(rest, row) != row:
                found[rest] = -1
    return found


def _divided(name: str) -> Iterator[tuple[str, str]]:
    """Yield a name cut behind each of its first steps."""
    yield "", name
    for count, match in enumerate(_STEP.finditer(name)):
        if count == _MOST_DROPPED or match.end() == len(name):
            return
        yield name[: match.end()], name[match.end() :]


def _explained(prefix: _Prefix, a: Sequence[str], b: Sequence[str], left: Left) -> list[tuple[int, int]]:
    others = unique_names(b, (row for row in left.b if b[row].startswith(prefix.b)))
    own = unique_names(a, (row for row in left.a if a[row].startswith(prefix.a)))
    start = len(prefix.a)
    wanted = ((row, others.get(prefix.b + name[start:])) for name, row in own.items())
    return [(row, partner) for row, partner in wanted if partner is not None]


def _rest(left: Left, pairs: list[tuple[int, int]]) -> Left:
    return Left(without(left.a, (row for row, _ in pairs)), without(left.b, (row for _, row in pairs)))


# ------------------------------------------------------------------------------------------------------------
# The order in which rows find their partners: by place, then by rules; slots of optimizers by parameter.

Pairs = list[tuple[int, int]]


class Pairing:
    """Pairs the tensor rows of two sides."""

    def __init__(self, a: Side, b: Side, progress: Progress) -> None:
        self._a, self._b = a, b
        self._rows_a, self._rows_b = a.checkpoint.tensors, b.checkpoint.tensors
        self._progress = progress
        self.pairs: list[Pair] = []
        self.left = Left(list(range(len(self._rows_a))), list(range(len(self._rows_b))))

    def run(self) -> None:
        """Pair all rows but those that only their bytes can show to be the same."""
        a, b = [row.path for row in self._rows_a], [row.path for row in self._rows_b]
        slots = Left(_named_slots(self._rows_a), _named_slots(self._rows_b))
        self.left = Left(without(self.left.a, slots.a), without(self.left.b, slots.b))
        self._take(pair_names(a, b, self.left)[0], "path")
        self._pair_shared(a, b)
        self._pair_by_rules(a, b)
        slots = self._pair_slots(slots)
        # Where only one of the files names the parameter; two names at one place are two parameters.
        plain = self.left
        self._take(pair_names(a, b, Left(slots.a, plain.b))[0], "path")
        self._take(pair_names(a, b, Left(plain.a, slots.b))[0], "path")
        taken = self._partners()
        self.left = Left(
            sorted({*plain.a, *slots.a} - taken[0]),
            sorted({*plain.b, *slots.b} - taken[1]),
        )

    def add(self, pairs: Pairs, how: How) -> None:
        """Add pairs that were found by other means."""
        self._take(pairs, how)

    def rules(self, pairs: Iterable[Pair] | None = None) -> tuple[Rule, ...]:
        """Return what became of the names of pairs, of all by default; the rules that explain most first."""
        counts: Counter[tuple[str, str, How]] = Counter()
        for pair in self.pairs if pairs is None else pairs:
            a, b = self._rows_a[pair.a].path, self._rows_b[pair.b].path
            if a != b and pair.how != "shared":
                counts[(*difference(a, b), pair.how)] += 1
        return tuple(Rule(a, b, count, how) for (a, b, how), count in counts.most_common())

    def _take(self, pairs: Pairs, how: How) -> None:
        self._progress.advance()
        self.pairs += [Pair(a, b, how) for a, b in pairs]
        left = self.left
        self.left = Left(without(left.a, [a for a, _ in pairs]), without(left.b, [b for _, b in pairs]))

    def _partners(self) -> tuple[set[int], set[int]]:
        return {pair.a for pair in self.pairs}, {pair.b for pair in self.pairs}

    def _pair_shared(self, a: Sequence[str], b: Sequence[str]) -> None:
        """Pair what one file lists at two places, and the other once since it keeps one object at both."""
        self._take([(there, here) for here, there in _listed(self._a, a, b, self.left.b)], "shared")
        self._take(_listed(self._b, b, a, self.left.a), "shared")

    def _pair_by_rules(self, a: Sequence[str], b: Sequence[str]) -> None:
        if not (self.left.a and self.left.b):
            return
        a, b = list(map(unwrapped, a)), list(map(unwrapped, b))
        self._take(pair_wrapped(a, b, self.left)[0], "prefix")
        for role in (*ROLES, None):
            among = Left(_of_role(self._rows_a, self.left.a, role), _of_role(self._rows_b, self.left.b, role))
            if among.a and among.b:
                self._take(pair_moved(a, b, among, self._alike)[0], "prefix")

    def _pair_slots(self, slots: Left) -> Left:
        """Pair slots of optimizers whose parameters both files name; return those that are left."""
        names: dict[str, str] = {}
        for pair in self.pairs:
            one, other = self._rows_a[pair.a], self._rows_b[pair.b]
            if one.keys and other.keys:
                names[str(one.keys[-1])] = str(other.keys[-1])
        a = _slot_names(self._a.checkpoint, slots.a, names)
        b = _slot_names(self._b.checkpoint, slots.b, {})
        pairs, left = pair_names(a, b, slots)
        for number, partner in pairs:
            is_same = self._rows_a[number].path == self._rows_b[partner].path
            self.pairs.append(Pair(number, partner, "path" if is_same else "parameter"))
        return left

    def _alike(self, a: int, b: int) -> bool:
        return self._rows_a[a].shape == self._rows_b[b].shape


def _named_slots(rows: Iterable[Tensor]) -> list[int]:
    return [number for number, row in enumerate(rows) if row.parameter is not None]


def _slot_names(checkpoint: Checkpoint, slots: list[int], names: dict[str, str]) -> list[str]:
    """Return, for each row, what a slot is called by its optimizer, its parameter and itself."""
    found = [""] * len(checkpoint.tensors)
    paths = [(optimizer.keys, optimizer.path) for optimizer in checkpoint.optimizers]
    for number in slots:
        row = checkpoint.tensors[number]
        parameter = cast("str", row.parameter)
        place = next((path for keys, path in paths if row.keys[: len(keys)] == keys), "")
        found[number] = "\0".join((place, unwrapped(names.get(parameter, parameter)), row.slot or ""))
    return found


def _listed(side: Side, names: Sequence[str], others: Sequence[str], rows: list[int]) -> Pairs:
    """Return rows of the other side, each with the row of this one that stands for it elsewhere."""
    if not side.aliases or not rows:
        return []
    places = {name: number for number, name in enumerate(names)}
    found = ((row, places.get(side.listed_at(others[row]))) for row in rows)
    return [(row, place) for row, place in found if place is not None]


def _of_role(rows: Sequence[Tensor], numbers: list[int], role: Role | None) -> list[int]:
    return numbers if role is None else [number for number in numbers if rows[number].role == role]


# ------------------------------------------------------------------------------------------------------------
# Tensors that stand in the other file under a name that nothing explains, found by their bytes.
#
# Only tensors of one dtype and shape are asked for, and most are read at their beginning alone. What many
# tensors have (zeros, ones, a number alone) proves nothing, and neither do bytes that two rows of a file
# have.

_HEAD_NBYTES = 1 << 14
_Kind = tuple[str, tuple[int, ...], str]


class _Row(NamedTuple):
    side: Side
    number: int
    elements: Elements


def pair_contents(a: Side, b: Side, left: Left, progress: Progress) -> list[tuple[int, int]]:
    """Pair rows of equal bytes, where only one row of each file has those."""
    kinds_a, kinds_b = _by_kind(a, left.a), _by_kind(b, left.b)
    found: list[tuple[int, int]] = []
    for kind, rows in kinds_a.items():
        others = kinds_b.get(kind)
        if others:
            found += _pair_kind(rows, others, progress)
    found.sort()
    return found


def _by_kind(side: Side, numbers: list[int]) -> dict[_Kind, list[_Row]]:
    found: dict[_Kind, list[_Row]] = defaultdict(list)
    for number in numbers:
        row = side.checkpoint.tensors[number]
        elements = _elements(row)
        if elements is not None:
            found[row.dtype, row.shape, row.layout].append(_Row(side, number, elements))
    return found


def _elements(row: Tensor) -> Elements | None:
    if not has_elements(row):
        return None
    try:
        elements = elements_of(row)
    except CheckpointError:
        return None
    return elements if elements.view.numel > 1 else None


def _pair_kind(rows: list[_Row], others: list[_Row], progress: Progress) -> Iterator[tuple[int, int]]:
    heads, other_heads = _group(rows, _HEAD_NBYTES, progress), _group(others, _HEAD_NBYTES, progress)
    for head, group in heads.items():
        others_there = other_heads.get(head)
        if not others_there:
            continue
        whole, other_whole = _group(group, None, progress), _group(others_there, None, progress)
        for digest, same in whole.items():
            partners = other_whole.get(digest, [])
            if len(same) == len(partners) == 1:
                yield same[0].number, partners[0].number


def _group(rows: list[_Row], most: int | None, progress: Progress) -> dict[bytes, list[_Row]]:
    found: dict[bytes, list[_Row]] = defaultdict(list)
    for row in rows:
        digest = _digest(row, most, progress)
        if digest is not None:
            found[digest].append(row)
    return found


def _digest(row: _Row, most: int | None, progress: Progress) -> bytes | None:
    """Return the digest of a row's elements, or of the first of them; None of what proves nothing."""
    found = hashlib.blake2b(digest_size=16)
    is_constant = most is None
    first = b""
    try:
        for block in _read(row, most, progress):
            found.update(block)
            first = first or block[: row.elements.itemsize]
            is_constant = is_constant and block == first * (len(block) // len(first))
    except CancelledError:
        raise
    except CheckpointError:
        return None
    return None if is_constant else found.digest()


def _read(row: _Row, most: int | None, progress: Progress) -> Iterator[bytes]:
    elements = row.elements
    if most is not None and elements.is_plain:
        most -= most % elements.itemsize
        head = min(most // elements.itemsize, elements.view.numel)
        elements = elements._replace(view=elements.view._replace(shape=(head,), stride=(1,)))
    left = elements.nbytes if most is None else most
    for block in read_elements(row.side, elements, progress):
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return

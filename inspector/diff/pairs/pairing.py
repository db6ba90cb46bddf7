"""The order in which rows find their partners: by place, then by rules; slots of optimizers by parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

from inspector.diff.pairs.paths import Left, pair_names, without
from inspector.diff.pairs.prefixes import difference, pair_moved, pair_wrapped, unwrapped
from inspector.diff.records import How, Pair, Rule
from inspector.diff.side import Side
from inspector.model.checkpoint import ROLES, Checkpoint, Role, Tensor
from inspector.progress import Progress

Pairs = list[tuple[int, int]]


class Pairing:
    """Pairs the tensor rows of two sides.

    Attributes:
        pairs: The pairs so far.
        left: The rows that have no partner yet, by number.
    """

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

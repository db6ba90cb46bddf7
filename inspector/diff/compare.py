"""Compares two checkpoints: what is said of their tensors and values, what loading runs, and their bytes."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from typing import NamedTuple

from inspector.child import Worker
from inspector.containers.notes import NoteKind
from inspector.containers.opening import stamp_at
from inspector.containers.source import Stamp
from inspector.diff.containers import are_comparable, compare_containers, holders_of
from inspector.diff.content import Differences, Equalities, Marks, Tolerance, array_of, has_elements
from inspector.diff.facts import (
    compare_programs,
    compare_rows,
    compare_sharing,
    compare_unsaid,
    compare_values,
    marks_of,
)
from inspector.diff.pairing import Pairing, pair_contents
from inspector.diff.records import (
    ArrayPair,
    ContainerChange,
    Diff,
    Mode,
    Numbers,
    Pair,
    TensorChange,
    ValueChange,
)
from inspector.diff.rest import Rest, StorageDigests, compare_records, compare_storages, name_rest
from inspector.diff.side import Side, open_side
from inspector.diff.tokens import Tokens
from inspector.errors import CancelledError, CheckpointError, ContainerError, ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.progress import Progress
from inspector.records import dataclass, replace

_SAME_ARRAY = frozenset({"key", "value", "bits"})
"""What is said of an array whose numbers, type, shape and order are the same."""
_UNLISTED = frozenset({NoteKind.TOO_DEEP, NoteKind.UNLISTED})


class Chosen(NamedTuple):
    """Rows of a checkpoint that are to be compared, by number."""

    tensors: frozenset[int]
    values: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How two checkpoints are to be compared.

    Attributes:
        choose: Returns the rows that matter; None for all. A pair matters if one of its rows does.
    """

    mode: Mode = "equal"
    tolerance: Tolerance = Tolerance()
    choose: Callable[[Checkpoint], Chosen] | None = None


def compare_paths(a: str, b: str, wish: Wish, progress: Progress | None = None) -> Diff:
    """Compare the checkpoints at two paths."""
    progress = progress or Progress()
    with open_both(a, b, progress) as (one, other):
        return compare_sides(one, other, wish, progress)


@contextmanager
def open_both(a: str, b: str, progress: Progress) -> Iterator[tuple[Side, Side]]:
    """Open two checkpoints; errors as those of `open_side`."""
    with open_side(a, progress) as one, open_side(b, progress) as other:
        yield one, other


def compare_sides(a: Side, b: Side, wish: Wish, progress: Progress) -> Diff:
    """Compare two open checkpoints; errors as those of `compare_paths`."""
    chosen = _choose(a.checkpoint, b.checkpoint, wish)
    progress.start("pairing tensors")
    pairing = Pairing(a, b, progress)
    pairing.run()
    if wish.mode != "none" and pairing.left.a and pairing.left.b:
        progress.start("looking for renamed tensors")
        pairing.add(pair_contents(a, b, pairing.left, progress), "content")
    pairs = tuple(sorted(pairing.pairs))
    progress.start("comparing values")
    work = DEFAULT_LIMITS.counted(progress.advance)
    rules = pairing.rules()
    digests = StorageDigests(a, progress), StorageDigests(b, progress)
    has_bytes = wish.mode != "none"
    contents = (digests[0].of, digests[1].of) if has_bytes else (None, None)
    containers = compare_containers(a, b, pairs, work.look, contents)
    values = compare_values(a, b, rules, work.look, containers.equal_sets)
    comparing = _Tensors(a, b, wish, work.look, progress)
    arrays = _Arrays(a, b, wish, progress)
    first, second = a.checkpoint, b.checkpoint
    shown = [pair for pair in pairs if _matters(pair, chosen)]
    names, verdicts = compare_programs(first, second)
    tensors = comparing.run(shown)
    records = compare_records(a, b, progress)
    storages = compare_storages(a, b, pairs, tensors, digests) if has_bytes and chosen is None else Rest()
    diff = Diff(
        a=first,
        b=second,
        mode=wish.mode,
        pairs=tuple(shown),
        removed=_chosen(pairing.left.a, chosen and chosen[0].tensors),
        added=_chosen(pairing.left.b, chosen and chosen[1].tensors),
        rules=rules if chosen is None else pairing.rules(shown),
        tensors=tensors,
        values_removed=_chosen(values.removed, chosen and chosen[0].values),
        values_added=_chosen(values.added, chosen and chosen[1].values),
        values=arrays.run(
            change
            for change in values.changed
            if chosen is None or change.a in chosen[0].values or change.b in chosen[1].values
        ),
        sharing=compare_sharing(first.tensors, second.tensors, shown),
        names=names,
        records=(*records.changed, *storages.changed),
        uncompared=(*records.uncompared, *storages.uncompared),
        containers=_held(containers.changed, chosen, first, second),
        reordered=_held(containers.reordered, chosen, first, second),
        has_containers=are_comparable(a, b),
        verdicts=verdicts,
        compared_nbytes=comparing.nbytes,
        tolerated=comparing.tolerated,
        tolerated_values=arrays.tolerated,
        unlisted=containers.is_cut
        or values.is_cut
        or comparing.is_cut
        or any(note.kind in _UNLISTED for note in (*first.notes, *second.notes)),
    )
    if diff.differs or not has_bytes or chosen is not None:
        return diff
    return replace(diff, uncompared=(*diff.uncompared, *name_rest(a, b, progress)))


def _choose(a: Checkpoint, b: Checkpoint, wish: Wish) -> tuple[Chosen, Chosen] | None:
    """Return the rows that matter of each; None for all. Of no rows at all nothing is equal."""
    if wish.choose is None:
        return None
    chosen = wish.choose(a), wish.choose(b)
    if not any(rows for one in chosen for rows in one):
        raise PlanError("neither checkpoint has a row to compare", remedy="look at what show --filter finds")
    return chosen


def _chosen(rows: Iterable[int], among: frozenset[int] | None) -> tuple[int, ...]:
    return tuple(row for row in rows if among is None or row in among)


def _held(
    changes: tuple[ContainerChange, ...],
    chosen: tuple[Chosen, Chosen] | None,
    a: Checkpoint,
    b: Checkpoint,
) -> tuple[ContainerChange, ...]:
    if chosen is None or not changes:
        return changes
    first, second = (set(holders_of(_paths(*one))) for one in zip((a, b), chosen, strict=True))
    return tuple(change for change in changes if change.a_path in first or change.b_path in second)


def _paths(checkpoint: Checkpoint, chosen: Chosen) -> Iterator[str]:
    yield from (checkpoint.tensors[row].path for row in chosen.tensors)
    yield from (checkpoint.values[row].path for row in chosen.values)


def _matters(pair: Pair, chosen: tuple[Chosen, Chosen] | None) -> bool:
    return chosen is None or pair.a in chosen[0].tensors or pair.b in chosen[1].tensors


class _Tensors:
    def __init__(self, a: Side, b: Side, wish: Wish, look: Callable[[], object], progress: Progress) -> None:
        self._a, self._b = a, b
        self._rows = a.checkpoint.tensors, b.checkpoint.tensors
        self._wish = wish
        self._look = look
        self._progress = progress
        self._tokens = Tokens(a.data, look), Tokens(b.data, look)
        self._equalities = Equalities(a, b, progress)
        self._has_pickles = a.checkpoint.safety is not None and b.checkpoint.safety is not None
        self._has_roles = a.checkpoint.is_program and b.checkpoint.is_program
        self.tolerated = 0

    @property
    def nbytes(self) -> int:
        return self._equalities.nbytes

    @property
    def is_cut(self) -> bool:
        return any(one.is_cut for one in self._tokens)

    def run(self, pairs: list[Pair]) -> tuple[TensorChange, ...]:
        rows, _ = self._rows
        total = 0 if self._wish.mode == "none" else sum(rows[pair.a].nbytes for pair in pairs)
        self._progress.start("comparing tensors", total)
        found = []
        with Differences(self._a, self._b, self._wish.tolerance) as differences:
            for pair in pairs:
                self._look()
                change = self._change(pair, differences)
                if change is not None:
                    found.append(change)
        return tuple(found)

    def _change(self, pair: Pair, differences: Differences) -> TensorChange | None:
        one, other = self._rows[0][pair.a], self._rows[1][pair.b]
        what = compare_rows(
            one,
            other,
            has_pickles=self._has_pickles,
            has_roles=self._has_roles,
            has_keys=self._a.has_keys and self._b.has_keys,
        )
        if pair.how == "shared":  # each place gives it a role of its own
            what = tuple(fact for fact in what if fact != "role")
        what += compare_unsaid(self._a.tensors[pair.a], self._b.tensors[pair.b], *self._tokens)
        if self._wish.mode == "none" or pair.how == "content" or not _can_be_compared(one, other):
            return TensorChange(pair, what) if what else None
        why, numbers = "", None
        if one.dtype == other.dtype:
            answer, why = self._equalities.compare(one, other, self._marks(pair))
            what += {"equal": (), "bits": ("bits",), "differs": ("values",), "unread": ("unread",)}[answer]
        if self._wish.mode == "numbers" and ("values" in what or "bits" in what or "dtype" in what):
            try:
                numbers = differences.compare(one, other, self._progress, self._marks(pair))
            except (CancelledError, ExportError):
                raise
            except CheckpointError as error:
                why, what = str(error), (*what, "unread")
            else:
                self.tolerated += "values" in what and not numbers.differing and numbers.max_abs != 0
                what = _with_numbers(what, numbers)
        return TensorChange(pair, what, numbers, why) if what else None

    def _marks(self, pair: Pair) -> tuple[Marks, Marks]:
        return marks_of(self._a.tensors[pair.a]), marks_of(self._b.tensors[pair.b])


class _Arrays:
    """Compares the numbers of arrays among the values, where that is wished."""

    def __init__(self, a: Side, b: Side, wish: Wish, progress: Progress) -> None:
        self._sides = a, b
        self._wish = wish
        self._progress = progress
        self.tolerated = 0

    def run(self, changes: Iterable[ValueChange]) -> tuple[ValueChange, ...]:
        if self._wish.mode != "numbers":
            return tuple(changes)
        with Differences(*self._sides, self._wish.tolerance) as differences:
            found = [self._measured(change, differences) for change in changes]
        return tuple(change for change in found if change.what)

    def _measured(self, change: ValueChange, differences: Differences) -> ValueChange:
        if not change.is_measurable:
            return change
        numbers = measure_arrays(self._sides, ArrayPair(change.a, change.b), differences, self._progress)
        self.tolerated += "values" in change.what and not numbers.differing and numbers.max_abs != 0
        what = _with_numbers(change.what, numbers)
        if _SAME_ARRAY.issuperset(what):
            what = tuple(fact for fact in what if fact != "value")
        return change._replace(what=what, numbers=numbers)


def measure_arrays(
    sides: tuple[Side, Side], pair: ArrayPair, differences: Differences, progress: Progress
) -> Numbers:
    """Compare the numbers of two arrays among the values."""
    one, other = (array_of(side.values[row], side.data) for side, row in zip(sides, pair, strict=True))
    assert one is not None  # noqa: S101 - a pair is one of arrays
    assert other is not None  # noqa: S101 - as above
    return differences.compare_arrays(one, other, sides[0].checkpoint.values[pair.a].path, progress)


def _can_be_compared(one: Tensor, other: Tensor) -> bool:
    return has_elements(one) and has_elements(other) and prod(one.shape) == prod(other.shape)


def _with_numbers(what: tuple[str, ...], numbers: Numbers) -> tuple[str, ...]:
    """Return what differs, now that it is known by how much."""
    kept = [one for one in what if one not in {"values", "bits"}]
    if numbers.differing:
        kept.append("values")
    elif numbers.other_bits:
        kept.append("bits")
    return tuple(kept)


# ------------------------------------------------------------------------------------------------------------
# By how much pairs of two compared files differ, asked one after the other while the files stay open.

_POLL_S = 0.05
_AGAIN = "compare the files again"


class ChangedError(ContainerError):
    """A file is another one than when it was compared, so that what was found is no longer true."""


class Measuring:
    """Opens two files and keeps them, and the child that computes, until all is known; any thread may ask."""

    def __init__(self, a: str, b: str) -> None:
        self._paths = a, b
        self._stamps: tuple[Stamp | None, ...] = ()
        self._lock = allocate_lock()
        self._stack = ExitStack()
        self._sides: tuple[Side, Side] | None = None
        self._worker = Worker()
        self._is_closed = False
        self.found: dict[Pair | ArrayPair, Numbers | CheckpointError] = {}
        """By how much pairs differ, or why that cannot be told; what is cancelled leaves what it has."""

    def compare(self, progress: Progress) -> Diff:
        """Compare both files, without their numbers."""
        with self._asked(progress) as sides:
            diff = compare_sides(*sides, Wish(), progress)
            self._stamps = diff.a.stamp, diff.b.stamp
            return diff

    def measure(self, pairs: Collection[Pair | ArrayPair], progress: Progress) -> None:
        """Compare the numbers of pairs of tensors, or of arrays among the values, that are not `found`."""
        with self._asked(progress) as (a, b):
            wanted = [pair for pair in pairs if pair not in self.found]
            with Differences(a, b, worker=self._worker) as differences:
                self._measure((a, b), wanted, differences, progress)
            self._refuse_changed()
            self._let_go()

    @contextmanager
    def _asked(self, progress: Progress) -> Iterator[tuple[Side, Side]]:
        while not self._lock.acquire(timeout=_POLL_S):
            progress.advance()
        try:
            if self._is_closed:
                raise CancelledError
            yield self._open(progress)
        finally:
            self._lock.release()
            if self._is_closed:
                self.close()

    def _measure(
        self,
        sides: tuple[Side, Side],
        pairs: Collection[Pair | ArrayPair],
        differences: Differences,
        progress: Progress,
    ) -> None:
        a, b = sides
        rows, others = a.checkpoint.tensors, b.checkpoint.tensors
        tensors = [pair for pair in pairs if isinstance(pair, Pair)]
        progress.start("comparing numbers", sum(rows[pair.a].nbytes for pair in tensors))
        asked = (
            (pair, rows[pair.a], others[pair.b], (marks_of(a.tensors[pair.a]), marks_of(b.tensors[pair.b])))
            for pair in tensors
        )
        for pair, numbers in differences.compare_all(asked, progress):
            self.found[pair] = numbers
        for arrays in (pair for pair in pairs if isinstance(pair, ArrayPair)):
            try:
                self.found[arrays] = measure_arrays(sides, arrays, differences, progress)
            except (CancelledError, ExportError):
                raise
            except CheckpointError as error:
                self.found[arrays] = error

    def close(self) -> None:
        """Close the files and end the child; where somebody asks just now, as soon as that is over."""
        self._is_closed = True
        if self._lock.acquire(blocking=False):
            self._let_go()
            self._lock.release()

    def _open(self, progress: Progress) -> tuple[Side, Side]:
        self._refuse_changed()
        if self._sides is None:
            self._sides = self._stack.enter_context(open_both(*self._paths, progress))
            self._refuse_changed()  # they are others if they were replaced just before they were opened
        return self._sides

    def _refuse_changed(self) -> None:
        """Raise an error where a path leads to another file than the one that was compared, or to none."""
        for path, stamp in zip(self._paths, self._stamps, strict=False):
            now = stamp_at(path)
            if now != stamp:
                self.found = {}
                self._let_go()
                gone = "a file that was compared is no longer there"
                what = gone if now is None else "a file has changed since it was compared"
                raise ChangedError(what, where=path, remedy=_AGAIN)

    def _let_go(self) -> None:
        self._sides = None
        self._stack.close()
        self._worker.end()

"""What is wrong with the bytes of tensors, and which rows of the tree that marks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from inspector.containers.notes import NoteKind
from inspector.model.checkpoint import Checkpoint, Storage
from inspector.model.once import once
from inspector.model.tensors.views import torch_words
from inspector.overriding import override


class Damage(StrEnum):
    """What is wrong with a tensor, worst first; also what `is:` finds in a search."""

    MISSING = "missing"
    """The file does not hold its bytes, or not all of them."""
    IMPOSSIBLE = "impossible"
    """It cannot be what the pickle says."""
    DOUBLED = "doubled"
    """Its bytes are those of another storage, too, or the file holds two records for them."""


ANY_DAMAGE = "damaged"
WORDS = {
    Damage.MISSING: "Its bytes are missing from the file.",
    Damage.IMPOSSIBLE: "It cannot be what the file says of it.",
    Damage.DOUBLED: "Its bytes are those of another storage, too, or stand twice in the file.",
}


@once
def damage_of(checkpoint: Checkpoint) -> Mapping[int, Damage]:
    """Return what is wrong with tensors, by their indexes; of nearly all files nothing."""
    storages, tensors = dict(_damaged_storages(checkpoint)), checkpoint.tensors
    found: dict[int, Damage] = {}
    if not storages and all(tensor.problem is None for tensor in tensors):
        return found
    for index, tensor in enumerate(tensors):
        damage = None if tensor.storage is None else storages.get(tensor.storage)
        if damage is not Damage.MISSING and tensor.problem is not None and torch_words(tensor.problem):
            damage = Damage.IMPOSSIBLE
        if damage is not None:
            found[index] = damage
            if tensor.part_of is not None:
                found.setdefault(tensor.part_of, damage)
    return found


def _damaged_storages(checkpoint: Checkpoint) -> Iterator[tuple[str, Damage]]:
    """Yield what is wrong with storages by their keys; what is worse comes later."""
    if any(note.kind is NoteKind.OVERLAP for note in checkpoint.notes):
        yield from _doubled(checkpoint)
    for note in checkpoint.notes:
        if note.kind is NoteKind.SHARED_NAME and not note.part:  # those of a part are keys there
            yield from ((key, Damage.DOUBLED) for key in note.values)
    for row in checkpoint.storages:
        if not (row.missing or row.pieces or row.expected_nbytes is not None):
            continue
        if row.expected_nbytes is not None:
            is_short = row.expected_nbytes > row.nbytes
            yield row.key, Damage.MISSING if is_short else Damage.IMPOSSIBLE
        if (row.missing and row.nbytes) or any(not piece.part for piece in row.pieces):
            yield row.key, Damage.MISSING


def _doubled(checkpoint: Checkpoint) -> Iterator[tuple[str, Damage]]:
    placed = [row for row in checkpoint.storages if row.file_offset is not None and row.nbytes]
    farthest: Storage | None = None
    for row in sorted(placed, key=lambda row: (row.part, row.file_offset)):
        if farthest is None or farthest.part != row.part or _end(farthest) <= _start(row):
            farthest = row
            continue
        yield row.key, Damage.DOUBLED
        yield farthest.key, Damage.DOUBLED
        farthest = max(farthest, row, key=_end)


def _start(row: Storage) -> int:
    return row.file_offset or 0


def _end(row: Storage) -> int:
    return _start(row) + row.nbytes


class Marks:
    """The rows of a tree that something is wrong with, each with a word."""

    def __init__(self, words: Mapping[int, str]) -> None:
        """Take the words by row."""
        self.words = words
        self._rows: dict[str, list[int]] = {}
        for row in sorted(words):
            self._rows.setdefault(words[row], []).append(row)

    @override
    def __eq__(self, other: object) -> bool:
        """Return whether the same is wrong with the same rows."""
        return isinstance(other, Marks) and self.words == other.words

    @override
    def __hash__(self) -> int:
        """Return what is the same for equal marks."""
        return len(self.words)

    def __bool__(self) -> bool:
        """Return whether anything is wrong at all."""
        return bool(self.words)

    def of(self, first: int, last: int) -> str:
        """Return what is wrong with a row, or how often from it to its last one: `3 missing, 1 NaN`."""
        if first in self.words:
            return self.words[first]
        counts = [(_among(rows, first, last), word) for word, rows in self._rows.items()]
        return ", ".join(f"{count:,} {word}" for count, word in sorted(counts, reverse=True) if count)

    def count(self, first: int, last: int) -> int:
        """Return how many rows from one to another something is wrong with."""
        return sum(_among(rows, first, last) for rows in self._rows.values())


def _among(rows: Sequence[int], first: int, last: int) -> int:
    return bisect_right(rows, last) - bisect_left(rows, first)


NO_MARKS = Marks({})


def damage_marks(checkpoint: Checkpoint, tensor_nodes: Sequence[int]) -> Marks:
    """Mark the rows of damaged tensors."""
    damaged = damage_of(checkpoint)
    shown = ((tensor_nodes[index], str(damage)) for index, damage in damaged.items())
    return Marks({node: word for node, word in shown if node >= 0})

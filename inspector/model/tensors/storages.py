"""Storages: what the file holds of each, and how much of that its tensors view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from inspector.containers.container import Container
from inspector.model.checkpoint import Piece, Storage, Tensor
from inspector.model.tensors.views import shared_text
from inspector.model.values.text import device_label, int_text

Span = tuple[int, int]
_MOST = (1 << 63) - 1
_MOST_KNOWN = 64


class Views:
    """What tensors view of each storage: bytes from (inclusive) and to (exclusive), holes included.

    Nearly all storages have one tensor, so only the others get a list; and many are viewed alike.
    """

    __slots__ = ("_known", "first", "more")

    def __init__(self) -> None:
        self._known: dict[Span, Span] = {}
        self.first: dict[str, Span] = {}
        self.more: defaultdict[str, list[Span]] = defaultdict(list)

    def add(self, key: str, span: Span) -> None:
        """Add what one tensor views."""
        if key in self.first:
            self.more[key].append(span)
        else:
            self.first[key] = self._known.get(span) or self._remember(span)

    def _remember(self, span: Span) -> Span:
        """Return a span, which may be known now: a file can make their hashes collide, so only few are."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        return self._known.setdefault(span, span)

    def total(self, key: str) -> tuple[int, int]:
        """Return how many bytes of a storage are viewed at least once, and by how many tensors."""
        first = self.first.get(key)
        if first is None:
            return 0, 0
        start, end = first
        if key not in self.more:
            return end - start, 1
        spans = [(start, end), *self.more[key]]
        return _length_of_union(spans), len(spans)


def build_storages(container: Container, views: Views) -> tuple[Storage, ...]:
    """Describe every storage, in the order of first use."""
    rows: list[Storage] = []
    stored, first, more, new = container.stored, views.first, views.more, tuple.__new__
    parts, gathered = container.parts, container.gathered
    device, labelled = "", None
    for key, (_, dtype, itemsize, location, numel, _, _) in container.storage_ids.items():
        if location != labelled:  # seldom: neighbours lie together
            device, labelled = device_label(location), location
        declared, place = numel * itemsize, stored.get(key)
        missing, expected, part = place is None, None, ""
        if place is None:
            offset, nbytes = None, declared if declared <= _MOST else 0
        else:
            number, offset, nbytes = place
            if parts:
                part = parts[number].path
            if nbytes != declared:
                expected = declared
        pieces = _pieces(container, key) if gathered else ()
        span = first.get(key)
        viewed, tensors = (0, 0) if span is None else (span[1] - span[0], 1)
        if more and key in more:
            viewed, tensors = views.total(key)
        # Storage(...) would take thrice as long.
        row = (
            key,
            device,
            dtype,
            nbytes,
            offset,
            missing,
            min(viewed, nbytes),
            tensors,
            expected,
            part,
            pieces,
        )
        rows.append(new(Storage, row))
    return tuple(rows)


def _pieces(container: Container, key: str) -> tuple[Piece, ...]:
    """Return what a storage in chunks is put together from."""
    found = container.gathered.get(key)
    if found is None:
        return ()
    return tuple(
        Piece(container.parts[one.part].path if one.part >= 0 else "", one.starts, one.sizes)
        for one in found.chunks
        if one.numel
    )


def mark_misfits(tensors: list[Tensor], storages: Iterable[Storage]) -> None:
    """Name the problem of tensors whose storage is not as long in the file as their pickle says."""
    misfits = {storage.key: storage for storage in storages if storage.expected_nbytes is not None}
    for row, tensor in enumerate(tensors) if misfits else ():
        storage = misfits.get(tensor.storage or "")
        if storage is not None and storage.expected_nbytes is not None and tensor.problem is None:
            expected = int_text(storage.expected_nbytes)
            problem = shared_text(
                f"its storage should have {expected} bytes, and the file holds {storage.nbytes}"
            )
            tensors[row] = tensor._replace(problem=problem)


def _length_of_union(spans: list[Span]) -> int:
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total

"""The rows of a tree, each made when it is asked for.

A window shows a few dozen rows of a million. So a row is four small numbers here, and sums of what is before
it, until somebody looks at it; a large group is made at once, since its devices take a while to be added up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import overload

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.overriding import override
from inspector.report.colors import device_name
from inspector.report.outline.node import Node, NodeKind
from inspector.report.outline.sums import GROUP, Places, Sums, devices_text, quantities_text
from inspector.units import format_count, format_shape

_LARGE = 20_000
_MOST_MADE = 8192


Named = tuple[str, str, bool]
"""What a group is called, what the paths of its rows begin with, and whether it is a bucket."""


class Nodes(Sequence[Node]):
    """All rows of a tree by id."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        places: Places,
        named: dict[int, Named],
        name_of: Callable[[int], str],
        sums: Sums,
    ) -> None:
        """Make the large groups."""
        self._tensors, self._values = checkpoint.tensors, checkpoint.values
        self._places, self._named, self._name_of, self._sums = places, named, name_of, sums
        self._made: dict[int, Node] = {}
        large = [id_ for id_ in named if places.ends[id_] - id_ > _LARGE]
        self._large = {id_: self._group(id_) for id_ in large}

    @property
    def places(self) -> Places:
        """Where all rows stand."""
        return self._places

    @property
    def named(self) -> dict[int, Named]:
        """The groups among them."""
        return self._named

    @cached_property
    def buckets(self) -> frozenset[int]:
        """The rows that only hold a slice of a long list."""
        return frozenset(id_ for id_, (_, _, is_bucket) in self._named.items() if is_bucket)

    @property
    def sums(self) -> Sums:
        """What any of them hold."""
        return self._sums

    def name(self, id_: int) -> str:
        """Return what a row is called."""
        code = self._places.codes[id_]
        return self._named[id_][0] if code == GROUP else self._name_of(code)

    def path(self, id_: int) -> str:
        """Return the path of a row, or what the paths of all rows below it begin with."""
        code = self._places.codes[id_]
        if code == GROUP:
            return self._named[id_][1]
        return (self._tensors[code] if code >= 0 else self._values[~code]).path

    def tensor(self, id_: int) -> Tensor | None:
        """Return the tensor of a row; None for all other rows."""
        code = self._places.codes[id_]
        return self._tensors[code] if code >= 0 else None

    @override
    def __len__(self) -> int:
        return len(self._places.codes)

    @overload
    def __getitem__(self, place: int) -> Node: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Node, ...]: ...
    @override
    def __getitem__(self, place: int | slice) -> Node | tuple[Node, ...]:
        if isinstance(place, slice):
            return tuple(map(self.__getitem__, range(len(self))[place]))
        node = self._made.get(place) or self._large.get(place)
        return self._make(range(len(self))[place]) if node is None else node

    def _make(self, id_: int) -> Node:
        node = self._group(id_) if self._places.codes[id_] == GROUP else self._leaf(id_)
        if len(self._made) >= _MOST_MADE:
            self._made = {}
        self._made[id_] = node
        return node

    def _children(self, id_: int) -> list[int]:
        found, ends = [], self._places.ends
        child, end = id_ + 1, ends[id_]
        count = end - child
        if count and self._places.parents[end - 1] == id_ and self._places.rows[end - 1] == count - 1:
            return list(range(child, end))  # none of them has rows of its own
        while child < end:
            found.append(child)
            child = ends[child]
        return found

    def _leaf(self, id_: int) -> Node:
        code, parent, row = self._places.codes[id_], self._places.parents[id_], self._places.rows[id_]
        name = self._name_of(code)
        if code < 0:
            value = self._values[~code]
            text, path = value.text, value.path
            return Node(parent, row, "value", name, [], ~code, (), "", "", value.type, 0, 0, text, path)
        tensor, children = self._tensors[code], self._children(id_)
        return Node(
            parent,
            row,
            "tensor",
            name,
            children,
            code,
            ((tensor.device, tensor.nbytes),),
            device_name(tensor.device),
            format_shape(tensor.shape),
            tensor.dtype,
            self._sums.nbytes(id_, self._places.ends[id_]),
            1,
            "",
            tensor.path,
            self._sums.parameters(id_, self._places.ends[id_]),
            self._sums.integers(id_, self._places.ends[id_]),
        )

    def _group(self, id_: int) -> Node:
        name, path, is_bucket = self._named[id_]
        end, sums = self._places.ends[id_], self._sums
        kind: NodeKind = "bucket" if is_bucket else "group"
        children = self._children(id_)
        parameters, integers = sums.parameters(id_, end), sums.integers(id_, end)
        # The parts of a tensor are counted with it, unless a slice of them is looked at.
        of_parts = bool(children) and sums.is_part(children[0])
        tensors = len(children) if of_parts else sums.tensors(id_, end)
        devices = sums.devices(id_, end)
        return Node(
            self._places.parents[id_],
            self._places.rows[id_],
            kind,
            name,
            children,
            -1,
            devices,
            devices_text(devices),
            quantities_text(parameters, integers) if devices or id_ == 0 else "",
            format_count(tensors, "tensor") if devices or id_ == 0 else "",
            sums.nbytes(id_, end),
            tensors,
            "",
            path,
            parameters,
            integers,
        )

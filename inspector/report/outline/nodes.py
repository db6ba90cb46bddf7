"""The rows of a tree, each made when it is asked for.

A window shows a few dozen rows of a million. So a row is four small numbers here, and sums of what is before
it, until somebody looks at it; a large group is made at once, since its devices take a while to be added up.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple, overload

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.overriding import override
from inspector.report.colors import device_name, device_names
from inspector.report.outline.node import MOST_BITS, Node, NodeKind, Run
from inspector.units import format_count, format_quantity, format_shape, short_value

# The sums of groups: bytes by device, tensors and parameters, each shared run of bytes once.
#
# Ids are numbers in the order of display, so all rows below a row stand right behind it: a sum of theirs is
# that of all rows up to the last of them, less that of all rows before the first.

OTHERS = "other devices"
"""Stands for all devices of a group beyond the first 64: no machine has more, but a file can name more."""
GROUP = -(1 << 31)
"""The code of a row that is neither tensor nor value."""
_MOST_SUMMED = 64
_MOST_LISTED = 3
_MATRIX = 2
_PACKING_DTYPES = frozenset({"uint8", "int8", "int16", "int32", "uint16", "uint32"})
"""Dtypes that packed weights are stored as; indexes, which are no weights, are int64."""


class Places(NamedTuple):
    """Where rows stand, by id.

    Attributes:
        codes: The index of a tensor, `~index` of a value, or `GROUP`.
        parents: The id of the parent; -1 for the root.
    """

    codes: array[int]
    parents: array[int]
    rows: array[int]
    ends: array[int]


class _Shared(NamedTuple):
    """Bytes that count once at a row, where tensors that share them first meet."""

    meeting: int
    device: str
    nbytes: int


class Sums:
    """What stands in any rows from one id up to another."""

    def __init__(
        self, checkpoint: Checkpoint, places: Places, tensor_nodes: Sequence[int], runs: Sequence[Run]
    ) -> None:
        """Add up all rows once; a sparse tensor takes what its parts take."""
        tensors, codes, ends = checkpoint.tensors, places.codes, places.ends
        self._tensors, self._codes = tensors, codes
        sizes, parameters = [0] * len(codes), [0] * len(codes)
        counts, integers = bytearray(len(codes)), bytearray(len(codes))
        devices = _DeviceRuns()
        for id_, code in enumerate(codes):
            if code < 0:
                continue
            tensor = tensors[code]
            if ends[id_] == id_ + 1 or tensor.storage is not None:
                sizes[id_] = tensor.nbytes
                if tensor.device is not devices.last:
                    devices.begin(id_, tensor.device)
                devices.end = id_
            if tensor.part_of is None:
                counts[id_] = 1
                if tensor.role == "parameter":
                    parameters[id_] = elements_of(tensor)
                elif tensor.role == "buffer":
                    integers[id_] = is_packed(tensor)
        devices.finish(len(codes))
        self._devices = devices
        shared = sorted(_take_shared_once(tensors, places, parameters, tensor_nodes, runs))
        self._shared, self._shared_at = shared, [one.meeting for one in shared]
        self._shared_sizes = sums([one.nbytes for one in shared])
        self._sizes, self._parameters = sums(sizes), sums(parameters)
        self._counts, self._integers = sums(counts), sums(integers)

    def nbytes(self, start: int, end: int) -> int:
        """Return the bytes of rows; what several of them share counts once."""
        first, last = self._shared_in(start, end)
        twice = self._shared_sizes[last] - self._shared_sizes[first]
        return self._sizes[end] - self._sizes[start] - twice

    def parameters(self, start: int, end: int) -> int:
        """Return the parameters of rows; those that are tied count once."""
        return self._parameters[end] - self._parameters[start]

    def integers(self, start: int, end: int) -> int:
        """Return how many rows are weights made of integers."""
        return self._integers[end] - self._integers[start]

    def tensors(self, start: int, end: int) -> int:
        """Return how many rows are tensors that are no parts of others."""
        return self._counts[end] - self._counts[start]

    def is_part(self, id_: int) -> bool:
        """Return whether a row is a part of a tensor."""
        code = self._codes[id_]
        return code >= 0 and self._tensors[code].part_of is not None

    def devices(self, start: int, end: int) -> tuple[tuple[str, int], ...]:
        """Return the bytes of rows by device, the largest first; those beyond the first ones share a sum.

        A file can name a hundred thousand devices two hundred levels deep.
        """
        totals: dict[str, int] = {}
        for one in self._shared[slice(*self._shared_in(start, end))]:
            totals[one.device] = totals.get(one.device, 0) - one.nbytes
        for device, low, high in self._devices.within(start, end):
            if not self._has_tensor(low, high):
                continue
            known = device if device in totals or len(totals) < _MOST_SUMMED else OTHERS
            totals[known] = totals.get(known, 0) + self._sizes[high] - self._sizes[low]
        found = tuple(totals.items())
        return found if len(found) == 1 else tuple(sorted(found, key=lambda item: -item[1]))

    def _has_tensor(self, start: int, end: int) -> bool:
        """Return whether there is a tensor among rows within one run, which goes on over groups of values.

        Parts of tensors, which are not counted, and may be empty, stand among themselves.
        """
        if self._counts[end] > self._counts[start] or self._sizes[end] > self._sizes[start]:
            return True
        while start < end and self._codes[start] == GROUP:
            start += 1
        return start < end and self._codes[start] >= 0

    def _shared_in(self, start: int, end: int) -> tuple[int, int]:
        return bisect_left(self._shared_at, start), bisect_left(self._shared_at, end)


class _DeviceRuns:
    """Rows one after the other with tensors of one device: nearly always few, however many rows there are."""

    def __init__(self) -> None:
        self.last = ""
        self.end = -1
        self._starts = array("i")
        self._ends = array("i")
        self._names: list[str] = []

    def begin(self, id_: int, device: str) -> None:
        """Begin a run, or go on with the last if that is of the same device."""
        if device != self.last or not self._starts:
            self.finish(id_)
            self._names.append(device)
        self.last = device

    def finish(self, id_: int) -> None:
        """Finish the last run before an id."""
        self._ends.append(self.end)
        self._starts.append(id_)

    def within(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield each run that has tensors among some rows, the last first, with the rows that it is among."""
        first = max(bisect_right(self._starts, start) - 1, 0)
        for place in range(bisect_left(self._starts, end) - 1, first - 1, -1):
            if self._ends[place + 1] >= start:
                yield (
                    self._names[place],
                    max(self._starts[place], start),
                    min(self._starts[place + 1], end),
                )


def parameters_text(node: Node) -> str:
    """Return how many parameters a row has, and that there are weights that cannot be counted."""
    return quantities_text(node.parameters, node.integers)


def quantities_text(parameters: int, integers: int) -> str:
    """Return a count of parameters, and of the weights made of integers, which have more of them."""
    counted = f"{format_quantity(parameters)} param{'s' * (parameters != 1)}" if parameters else ""
    packed = f"{integers:,} int" if counted else format_count(integers, "int weight")
    return " + ".join(filter(None, (counted, packed if integers else "")))


def devices_text(devices: Sequence[tuple[str, int]]) -> str:
    """Name the devices below a group in their order, the first few of many."""
    more = " or more" if len(devices) > _MOST_SUMMED else ""
    return device_names((device for device, _ in devices), _MOST_LISTED, more)


def elements_of(tensor: Tensor) -> int:
    """Return how many parameters a tensor is; slots, buffers and averages are none."""
    return prod(tensor.shape) if tensor.nbytes.bit_length() <= MOST_BITS else tensor.nbytes


def is_packed(tensor: Tensor) -> bool:
    """Return whether a buffer is weights made of integers: those have more parameters than elements."""
    return tensor.dtype in _PACKING_DTYPES and len(tensor.shape) == _MATRIX


def _take_shared_once(
    tensors: Sequence[Tensor],
    places: Places,
    parameters: list[int],
    tensor_nodes: Sequence[int],
    runs: Sequence[Run],
) -> Iterator[_Shared]:
    """Yield what is shared where the tensors that share it first meet: at the row that has both below it.

    Of the rows that share something in display order, each but the first takes it away again where it meets
    the one before it. So every group counts it once, wherever it stands. Parameters are taken away here.
    """
    codes, parents = places.codes, places.parents
    for run in runs:
        shown = sorted(id_ for index in run.tensors if (id_ := tensor_nodes[index]) >= 0)
        for before, after in pairwise(shown):
            yield _Shared(_meeting(parents, before, after), tensors[codes[after]].device, run.nbytes)
        for before, after in pairwise([id_ for id_ in shown if parameters[id_]]):
            part = run.nbytes / tensors[codes[after]].nbytes
            parameters[_meeting(parents, before, after)] -= round(parameters[after] * part)


def _meeting(parents: Sequence[int], one: int, other: int) -> int:
    """Return the innermost row that two rows are below; a parent's id is smaller than its children's."""
    one, other = parents[one], parents[other]
    while one != other:
        if one > other:
            one = parents[one]
        else:
            other = parents[other]
    return one


def sums(values: Sequence[int]) -> Sequence[int]:
    """Return the sum of all values before each, and of all at the end; as machine words if they fit."""
    found = list(accumulate(values, initial=0))
    try:
        return array("q", found)
    except OverflowError:  # what a file says of sizes has no bound
        return found


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

    def tensors(self, id_: int) -> int:
        """Return how many tensors a row is, or has below it."""
        code = self._places.codes[id_]
        return int(code >= 0) if code != GROUP else self[id_].tensors

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
            text, path = short_value(value.type, value.text), value.path
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

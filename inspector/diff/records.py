"""What a comparison found, as frozen rows over the rows of two checkpoints."""

from __future__ import annotations

from typing import Literal, NamedTuple

from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass

Mode = Literal["none", "equal", "numbers"]
"""How far tensors are compared: by what is said of them alone, whether they are equal, or by how much not."""

How = Literal["path", "parameter", "shared", "prefix", "content"]
"""How the two rows of a pair were found to be the same tensor.

`path`: they stand at the same place. `parameter`: they are the same slot of a parameter of the same name.
`shared`: one file keeps one object at both places. `prefix`: a rule that explains several pairs.
`content`: the same bytes under another name, which no other tensor has.
"""


_UNKNOWN = frozenset({"bits", "unread"})


class Pair(NamedTuple):
    """Two rows that are the same tensor, by their numbers."""

    a: int
    b: int
    how: How = "path"


class Rule(NamedTuple):
    """What became of a part of many names.

    Attributes:
        a: The part in the first file; empty where it was added.
    """

    a: str
    b: str
    tensors: int
    how: How


class Numbers(NamedTuple):
    """How the elements of two tensors differ; those that are NaN in both count as equal.

    Attributes:
        max_abs: The largest difference of two finite elements; None where no two are finite.
        max_rel: The largest such difference divided by the size of the element of the second, where that is
            not 0. None without any.
        cosine: Of the finite elements of both as vectors; None where one of them is 0.
        other_bits: How many are the same number in other bits: another NaN, or -0.0 for 0.0.
        not_finite: How many differ where one of the two is NaN or infinite.
        norm_a: The length of the first as a vector of the elements that are finite in both.
        skipped: How many elements these three leave out, since one of the two is NaN or infinite.
    """

    numel: int
    differing: int
    max_abs: float | None
    max_rel: float | None
    cosine: float | None
    first: tuple[int, ...] | None
    first_a: str
    first_b: str
    other_bits: int
    not_finite: int
    norm_a: float = 0.0
    norm_b: float = 0.0
    distance: float = 0.0
    skipped: int = 0


class TensorChange(NamedTuple):
    """A pair of tensors that differ.

    Attributes:
        what: The facts that differ, see `facts.tensors`; `values`, or `bits` where the numbers are the same;
            `unread` where the bytes could not be compared.
    """

    pair: Pair
    what: tuple[str, ...]
    numbers: Numbers | None = None
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether it counts: the same numbers in other bits are equal."""
        return self.what != ("bits",)

    @property
    def is_known(self) -> bool:
        """Whether anything is known to differ: of what could not be read, nothing is."""
        return not _UNKNOWN.issuperset(self.what)


class ValueChange(NamedTuple):
    """A pair of values that differ.

    Attributes:
        what: `type`, `value`, or `key` where one key is a number and the other its text. Of NumPy's arrays
            also what they differ in, as tensors do; `bits` alone where their numbers are the same.
        a_text: What it is in the first, around the first place that differs where it is long.
    """

    a: int
    b: int
    what: tuple[str, ...]
    a_text: str
    b_text: str
    is_measurable: bool = False
    numbers: Numbers | None = None

    @property
    def differs(self) -> bool:
        """Whether it counts: the same numbers in other bits are equal."""
        return self.what != ("bits",)


class ArrayPair(NamedTuple):
    """Two values that are arrays of as many numbers, by their rows."""

    a: int
    b: int


class Sharing(NamedTuple):
    """Tensors that share their memory in one of the files and not in the other."""

    paths: tuple[str, ...]
    tied_in: Literal["a", "b"]


class NameChange(NamedTuple):
    """Something that loading only one of the files imports or calls."""

    text: str
    verdict: str
    only_in: Literal["a", "b"]


class RecordChange(NamedTuple):
    """A record of an archive (code, a graph), or a storage without a tensor, that is not the same in both.

    Attributes:
        what: `added`, `removed` or `changed`.
    """

    name: str
    what: str


class ContainerChange(NamedTuple):
    """Something that holds tensors or values, and is not held alike in both files.

    Attributes:
        a: Its type in the first, or the keys from the first on that stands elsewhere.
    """

    a_path: str
    b_path: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All that two checkpoints differ in.

    Attributes:
        names: What loading one of the files alone would import, then what it would call.
        reordered: Mappings whose keys stand in another order, which counts as equal.
        has_containers: Whether both files say what holds their tensors, so that it could be compared.
        unlisted: Whether either file has values that no row lists, so that those were not compared.
        tolerated: How many tensors differ within the tolerance alone, which counts as equal.
        uncompared: What else was not compared, or does not count as a difference, in words.
    """

    a: Checkpoint
    b: Checkpoint
    mode: Mode
    pairs: tuple[Pair, ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    rules: tuple[Rule, ...]
    tensors: tuple[TensorChange, ...]
    values_removed: tuple[int, ...]
    values_added: tuple[int, ...]
    values: tuple[ValueChange, ...]
    sharing: tuple[Sharing, ...]
    names: tuple[NameChange, ...]
    records: tuple[RecordChange, ...]
    verdicts: tuple[str, str]
    compared_nbytes: int
    unlisted: bool
    containers: tuple[ContainerChange, ...] = ()
    reordered: tuple[ContainerChange, ...] = ()
    has_containers: bool = True
    tolerated: int = 0
    tolerated_values: int = 0
    uncompared: tuple[str, ...] = ()

    @property
    def renamed(self) -> tuple[Pair, ...]:
        """The pairs whose paths differ."""
        a, b = self.a.tensors, self.b.tensors
        return tuple(pair for pair in self.pairs if a[pair.a].path != b[pair.b].path)

    @property
    def is_equal(self) -> bool:
        """Whether all was compared, and nothing differs."""
        return not self.differs and not self.unlisted and not self.unread

    @property
    def unread(self) -> int:
        """How many tensors could not be compared."""
        return sum("unread" in change.what for change in self.tensors)

    @property
    def differs(self) -> bool:
        """Whether anything is known to differ; other names are a difference."""
        return bool(
            self.removed
            or self.added
            or self.rules
            or self.values_removed
            or self.values_added
            or any(change.differs for change in self.values)
            or self.sharing
            or self.names
            or self.records
            or self.containers
            or any(change.is_known for change in self.tensors)
        )

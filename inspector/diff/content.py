"""The elements of tensors and arrays of two checkpoints: where they are, whether and how much they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, Literal, NamedTuple, Self, TypeVar

from inspector.child import Worker, worker_script
from inspector.containers.element_types import is_of_unknown_size
from inspector.containers.numpy_types import ElementType, contiguous_stride, from_buffer, reconstructed
from inspector.diff.records import Numbers
from inspector.diff.side import Side
from inspector.errors import CancelledError, CheckpointError, ContainerError, ExportError, WorkerError
from inspector.model.checkpoint import Tensor
from inspector.model.tensors.dtypes import PLAIN_ITEMSIZES, is_contiguous, stored_nbytes
from inspector.model.tensors.row_blocks import PLAIN_NBYTES, View, row_blocks
from inspector.model.values.embedded import contents_of
from inspector.pickles.values import Call, Value
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.units import format_shape

Code = Literal["B", "H", "I", "Q"]


class Form(NamedTuple):
    """How a type of floating-point numbers is written.

    Attributes:
        code: Of a whole number of its size, as `memoryview.cast` takes it.
        magnitude: The bits without the sign.
    """

    code: Code
    size: int
    magnitude: int
    largest: int


_DOUBLE = Form("Q", 8, (1 << 63) - 1, 0x7FF << 52)
_SINGLE = Form("I", 4, (1 << 31) - 1, 0xFF << 23)
_HALF = Form("H", 2, 0x7FFF, 0x7C00)
FORMS: dict[str, Form] = {
    "float64": _DOUBLE,
    "complex128": _DOUBLE,
    "float32": _SINGLE,
    "complex64": _SINGLE,
    "float16": _HALF,
    "complex32": _HALF,
    "bfloat16": Form("H", 2, 0x7FFF, 0x7F80),
    "float8_e5m2": Form("B", 1, 0x7F, 0x7C),
    "float8_e4m3fn": Form("B", 1, 0x7F, 0x7E),
}
"""Types with several spellings of a number; of all others, other bits are another number."""
_PAIRS = "float4_e2m1fn_x2"
# Each byte of two numbers of 4 bits with 0.0 in the place of -0.0.
_UNSIGNED_ZEROS = bytes(
    (code & 0x0F if code & 0x0F != 0x08 else 0) | (code & 0xF0 if code & 0xF0 != 0x80 else 0)
    for code in range(256)
)


def differs_in_numbers(one: bytes, other: bytes, dtype: str) -> bool:
    """Return whether two blocks of elements, whose bytes differ, hold another number anywhere."""
    if dtype == _PAIRS:
        return one.translate(_UNSIGNED_ZEROS) != other.translate(_UNSIGNED_ZEROS)
    form = FORMS.get(dtype)
    if form is None:
        return True
    magnitude, largest = form.magnitude, form.largest
    pairs = zip(memoryview(one).cast(form.code), memoryview(other).cast(form.code), strict=True)
    for left, right in pairs:
        if left != right:
            size, other_size = left & magnitude, right & magnitude
            if not (size > largest and other_size > largest) and (size or other_size):
                return True
    return False


# --- the bytes of a tensor's elements in the order of rows, little-endian, whatever file they are in --------

_MOST_TIMES = 64
_COMPLEX = "complex"
_SIGNED = (_COMPLEX, "float", "bfloat")
_OTHER_SIGN = bytes(code ^ 0x80 for code in range(256))
Mark = Literal["conj", "neg"]
"""What a tensor can be only said to be: conjugated or negated, with the elements as they were before."""
Marks = frozenset[Mark]
MARKS: tuple[Mark, ...] = ("conj", "neg")
UNMARKED: Marks = frozenset()


class Elements(NamedTuple):
    """Where the elements of a tensor are.

    Attributes:
        itemsize: Bytes of an element; 1 where several share a byte.
        view: What it sees of the storage, in elements of that size.
        unit: Bytes of what is swapped where the file has its first byte last: half of a complex number.
        signs: Which bytes hold a sign that is to be turned: the first of them, and how far on the next is.
    """

    storage: str
    itemsize: int
    view: View
    unit: int
    signs: tuple[tuple[int, int], ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.view.numel * self.itemsize

    @property
    def is_plain(self) -> bool:
        """Whether they stand one behind the other in the order of rows."""
        return is_contiguous(self.view.shape, self.view.stride)

    @property
    def is_dense(self) -> bool:
        """Whether each byte between the first and the last belongs to one of them."""
        return self.view.reach == self.view.numel


def has_elements(row: Tensor) -> bool:
    """Return whether a row has bytes of its own: what is made of others, and what is on meta, has none."""
    return row.storage is not None and row.device != "meta"


def elements_of(row: Tensor, marks: Marks = UNMARKED) -> Elements:
    """Return where the elements of a row are."""
    if row.problem is not None:
        raise ContainerError(row.problem, where=row.path)
    storage = row.storage or ""
    offset = row.storage_offset or 0
    size = PLAIN_ITEMSIZES.get(row.dtype)
    if size is None:  # several elements share a byte
        nbytes, first = (stored_nbytes(row.dtype, count) for count in (prod(row.shape), offset))
        if is_of_unknown_size(row.dtype):
            nbytes = row.nbytes
        return Elements(storage, 1, View((nbytes,), (1,), first), 1)
    unit = size // 2 if row.dtype.startswith(_COMPLEX) else size
    signs = tuple(_signs(row, size, unit, marks)) if marks else ()
    if row.stride is None:
        return Elements(storage, size, View((prod(row.shape),), (1,), offset), size, signs)
    return Elements(storage, size, View(row.shape, row.stride, offset), unit, signs)


def _signs(row: Tensor, size: int, unit: int, marks: Marks) -> Iterator[tuple[int, int]]:
    """Yield where the signs are that conjugating and negating turn."""
    if "conj" in marks and unit < size:
        yield size - 1, size
    if "neg" in marks:
        if not row.dtype.startswith(_SIGNED):
            raise ContainerError(f"the tensor is a negated view of {row.dtype} elements", where=row.path)
        yield unit - 1, unit


def read_elements(side: Side, elements: Elements, progress: Progress) -> Iterator[bytes]:
    """Yield the bytes of elements in the order of rows."""
    refuse_endless(elements)
    read = partial(side.reader.read, elements.storage)
    for block in row_blocks(elements.view, elements.itemsize, read, progress):
        yield as_meant(side, elements, block)


def read_span(side: Side, elements: Elements, progress: Progress) -> Iterator[bytes]:
    """Yield all bytes from the first to the last element as they stand; errors are those of the others."""
    start = elements.view.first * elements.itemsize
    end = start + elements.view.reach * elements.itemsize
    for pos in range(start, end, PLAIN_NBYTES):
        progress.advance()
        block = side.reader.read(elements.storage, pos, min(PLAIN_NBYTES, end - pos))
        yield as_meant(side, elements, block)


def as_meant(side: Side, elements: Elements, block: bytes) -> bytes:
    """Return whole elements of a file in the usual order of bytes, and with the signs that they have."""
    if side.is_swapped:
        block = swapped(block, elements.unit)
    if not elements.signs:
        return block
    out = bytearray(block)
    for first, step in elements.signs:
        out[first::step] = out[first::step].translate(_OTHER_SIGN)
    return bytes(out)


def refuse_endless(elements: Elements) -> None:
    """Refuse to go through a view that shows each byte again and again."""
    seen = max(elements.view.reach * elements.itemsize, PLAIN_NBYTES)
    if elements.nbytes > _MOST_TIMES * seen:
        raise ContainerError("the tensor shows the same few bytes too often to be read element by element")


def swapped(block: bytes, unit: int) -> bytes:
    """Return a block with the bytes of each unit in the other order."""
    if unit == 1:
        return block
    out = bytearray(len(block))
    for place in range(unit):
        out[place::unit] = block[unit - 1 - place :: unit]
    return bytes(out)


# --- whether two tensors have the same elements: read side by side, up to the first that differs ------------

Answer = Literal["equal", "bits", "differs", "unread"]


class Equality(NamedTuple):
    """What came out.

    Attributes:
        answer: `bits` means the same numbers in other bits.
    """

    answer: Answer
    why: str = ""


class Equalities:
    """Compares the elements of tensors of two sides; tied ones once."""

    def __init__(self, a: Side, b: Side, progress: Progress) -> None:
        self._a, self._b = a, b
        self._progress = progress
        self._known: dict[tuple[Elements, Elements], Equality] = {}
        self._tied = _tied_keys(a), _tied_keys(b)
        self.nbytes = 0

    def compare(
        self, one: Tensor, other: Tensor, marks: tuple[Marks, Marks] = (UNMARKED, UNMARKED)
    ) -> Equality:
        """Compare two tensors of one dtype and as many elements."""
        try:
            first, second = _once(elements_of(one, marks[0]), elements_of(other, marks[1]))
            if first.storage not in self._tied[0] and second.storage not in self._tied[1]:
                return self._compare(first, second, one.dtype)
            known = self._known.get((first, second))
            if known is None:
                known = self._known[first, second] = self._compare(first, second, one.dtype)
        except CancelledError:
            raise
        except CheckpointError as error:
            return Equality("unread", str(error))
        return known

    def _compare(self, one: Elements, other: Elements, dtype: str) -> Equality:
        is_alike = one.view.shape == other.view.shape and one.view.stride == other.view.stride
        if is_alike and not one.is_plain:
            answer = self._blocks(
                read_span(self._a, one, self._progress), read_span(self._b, other, self._progress), dtype
            )
            if answer.answer == "equal" or one.is_dense:
                return answer
        return self._blocks(
            read_elements(self._a, one, self._progress), read_elements(self._b, other, self._progress), dtype
        )

    def _blocks(self, blocks: Iterator[bytes], others: Iterator[bytes], dtype: str) -> Equality:
        found = Equality("equal")
        for block, other in side_by_side(blocks, others):
            self._count(len(block))
            answer = judge(block, other, dtype)
            if answer.answer == "differs":
                return answer
            found = answer if answer.answer == "bits" else found
        return found

    def _count(self, nbytes: int) -> None:
        self.nbytes += nbytes
        self._progress.advance(nbytes)


def _once(one: Elements, other: Elements) -> tuple[Elements, Elements]:
    """Return elements that both views repeat in the same way only once: what `expand` made can be endless."""
    if one.view.shape != other.view.shape or one.view.stride != other.view.stride or not one.view.numel:
        return one, other
    steps = zip(one.view.shape, one.view.stride, strict=True)
    shape = tuple(size if step else 1 for size, step in steps)
    return (
        one._replace(view=one.view._replace(shape=shape)),
        other._replace(view=other.view._replace(shape=shape)),
    )


def side_by_side(
    blocks: Iterator[bytes], others: Iterator[bytes], sizes: tuple[int, int] = (1, 1)
) -> Iterator[tuple[bytes, bytes]]:
    """Yield two streams of as many elements, of these sizes in bytes, in blocks of as many elements."""
    ahead = bytearray()
    for block in blocks:
        wanted = len(block) // sizes[0] * sizes[1]
        if not ahead:
            other = next(others)
            if len(other) == wanted:
                yield block, other
                continue
            ahead += other
        while len(ahead) < wanted:
            ahead += next(others)
        yield block, bytes(ahead[:wanted])
        del ahead[:wanted]


def judge(block: bytes, other: bytes, dtype: str) -> Equality:
    """Return whether two blocks of as many elements are equal."""
    if block == other:
        return Equality("equal")
    return Equality("differs" if differs_in_numbers(block, other, dtype) else "bits")


def _tied_keys(side: Side) -> frozenset[str]:
    return frozenset(storage.key for storage in side.checkpoint.storages if storage.tensors > 1)


# ------------------------------------------------------------------------------------------------------------
# NumPy's arrays among the values of a pickle: compared like tensors, by what they are and number by number.
#
# Formats that are pickles of arrays list them as tensors; in a file of torch they are values like any other.


class StoredArray(NamedTuple):
    """An array of numbers that torch has a type for.

    Attributes:
        element: The type of its elements, and whether their bytes are the other way round.
        stride: Steps by dimension, in elements; None where they stand in the order of rows.
    """

    element: ElementType
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    data: bytes

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return len(self.data) // self.element.itemsize

    @property
    def text(self) -> str:
        """What it is, in words."""
        order = "" if self.stride is None else ", Fortran order"
        end = ", big-endian" if self.element.swap > 1 else ""
        return f"{self.element.dtype} {format_shape(self.shape)}{order}{end}"

    def blocks(self, progress: Progress) -> Iterator[bytes]:
        """Yield its elements in the order of rows, little-endian."""
        view = View((self.numel,), (1,), 0) if self.stride is None else View(self.shape, self.stride, 0)
        for block in row_blocks(view, self.element.itemsize, self._read, progress):
            yield swapped(block, self.element.swap)

    def _read(self, offset: int, nbytes: int) -> bytes:
        return self.data[offset : offset + nbytes]


def array_of(value: Value, data: bytes) -> StoredArray | None:
    """Return the array that a value is; None for any other value, and where numbers or bytes are missing."""
    if type(value) is not Call:
        return None
    found = reconstructed(value) or from_buffer(value)
    if found is None:
        return None
    held = contents_of(found.data, data)
    if len(held) != found.nbytes:
        return None
    return StoredArray(
        found.element, found.shape, contiguous_stride(found.shape, is_fortran=found.is_fortran), held
    )


def compare_arrays(one: StoredArray, other: StoredArray) -> tuple[str, ...]:
    """Return what two arrays differ in, as tensors do: `bits` where the numbers are the same."""
    found = {
        "dtype": one.element != other.element,
        "shape": one.shape != other.shape,
        "stride": one.shape == other.shape and one.stride != other.stride,
    }
    facts = tuple(fact for fact, differs in found.items() if differs)
    if one.element.dtype != other.element.dtype or one.numel != other.numel:
        return facts
    progress = Progress()
    blocks = side_by_side(one.blocks(progress), other.blocks(progress))
    answers = {judge(block, another, one.element.dtype).answer for block, another in blocks}
    if "differs" in answers:
        return (*facts, "values")
    return (*facts, "bits") if "bits" in answers else facts


# --- by how much tensors differ: their elements go to a child process, block by block, which has NumPy ------

_TIMEOUT_S = 120.0
_SMALL_NBYTES = 1 << 16
"""A request takes as long as reading so many bytes; what is smaller goes together with others."""
_BATCH_NBYTES, _MOST_TOGETHER = 4 << 20, 500
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """What still counts as equal: `|a - b| <= atol + rtol * |b|`, as in `torch.allclose`."""

    rtol: float = 0.0
    atol: float = 0.0


class _Asked(NamedTuple):
    """What two tensors or arrays are: dtypes and bytes of both, the shape of the first, what it is called."""

    dtypes: tuple[str, str]
    nbytes: tuple[int, int]
    shape: tuple[int, ...]
    path: str


class Differences:
    """Compares numbers of two sides, in one child process that is started by the first pair."""

    def __init__(
        self, a: Side, b: Side, tolerance: Tolerance | None = None, worker: Worker | None = None
    ) -> None:
        """Prepare to compare; `worker` goes on afterwards, as NumPy is slow to import."""
        self._a, self._b = a, b
        self._tolerance = tolerance or Tolerance()
        self._worker = worker or Worker()
        self._is_own = worker is None

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child, unless it is another's."""
        if self._is_own:
            self._worker.end()

    def compare(
        self,
        one: Tensor,
        other: Tensor,
        progress: Progress,
        marks: tuple[Marks, Marks] = (UNMARKED, UNMARKED),
    ) -> Numbers:
        """Compare two tensors of as many elements."""
        first, second = elements_of(one, marks[0]), elements_of(other, marks[1])
        return self._compare(one, other, (first, second), progress)

    def _compare(
        self, one: Tensor, other: Tensor, places: tuple[Elements, Elements], progress: Progress
    ) -> Numbers:
        first, second = places
        blocks = side_by_side(
            read_elements(self._a, first, progress),
            read_elements(self._b, second, progress),
            (first.itemsize, second.itemsize),
        )
        return _known(self._ask([_asked(one, other, places)], _in_turn(blocks, progress), progress)[0])

    def compare_all(
        self, pairs: Iterable[tuple[Key, Tensor, Tensor, tuple[Marks, Marks]]], progress: Progress
    ) -> Iterator[tuple[Key, Numbers | CheckpointError]]:
        """Compare many pairs, of as many elements each; small ones go to the child together.

        Yields:
            What a pair was given with, and by how much it differs, or why that cannot be told.
        """
        small: list[tuple[Key, _Asked]] = []
        held = bytearray(), bytearray()
        for key, one, other, marks in pairs:
            progress.advance()
            try:
                places = elements_of(one, marks[0]), elements_of(other, marks[1])
                if places[0].nbytes + places[1].nbytes > _SMALL_NBYTES:
                    yield key, self._compare(one, other, places, progress)
                    continue
                read = [
                    b"".join(read_elements(side, place, progress))
                    for side, place in zip((self._a, self._b), places, strict=True)
                ]
            except (CancelledError, ExportError):
                raise
            except CheckpointError as error:
                yield key, error
                continue
            for data, more in zip(held, read, strict=True):
                data.extend(more)
            small.append((key, _asked(one, other, places)))
            progress.advance(len(read[0]))
            if len(small) == _MOST_TOGETHER or len(held[0]) + len(held[1]) > _BATCH_NBYTES:
                yield from self._small(small, held, progress)
                small, held = [], (bytearray(), bytearray())
        if small:
            yield from self._small(small, held, progress)

    def _small(
        self, asked: list[tuple[Key, _Asked]], held: tuple[bytearray, bytearray], progress: Progress
    ) -> Iterator[tuple[Key, Numbers | CheckpointError]]:
        blocks = map(bytes, held)
        keys = [key for key, _ in asked]
        yield from zip(keys, self._ask([one for _, one in asked], blocks, progress), strict=True)

    def compare_arrays(self, one: StoredArray, other: StoredArray, path: str, progress: Progress) -> Numbers:
        """Compare two arrays of as many elements."""
        sizes = one.element.itemsize, other.element.itemsize
        blocks = _in_turn(side_by_side(one.blocks(progress), other.blocks(progress), sizes), progress)
        dtypes, nbytes = (one.element.dtype, other.element.dtype), (len(one.data), len(other.data))
        return _known(self._ask([_Asked(dtypes, nbytes, one.shape, path)], blocks, progress)[0])

    def _ask(
        self, asked: Sequence[_Asked], blocks: Iterator[bytes], progress: Progress
    ) -> list[Numbers | CheckpointError]:
        head = {
            "pairs": [(*one.dtypes, *one.nbytes) for one in asked],
            "rtol": self._tolerance.rtol,
            "atol": self._tolerance.atol,
        }
        script = worker_script("difference")
        try:
            answers = list(
                self._worker.request(script, head, blocks, progress=progress, timeout_s=_TIMEOUT_S)
            )
        except WorkerError as error:
            raise ExportError(
                "the numbers cannot be compared",
                where=f"{asked[0].path}: {error}",
                remedy="see whether python -c 'import numpy' works",
            ) from error
        found = answers[0].head["pairs"]
        return [_numbers(fields, one) for fields, one in zip(found, asked, strict=True)]


def _asked(one: Tensor, other: Tensor, places: tuple[Elements, Elements]) -> _Asked:
    return _Asked((one.dtype, other.dtype), (places[0].nbytes, places[1].nbytes), one.shape, one.path)


def _in_turn(pairs: Iterator[tuple[bytes, bytes]], progress: Progress) -> Iterator[bytes]:
    for block, other in pairs:
        yield block
        progress.advance(len(block))  # before the last block, which nothing is asked for after
        yield other


def _numbers(head: dict[str, Any], asked: _Asked) -> Numbers | CheckpointError:
    if "error" in head:
        return ContainerError(head["error"], where=asked.path)
    first = head.pop("first")
    return Numbers(first=None if first is None else place_of(first, asked.shape), **head)


def _known(found: Numbers | CheckpointError) -> Numbers:
    if isinstance(found, CheckpointError):
        raise found
    return found


def place_of(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the place of an element by dimension, from its number in the order of rows."""
    place = []
    for size in reversed(shape):
        number, index = divmod(number, size)
        place.append(index)
    return tuple(reversed(place))

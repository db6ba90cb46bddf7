"""The rows of a checkpoint, with the words of `show --json`."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from inspector.library.sources import Opened, shown
from inspector.library.telling import Told, told
from inspector.model.checkpoint import Key, Role
from inspector.overriding import override
from inspector.records import dataclass
from inspector.report.colors import device_name
from inspector.safety.names import GlobalVerdict
from inspector.safety.verdict import FileVerdict

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from torch import Tensor as TorchTensor

    from inspector.library.arrays import Framework
    from inspector.library.numbers import Statistics

_BLOCK_NBYTES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A run of bytes that tensors view.

    Attributes:
        key: Its key in the file.
        device: The device that it was saved on.
        dtype: torch's name of its element type, without `torch.`.
        nbytes: What the file stores, in bytes.
        file_offset: Where the bytes begin in their file; None where they are absent, compressed or in pieces.
    """

    key: str
    device: str
    dtype: str
    nbytes: int
    file_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A leaf that is no tensor: a number, a str, an object that stays closed.

    Attributes:
        path: Where it stands.
        type: Python's name of its type, or its dotted class.
        text: Its short text, at most 200 characters.
    """

    path: str
    type: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """A name that loading the file would import.

    Attributes:
        name: The dotted name.
        count: How often the pickles ask for it.
        verdict: `tensor`, `allowed`, `unknown` or `dangerous`.
    """

    name: str
    count: int
    verdict: GlobalVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Safety:
    """What loading the file needs, and what it could do.

    Attributes:
        verdict: `weights-only`, `needs-allow-list`, `runs-code`, `unknown` or `dangerous`.
        weights_only: Whether `torch.load(weights_only=True)` is expected to take the pickles.
        globals_to_allow: Classes to put on torch's list for that, where that is all it takes.
        reasons: Why, one sentence each.
    """

    verdict: FileVerdict
    weights_only: bool
    globals_to_allow: tuple[str, ...]
    reasons: tuple[str, ...]


class Tensor:
    """One tensor at one place of a checkpoint: what the file says of it, with the words of `show --json`.

    A tensor that is reached twice is two of these, with the same `storage`. Its numbers are read when they
    are asked for, by `numpy`, `torch`, `stats`, `numpy.asarray(tensor)`, or a part of them by
    `tensor[:2]` and `tensor[0, :, 3]`, which reads what it takes and no more. Each time they are read again,
    and refused if the file changed since it was opened.

    It is true, whatever its numbers are; `len` is its first size, as of an array.
    """

    __slots__ = ("_index", "_opened", "_row")

    def __init__(self, opened: Opened, index: int) -> None:
        self._opened = opened
        self._index = index
        self._row = opened.facts.tensors[index]

    @property
    def path(self) -> str:
        """Its keys, joined by `/`: `model/layer1.0.conv1.weight`."""
        return self._row.path

    @property
    def keys(self) -> tuple[Key, ...]:
        """The way to it from the root: mapping keys, sequence indexes, attributes with a leading dot."""
        return self._row.keys

    @property
    def device(self) -> str:
        """The device that it was saved on, as the file has it: `cuda:1`, `cpu`."""
        return self._row.device

    @property
    def dtype(self) -> str:
        """The name of its element type in torch, without `torch.`."""
        return self._row.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes by dimension."""
        return self._row.shape

    @property
    def stride(self) -> tuple[int, ...] | None:
        """Steps by dimension, in elements; None where its layout has none."""
        return self._row.stride

    @property
    def storage_offset(self) -> int | None:
        """Its first element within the storage; None where its layout has none."""
        return self._row.storage_offset

    @property
    def layout(self) -> str:
        """Its layout: `strided`, `sparse_coo`, ..., or `storage` for a bare storage."""
        return self._row.layout

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self._row.shape)

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return prod(self._row.shape)

    @property
    def size(self) -> int:
        """The same, by NumPy's name."""
        return self.numel

    @property
    def requires_grad(self) -> bool:
        """Whether gradients were asked for."""
        return self._row.requires_grad

    @property
    def nbytes(self) -> int:
        """Elements times item size, whatever the file stores."""
        return self._row.nbytes

    @property
    def storage(self) -> str | None:
        """The key of the storage that it views; None where it has none of its own."""
        return self._row.storage

    @property
    def role(self) -> Role:
        """What it is for: `parameter`, `buffer`, `optimizer`, `scheduler`, `rng`, `ema` or `other`."""
        return self._row.role

    @property
    def parameter(self) -> str | None:
        """Of optimizer state, the name of the parameter that it belongs to, where that is certain."""
        return self._row.parameter

    @property
    def slot(self) -> str | None:
        """Of optimizer state, the name of the slot, such as `exp_avg`."""
        return self._row.slot

    def stats(self, *, progress: Told = None) -> Statistics:
        """Read its numbers, and no others, and return their statistics.

        Args:
            progress: Called with each `Step` of the work; what it raises ends the work.

        Raises:
            ValuesError: It has no numbers, or nobody knows what they mean.
            CheckpointError: The file cannot be read, or changed since it was opened.
        """
        from inspector.library.numbers import read_statistics  # noqa: PLC0415 - most files are only listed

        with told(progress) as steps:
            (found,) = read_statistics(self._opened, [self._index], steps)
        return found

    def numpy(self, *, progress: Told = None) -> NDArray[Any]:
        """Read its numbers, and no others, and return them as a NumPy array, which is the caller's own.

        What NumPy has no type for is widened to one that holds the values exactly: bfloat16 and float8 come
        as float32, complex32 as complex64. Quantized elements are dequantized: they come as the numbers they
        stand for, in float32. All else has its own type, in this machine's byte order.

        Args:
            progress: Called with each `Step` of the work; what it raises ends the work.

        Raises:
            ValuesError: It has no numbers, or they make no array: those of a sparse tensor are in its parts,
                and elements of four bits and less share bytes.
            ExportError: This Python has no NumPy.
            CheckpointError: The file cannot be read, or changed since it was opened.
        """
        found: NDArray[Any] = self._read(..., "numpy", progress)
        return found

    def torch(self, index: object = ..., *, progress: Told = None) -> TorchTensor:
        """Read its numbers, or a part of them, as a tensor of torch on the CPU, which is imported for that.

        It has the type that the file states, bfloat16 and float8 too; only quantized elements are
        dequantized to float32. It asks for no gradients, and shares its memory with no other tensor.

        Args:
            index: The part of it, as in `tensor[0, :, 3]`.
            progress: Called with each `Step` of the work; what it raises ends the work.

        Raises:
            ValuesError: As `numpy` does, or this torch has no such type.
            ExportError: This Python has no torch, or no NumPy.
            CheckpointError: The file cannot be read, or changed since it was opened.
        """
        found: TorchTensor = self._read(index, "torch", progress)
        return found

    def _read(self, index: object, framework: Framework, progress: Told = None) -> Any:  # noqa: ANN401
        from inspector.library.arrays import Arrays  # noqa: PLC0415 - most files are only listed

        with told(progress) as steps:
            return Arrays(self._opened, steps, framework).read(self._index, index)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001 - as NumPy calls it
        """Return the same as `numpy`, for functions of NumPy that are handed the tensor."""
        if copy is False:
            raise ValueError("the numbers of a tensor of a file are read, which makes an array of its own")
        found = self.numpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __getitem__(self, index: object) -> Any:  # noqa: ANN401 - as NumPy has it: an array, or a number
        """Read a part of its numbers, by integers, slices, `...` and None, as NumPy understands them."""
        return self._read(index, "numpy")

    def __len__(self) -> int:
        if not self._row.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self._row.shape[0]

    def __iter__(self) -> Iterator[Any]:
        step = max(_BLOCK_NBYTES * len(self) // max(self.nbytes, 1), 1) if len(self) else 1
        return (row for start in range(0, len(self), step) for row in self[start : start + step])

    def __bool__(self) -> bool:
        """Return True: it is there, also where it has no elements."""
        return True

    @override
    def __repr__(self) -> str:
        return f"<Tensor {shown(self.path)}: {self.dtype} {list(self.shape)} on {device_name(self.device)}>"

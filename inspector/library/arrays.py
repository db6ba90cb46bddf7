"""The numbers of tensors as arrays of NumPy and tensors of torch, read in the process of who asks for them.

They are bytes and an element type; no pickle is run and no child process asked. torch is imported here alone,
and only by who asks for its tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from inspector.errors import ExportError, PlanError, ValuesError
from inspector.library.sources import Opened
from inspector.library.telling import Telling
from inspector.values.asking import require_numpy
from inspector.values.request import Request, read_nbytes
from inspector.values.tensor_bytes import TensorBytes

if TYPE_CHECKING:
    from torch import Tensor as TorchTensor

Framework = Literal["numpy", "torch"]

_DIRECT = frozenset({"float64", "float32", "float16", "bool", "complex128", "complex64"})
_CARRIERS = {1: "i1", 2: "<i2", 4: "<i4", 8: "<i8"}


class Arrays:
    """Reads tensors of one file."""

    def __init__(self, opened: Opened, progress: Telling, framework: Framework = "numpy") -> None:
        """Refuse what is not installed."""
        require_numpy()
        if framework not in {"numpy", "torch"}:
            raise PlanError(f"framework={framework!r} is not understood", remedy="use 'numpy' or 'torch'")
        if framework == "torch" and find_spec("torch") is None:
            raise ExportError("this needs PyTorch", remedy="install torch, or ask for arrays of NumPy")
        self._opened = opened
        self._progress = progress
        self._read = _as_torch if framework == "torch" else _as_numpy

    def read(self, row: int, index: object = ...) -> Any:  # noqa: ANN401 - an array, a number or a tensor
        """Return a tensor by its number, or a part of it."""
        request = self._opened.requests.of(row)
        self._progress.start("reading values", read_nbytes(request) if index is ... else 0)
        with self._told(row), self._opened.stored_bytes() as opened:
            return self._read(request, opened, index, self._progress)

    def read_all(self, rows: Sequence[int]) -> Iterator[Any]:
        """Yield tensors by their numbers; the file is opened once."""
        requests = []
        for row in rows:
            with self._told(row):
                requests.append(self._opened.requests.of(row))
        self._progress.start_all("reading values", sum(map(read_nbytes, requests)))
        with self._opened.stored_bytes() as opened:
            for row, request in zip(rows, requests, strict=True):
                with self._told(row):
                    yield self._read(request, opened, ..., self._progress)

    @contextmanager
    def _told(self, row: int) -> Iterator[None]:
        path = self._opened.facts.tensors[row].path
        try:
            yield
        except ValuesError as error:
            error.where = error.where or path
            raise
        except MemoryError:
            raise ValuesError("there is not enough memory for its numbers", where=path) from None


def _as_numpy(request: Request, opened: TensorBytes, index: object, progress: Telling) -> Any:  # noqa: ANN401
    from inspector.values.arrays import read_array  # noqa: PLC0415 - NumPy, once it is known to be there

    return read_array(request, opened, index, progress)


def _as_torch(request: Request, opened: TensorBytes, index: object, progress: Telling) -> TorchTensor:
    import numpy as np  # noqa: PLC0415 - few ask, and importing the library is to stay light
    import torch  # noqa: PLC0415 - the same, much heavier

    from inspector.values.arrays import read_array, read_codes  # noqa: PLC0415 - as above

    dtype = getattr(torch, request["dtype"], None)
    is_coded = request.get("scale") is not None or request.get("axis") is not None
    if dtype is None:
        raise ValuesError(f"this torch has no {request['dtype']}", remedy="numpy() reads it as float32")
    is_plain = request["dtype"] in _DIRECT or is_coded or request["conj"] or request["neg"]
    read = read_array if is_plain else read_codes
    found = np.asarray(read(request, opened, index, progress))
    if min(found.strides, default=0) < 0:  # torch has none
        found = found.copy()
    if not is_plain:  # bits that NumPy has no type for, or that not each torch takes from it
        found = found.view(_CARRIERS[found.itemsize])
        return torch.from_numpy(found).view(dtype)
    made = torch.from_numpy(found)
    return made if is_coded else made.to(dtype)

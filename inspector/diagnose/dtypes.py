"""Dtypes that a device has no numbers or no arithmetic for, by machine: what fails there, and what helps.

Only what decides where things go counts: the best device of the target. What depends on the release of torch,
on macOS or on the generation of a GPU is said where that is known, and of nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.roles.devices import is_accelerator
from inspector.records import dataclass
from inspector.target.profile import Profile
from inspector.target.versions import Release, release_of

_WEIGHTS: Final = frozenset({"parameter", "buffer", "ema"})
_FLOAT8: Final = frozenset({"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"})
_ON_MPS = "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/mps/OperationUtils.mm"
_HALF_ON_CPU: Final[Release] = (2, 2)
_FIRST_MACOS: Final = 14
_AMPERE, _ADA = (8, 0), (8, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeRow:
    """One thing that a device cannot do.

    Attributes:
        matches: Says whether a machine with such a device cannot do it.
        fails: What torch says, or a fact; `{Name}` stands for the dtype as C++ calls it.
        instead: What helps; a sentence.
    """

    dtypes: frozenset[str]
    what: str
    kind: str
    matches: Callable[[Profile], bool] = lambda _target: True
    fails: str
    instead: str
    refuses: bool = False
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What a row is about in a file."""

    row: DtypeRow
    dtype: str
    paths: tuple[str, ...]
    is_off_cpu: bool


def _has_old_torch(target: Profile) -> bool:
    return target.torch_version is not None and release_of(target.torch_version) < _HALF_ON_CPU


def _has_old_macos(target: Profile) -> bool:
    macos = None if target.evidence is None else target.evidence.system.macos
    first = (macos or "").partition(".")[0]
    return first.isdecimal() and int(first[:4]) < _FIRST_MACOS


def _is_before(capability: tuple[int, int]) -> Callable[[Profile], bool]:
    """Return what says whether the GPU where things go is of an older generation, as far as that is known."""

    def is_before(target: Profile) -> bool:
        found = next((gpu for gpu in target.gpus if gpu.device == target.destination), None)
        return found is not None and found.capability is not None and found.capability < capability

    return is_before


DTYPE_ROWS: tuple[DtypeRow, ...] = (
    DtypeRow(
        dtypes=frozenset({"float64"}),
        what="Apple GPUs have no such numbers",
        kind="mps",
        fails='A model in float64 cannot be moved there: "TypeError: Cannot convert a MPS Tensor to float64 '
        "dtype as the MPS framework doesn't support float64. Please use float32 instead.\"",
        instead="Load to the CPU, cast, and only then move: model.float().to('mps').",
        refuses=True,
        source="https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/mps/EmptyTensor.cpp",
    ),
    DtypeRow(
        dtypes=frozenset({"complex128"}),
        what="Apple GPUs have no such numbers",
        kind="mps",
        fails="A model in complex128 cannot be moved there.",
        instead="Load to the CPU, and cast to torch.complex64 before moving it.",
        refuses=True,
        source="https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/mps/EmptyTensor.cpp",
    ),
    DtypeRow(
        dtypes=_FLOAT8,
        what="Apple GPUs have no such numbers",
        kind="mps",
        fails='Moving them there ends with "TypeError: Trying to convert {Name} to the MPS backend '
        'but it does not have support for that dtype."',
        instead="Load to the CPU, and cast to torch.float16 or torch.bfloat16 before moving them.",
        source="https://github.com/pytorch/pytorch/issues/148420",
    ),
    DtypeRow(
        dtypes=frozenset({"bfloat16"}),
        what="Apple GPUs compute with them from macOS 14 on",
        kind="mps",
        matches=_has_old_macos,
        fails='Before that: "TypeError: MPS bfloat16 type is supported on MacOS 14.0 or newer."',
        instead="Cast to torch.float16 on the CPU, or update macOS.",
        source=_ON_MPS,
    ),
    DtypeRow(
        dtypes=frozenset({"complex64"}),
        what="Apple GPUs compute with them from macOS 14 on",
        kind="mps",
        matches=_has_old_macos,
        fails='Before that: "TypeError: MPS complex types are only supported on MacOS 14.0 or newer."',
        instead="Leave them on the CPU, or update macOS.",
        source=_ON_MPS,
    ),
    DtypeRow(
        dtypes=frozenset({"float16"}),
        what="this torch hardly computes with them on a CPU",
        kind="cpu",
        matches=_has_old_torch,
        fails='Before 2.2, linear layers end with \'RuntimeError: "addmm_impl_cpu_" not implemented for '
        "'Half'', and convolutions with 'RuntimeError: \"slow_conv2d_cpu\" not implemented for 'Half''.",
        instead="Cast after loading: model.float().",
        source="https://github.com/arcee-ai/mergekit/issues/175",
    ),
    DtypeRow(
        dtypes=frozenset({"bfloat16"}),
        what="this GPU has no arithmetic for them",
        kind="cuda",
        matches=_is_before(_AMPERE),
        fails="It came with compute capability 8.0 (Ampere): torch emulates it, which is slow.",
        instead="Cast to torch.float16, where the range of the values allows it.",
        source="https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py",
    ),
    DtypeRow(
        dtypes=_FLOAT8,
        what="this GPU has no arithmetic for them",
        kind="cuda",
        matches=_is_before(_ADA),
        fails="It came with compute capability 8.9 (Ada): torch._scaled_mm raises there.",
        instead="Cast to torch.float16 or torch.bfloat16.",
        source="https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cuda/Blas.cpp",
    ),
)


def find_lacks(checkpoint: Checkpoint, target: Profile) -> Iterator[Lack]:
    """Yield what the device where things go cannot do with the weights of a file, by dtype."""
    kind = target.destination.partition(":")[0]
    rows = [row for row in DTYPE_ROWS if row.kind == kind and row.matches(target)]
    wanted = {dtype for row in rows for dtype in row.dtypes}
    weights: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in checkpoint.tensors if wanted else ():
        if tensor.dtype in wanted and tensor.role in _WEIGHTS and tensor.part_of is None:
            weights[tensor.dtype].append(tensor)
    for row in rows:
        for dtype in sorted(row.dtypes & weights.keys()):
            found = weights[dtype]
            yield Lack(
                row=row,
                dtype=dtype,
                paths=tuple(tensor.path for tensor in found),
                is_off_cpu=any(is_accelerator(tensor.device) for tensor in found),
            )

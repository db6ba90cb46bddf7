"""The rows of bare arrays: GGUF, and NumPy's npy and npz."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inspector.containers.container import Container, Extent
from inspector.containers.source import Source
from inspector.containers.table.row import Cannot, Format
from inspector.containers.unread import read_as_other_pickle
from inspector.limits import Limits
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.containers.extents import Extents

_MAGIC = b"GGUF"
_NUMPY = b"\x93NUMPY"


def _read_gguf(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.gguf import read_gguf  # noqa: PLC0415 - few are such

    return read_gguf(source, limits, progress)


def _find_swapped(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.gguf import find_swapped  # noqa: PLC0415 - as above

    return find_swapped(source)


def _read_npy(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.npy import read_npy  # noqa: PLC0415 - few are such

    return read_npy(source, limits, progress)


def _find_swapped_npy(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.npy import find_swapped  # noqa: PLC0415 - as above

    return find_swapped(source)


def _read_npz(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.npz import read_npz  # noqa: PLC0415 - few are such

    return read_npz(source, limits, progress)


def _npz_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    from inspector.containers.npz import npz_extents  # noqa: PLC0415 - as above

    return npz_extents(source, limits, progress)


def _find_arrays(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.npz import find_arrays  # noqa: PLC0415 - as above

    return find_arrays(source)


_NO_DEVICES = Cannot(
    ("remap", "in-place"),
    "the arrays of NumPy have no devices, so there are none to change",
    "torch.from_numpy makes a tensor on the CPU; for torch.load write one file: remap -o model.pth",
)
_ON_THE_CPU = "torch.from_numpy(array).to(device) decides"


ARRAY_ROWS: tuple[Format, ...] = (
    Format(
        name="gguf",
        what="a GGUF model",
        matches=lambda source: source.read_upto(0, len(_MAGIC)) == _MAGIC,
        read=_read_gguf,
        read_rival=read_as_other_pickle,
        storage_extents=_find_swapped,
        loader="gguf.GGUFReader",
        copied_as="state-dict",
        cannot=(
            Cannot(
                ("remap", "in-place"),
                "a GGUF file has no devices, so there are none to change",
                "llama.cpp and its relatives are told a device when they load it",
            ),
        ),
    ),
    Format(
        name="npy",
        what="a NumPy array",
        matches=lambda source: source.read_upto(0, len(_NUMPY)) == _NUMPY,
        read=_read_npy,
        storage_extents=_find_swapped_npy,
        loader="numpy.load",
        runs_with="allow_pickle=True",
        unchecked=True,
        device_from=_ON_THE_CPU,
        copied_as="objects",
        cannot=(_NO_DEVICES,),
    ),
    Format(
        name="npz",
        is_archive=True,
        what="a file of NumPy arrays (.npz)",
        read=_read_npz,
        extents=_npz_extents,
        storage_extents=_find_arrays,
        loader="numpy.load",
        runs_with="allow_pickle=True",
        unchecked=True,
        device_from=_ON_THE_CPU,
        copied_as="state-dict",
        cannot=(_NO_DEVICES,),
    ),
)

"""The rows of bare arrays: GGUF."""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.container import Container, Extent
from inspector.containers.source import Source
from inspector.containers.table.row import Cannot, Format
from inspector.limits import Limits
from inspector.progress import Progress

_MAGIC = b"GGUF"


def _read_gguf(source: Source, limits: Limits, progress: Progress) -> Container:
    from inspector.containers.arrays.gguf import read_gguf  # noqa: PLC0415 - few are such

    return read_gguf(source, limits, progress)


def _find_swapped(source: Source) -> Callable[[str], Extent | None]:
    from inspector.containers.arrays.gguf import find_swapped  # noqa: PLC0415 - as above

    return find_swapped(source)


ARRAY_ROWS: tuple[Format, ...] = (
    Format(
        name="gguf",
        what="a GGUF model",
        matches=lambda source: source.read_upto(0, len(_MAGIC)) == _MAGIC,
        read=_read_gguf,
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
)

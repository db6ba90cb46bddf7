"""Whether one folder is a copy of another but for devices: the bytes of each storage, and all other files."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.containers.folders.folder import Folder
from inspector.containers.opening import read_container
from inspector.containers.source import Source
from inspector.containers.storage_reader import STEP_NBYTES, StorageReader
from inspector.limits import DEFAULT_LIMITS
from inspector.progress import Progress
from inspector.units import cut_text, escape_text

_MOST_CHARS = 80


def compare_folders(source: Folder, copy: Folder, progress: Progress) -> tuple[list[str], int]:
    """Compare the storages of two checkpoints by their keys, and the files that hold none byte by byte.

    Raises:
        CheckpointError: One of them cannot be read.
        CancelledError: The work was cancelled.
    """
    one, other = _reader(source, progress), _reader(copy, progress)
    progress.start("comparing bytes", sum(place.nbytes for place in one.container.stored.values()))
    differences = list(_differences(one, other, progress))
    held = {part.path for part in one.container.parts}
    names = [name for name in source.sizes if source.path_of(name) not in held]
    missing = [name for name in source.sizes if name not in copy.sizes]
    further = [name for name in copy.sizes if name not in source.sizes]
    differences += [f"The file {_shown(name)} is missing from the copy." for name in missing]
    differences += [f"The file {_shown(name)} is in the copy alone." for name in further]
    for name in names:
        if name in copy.sizes and not _is_same(source, copy, name, progress):
            differences.append(f"The file {_shown(name)} differs.")
    return differences, progress.done


def _reader(folder: Folder, progress: Progress) -> StorageReader:
    return StorageReader(read_container(folder, DEFAULT_LIMITS, progress), folder)


def _differences(one: StorageReader, other: StorageReader, progress: Progress) -> Iterator[str]:
    for key in one.container.stored:
        nbytes = one.nbytes(key)
        if other.nbytes(key) != nbytes:
            yield f"Storage {_shown(key)} has {other.nbytes(key):,} bytes in the copy, not {nbytes:,}."
            continue
        for start in range(0, nbytes, STEP_NBYTES):
            length = min(STEP_NBYTES, nbytes - start)
            if one.read(key, start, length) != other.read(key, start, length):
                yield f"The bytes of storage {_shown(key)} differ."
                break
            progress.advance(length)


def _is_same(source: Folder, copy: Folder, name: str, progress: Progress) -> bool:
    with source.open(name) as one, copy.open(name) as other:
        return one.nbytes == other.nbytes and all(
            _step(one, start, progress) == _step(other, start, progress)
            for start in range(0, one.nbytes, STEP_NBYTES)
        )


def _step(source: Source, start: int, progress: Progress) -> bytes:
    progress.advance(0)
    return source.read_upto(start, STEP_NBYTES)


def _shown(name: str) -> str:
    return escape_text(cut_text(name, _MOST_CHARS))

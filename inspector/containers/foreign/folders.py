"""Folders that are given instead of a file, and parts of a checkpoint that was unpacked into one.

A checkpoint is a zip archive, and browsers and file managers unpack archives unasked: what is left is a
folder with the archive's parts, which torch.load does not read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice

from inspector.errors import NotACheckpointError
from inspector.quoting import file_word

UNPACKED = "unpacked"
_PICKLE = "data.pkl"
_PARTS = frozenset({_PICKLE, "version"})
_MOST_NAMES = 10_000
_MOST_SIZES = 200
_CHECKPOINTS = (".pth", ".pt", ".ckpt", ".bin", ".pth.tar")


def name_folder(path: str) -> NotACheckpointError:
    """Return the error that says what a folder is, and which file to give instead.

    Args:
        path: The path of the folder, as it was given.
    """
    names = _names(path)
    inner = path if names >= _PARTS else next((at for at in _folders(path, names) if is_unpacked(at)), None)
    if inner is not None:
        what = "this is an unpacked checkpoint: a folder, where torch.load needs the archive"
        return NotACheckpointError(what, where=path, remedy=pack_again(inner), form=UNPACKED)
    largest = _largest_checkpoint(path, names)
    such_as = f", such as {file_word(largest)}" if largest else ""
    return NotACheckpointError(
        "this folder is no checkpoint of several files",
        where=path,
        remedy=f"give the path of a file in it{such_as}",
    )


def is_part(path: str) -> bool:
    """Return whether a file is the pickle of an unpacked checkpoint."""
    folder, name = os.path.split(path)
    return name == _PICKLE and is_unpacked(folder or os.curdir)


def is_unpacked(folder: str) -> bool:
    """Return whether a folder has the parts of a checkpoint."""
    return _names(folder) >= _PARTS


def pack_again(folder: str) -> str:
    """Return what to do about an unpacked checkpoint: torch wants the folder itself in the archive, too."""
    name = file_word(os.path.basename(os.path.abspath(folder)))  # noqa: PTH100, PTH119 - a text
    return f"fetch it again without unpacking, or pack it from the folder above: zip -0 -r packed.pth {name}"


def _names(folder: str) -> frozenset[str]:
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        return frozenset(entry.name for entry in islice(entries, _MOST_NAMES))
    return frozenset()


def _folders(path: str, names: frozenset[str]) -> list[str]:
    """Return the only thing in a folder, but for what a Mac leaves there."""
    real = [name for name in names if not name.startswith((".", "__MACOSX"))]
    return [os.path.join(path, name) for name in real] if len(real) == 1 else []  # noqa: PTH118 - a text


def _largest_checkpoint(path: str, names: frozenset[str]) -> str:
    """Return the file that is asked about most probably: weights are larger than what lies beside them."""
    likely = sorted(name for name in names if name.lower().endswith(_CHECKPOINTS))
    paths = [os.path.join(path, name) for name in likely[:_MOST_SIZES]]  # noqa: PTH118 - a text
    return max((at for at in paths if os.path.isfile(at)), key=_nbytes, default="")  # noqa: PTH113 - a text


def _nbytes(path: str) -> int:
    with suppress(OSError):
        return os.path.getsize(path)  # noqa: PTH202 - a text
    return 0

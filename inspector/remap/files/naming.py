"""What a new file beside another is called: `best.cpu.pth`, then `best.cpu-2.pth`, ...; `best.pth.undo`."""

from __future__ import annotations

import os
import os.path
from collections.abc import Collection
from pathlib import Path

_UNDO_SUFFIX = ".undo"
_MOST_SUFFIX = 16
_BEFORE_TAR = (".pth", ".pt", ".ckpt")
_MOST_STEM_NBYTES = 200
"""File systems take 255 for a name; the rest is for what is added."""


def device_word(devices: Collection[str]) -> str:
    """Return the word that tells a copy by where its tensors go: the type of device, if that is one."""
    kinds = {device.partition(":")[0] for device in devices}
    return kinds.pop() if len(kinds) == 1 else "fixed"


def free_path(path: str, word: str, suffix: str = "") -> str:
    """Return a path beside a file at which nothing stands, spelled as the path was given.

    Args:
        path: The file.
        word: What tells the new one.
        suffix: The suffix of the new one; empty for the file's own, of a compressed file without `.gz`.
    """
    name = os.path.basename(path)  # noqa: PTH119 - a `Path` would spell it in its own way
    folder = path.removesuffix(name)
    stem, own = _split(name.removesuffix(".gz"))
    number = 1
    while True:
        told = word if number == 1 else f"{word}-{number}"
        candidate = f"{folder}{stem}.{told}.{suffix or own}"
        if not os.path.lexists(candidate):
            return candidate
        number += 1


def _split(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > _MOST_SUFFIX:
        stem, suffix = name, "pth"
    elif suffix == "tar" and stem.endswith(_BEFORE_TAR):  # `model_best.pth.tar` is a habit of years
        stem, _, before = stem.rpartition(".")
        suffix = f"{before}.{suffix}"
    while len(os.fsencode(stem)) > _MOST_STEM_NBYTES:
        stem = stem[:-1]
    return stem, suffix


def free_folder(path: str, word: str) -> str:
    """Return a path beside a folder, or beside the one that a file stands for, at which nothing stands."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120 - as above
    start = os.path.normpath(folder or os.curdir)
    start = os.path.abspath(start) if start in {os.curdir, os.pardir} else start  # noqa: PTH100 - as above
    number = 1
    while True:
        candidate = f"{start}.{word}" if number == 1 else f"{start}.{word}-{number}"
        if not os.path.lexists(candidate):
            return candidate
        number += 1


def record_path(path: Path) -> Path:
    """Return where the undo record of a file stands: beside it, and beside its target if it is a link."""
    path = path.resolve()
    return path.with_name(path.name + _UNDO_SUFFIX)


def patched_path(record_at: Path) -> Path:
    """Return the file that a record stands beside."""
    return record_at.with_name(record_at.name.removesuffix(_UNDO_SUFFIX))

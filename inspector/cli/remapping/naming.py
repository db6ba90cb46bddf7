"""What the copies of several files are called in a folder: as the files are, and never two alike."""

from __future__ import annotations

import os
from collections.abc import Sequence

from inspector.containers.folders.paths import stands_for_folder
from inspector.errors import PlanError
from inspector.remap.forms import SAFETENSORS_SUFFIX, TORCH_SUFFIXES

_PACKED = (".gz", ".bz2", ".xz", ".lzma", ".lz4", ".zlib")
"""A copy is never compressed as a whole, so it does not keep these."""
_TAR = ".tar"


def name_of(path: str, shape: str | None, *, is_form: bool) -> str:
    """Return the name of a copy: the file's own, but for a suffix that would say another format.

    Args:
        shape: What --format asks for, or None.
        is_form: Whether something else than a plain copy is asked for, which is one file.
    """
    own = _own_name(path)
    if is_folder(path):
        if not is_form:
            return own
        return own + (SAFETENSORS_SUFFIX if shape == "safetensors" else ".pth")
    own = _unpacked(own)
    if shape == "safetensors":
        return own if own.lower().endswith(SAFETENSORS_SUFFIX) else _stem(own) + SAFETENSORS_SUFFIX
    if shape is not None and own.lower().endswith(SAFETENSORS_SUFFIX):
        return _stem(own) + ".pth"
    return own


def is_folder(path: str) -> bool:
    """Return whether a checkpoint is the files of a folder, whose plain copy is another folder."""
    return os.path.isdir(path) or stands_for_folder(*os.path.split(path))  # noqa: PTH112 - as it was given


def _own_name(path: str) -> str:
    """Return the last step of a path; of a file that stands for its folder, the folder's."""
    if stands_for_folder(*os.path.split(path)):
        path = os.path.dirname(path) or os.curdir  # noqa: PTH120 - a text
    name = os.path.basename(os.path.normpath(path))  # noqa: PTH119 - a text
    return os.path.basename(os.path.abspath(path)) if name in {"", os.curdir, os.pardir} else name  # noqa: PTH100, PTH119 - a text


def _unpacked(name: str) -> str:
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a text
    return stem if suffix.lower() in _PACKED and os.path.splitext(stem)[1] else name  # noqa: PTH122 - a text


def _stem(name: str) -> str:
    """Return a name without the suffix that says a format; `model.v1` has none."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a text
    if suffix.lower() == _TAR:
        stem, suffix = os.path.splitext(stem)  # noqa: PTH122 - `best.pth.tar`
    return stem if suffix.lower() in TORCH_SUFFIXES | {SAFETENSORS_SUFFIX} else name


def refuse_collisions(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse files whose copies would have one name."""
    taken: dict[str, str] = {}
    for path, output in pairs:
        key = os.path.normcase(output)
        if key not in taken:
            taken[key] = path
        elif _is_same(path, taken[key]):
            raise PlanError(
                "this file is named twice", where=f"{taken[key]} and {path}", remedy="name it once"
            )
        else:
            raise PlanError(
                f"two files would have one copy, {output}",
                where=f"{taken[key]} and {path}",
                remedy="put one of them into another folder, or name its copy with -o",
            )


def refuse_sources(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse copies that would take the place of another file that is still to be copied."""
    sources = {place: path for path, _ in pairs if (place := place_of(path)) is not None}
    for path, output in pairs:
        other = sources.get(place_of(output) or (-1, -1))
        if other not in {None, path}:
            raise PlanError(
                f"the copy of {path} would replace a file that is to be copied",
                where=other,
                remedy="choose another folder",
            )


def _is_same(one: str, other: str) -> bool:
    place = place_of(one)
    return one == other or (place is not None and place == place_of(other))


def place_of(path: str, *, follows: bool = True) -> tuple[int, int] | None:
    """Return what tells a file from any other of this machine; None where there is none."""
    try:
        status = os.stat(path, follow_symlinks=follows)  # noqa: PTH116 - a text
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino

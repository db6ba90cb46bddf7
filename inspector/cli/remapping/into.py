"""Several files into a folder: all names are settled before the first is written."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from inspector.containers.opening import stands_for_folder
from inspector.errors import ExportError, PlanError
from inspector.remap.forms import SAFETENSORS_SUFFIX, TORCH_SUFFIXES

# What the copies of several files are called in a folder: as the files are, and never two alike.

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


def has_form(options: argparse.Namespace) -> bool:
    """Return whether something else than a plain copy is asked for, whatever the file."""
    asked = (options.only, options.exclude, options.strip_prefix, options.compact, options.format)
    return any((*asked, options.container, options.cast, options.ema))


def copy_name(path: str, options: argparse.Namespace) -> str:
    """Return what the copy of a file is called where the file's own name is kept."""
    return name_of(path, options.format, is_form=has_form(options))


def is_folder_copy(path: str, options: argparse.Namespace) -> bool:
    """Return whether the copy of a path is a folder, not a file."""
    return is_folder(path) and not has_form(options)


def write_into(
    files: list[str], options: argparse.Namespace, write: Callable[[argparse.Namespace], int]
) -> Callable[[str], int]:
    """Settle where each copy goes, and return what writes the copy of one file."""
    folder = Path(options.into)
    outputs = {path: os.fspath(folder / copy_name(path, options)) for path in files}
    pairs = [(path, outputs[path]) for path in files]
    refuse_collisions(pairs)
    refuse_sources(pairs)
    if not options.dry_run:
        _prepare(folder, pairs, overwrite=options.force)

    written: set[tuple[int, int]] = set()

    def answer(path: str) -> int:
        output = outputs[path]
        if place_of(output, follows=False) in written:  # where `A.pth` and `a.pth` are one name
            raise ExportError(
                "the copy would replace that of another file", where=output, remedy="name it with -o"
            )
        code = write(argparse.Namespace(**{**vars(options), "file": path, "output": output}))
        place = place_of(output, follows=False)
        written.update(() if place is None else (place,))
        return code

    return answer


def _prepare(folder: Path, pairs: list[tuple[str, str]], *, overwrite: bool) -> None:
    """Refuse what must not be written over, and make the folder."""
    from inspector.remap.files import explained, refuse_destination

    if os.path.lexists(folder) and not folder.is_dir():
        raise ExportError("this is no folder", where=str(folder), remedy="name another with --into")
    if folder.is_dir():
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ExportError("nothing can be written into this folder", where=str(folder))
        for path, output in pairs:
            refuse_destination(path, Path(output), overwrite=overwrite)
        return
    with explained(folder, "the folder cannot be made"):
        folder.mkdir()


def remove_empty(folder: str) -> None:
    """Remove a folder that was made for copies of which none could be written."""
    with suppress(OSError):
        Path(folder).rmdir()

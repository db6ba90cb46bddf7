"""Several files into a folder: all names are settled before the first is written."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from inspector.cli.remapping.naming import is_folder, name_of, place_of, refuse_collisions, refuse_sources
from inspector.errors import ExportError


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

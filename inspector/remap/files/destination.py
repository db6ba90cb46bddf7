"""Where a copy may be written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from inspector.containers.opening import stands_for_folder
from inspector.errors import ExportError
from inspector.remap.files.outfile import explained


def refuse_destination(path: str, destination: Path, *, overwrite: bool) -> None:
    """Refuse to write over the source, or over anything unless that was asked for."""
    if "\0" in str(destination):
        raise ExportError("this is not a file name", where=repr(str(destination)))
    with explained(destination):
        if destination.exists() and Path(path).exists() and destination.samefile(path):
            raise ExportError(
                "the copy would replace the file itself", where=str(destination), remedy="choose another file"
            )
        if destination.is_dir():
            raise ExportError("this is a folder", where=str(destination), remedy="name a file in it")
        if destination.exists() and not destination.is_file():
            raise ExportError("this is not a regular file", where=str(destination), remedy="name another")
        if not overwrite and os.path.lexists(destination):
            raise ExportError(
                "the file already exists",
                where=str(destination),
                remedy="choose another name, or use --force",
            )
        if not destination.parent.is_dir():
            raise ExportError("no such folder", where=str(destination.parent))


def refuse_parts(parts: Iterable[str], destination: Path) -> None:
    """Refuse to write over one of the files that a checkpoint consists of, or over what lists them."""
    parts = tuple(parts)
    if not parts:
        return
    with explained(destination):
        if not destination.exists():
            return
        folders = {Path(part).resolve().parent for part in parts}
        lists = stands_for_folder(str(destination.parent), destination.name)
        is_list = lists and destination.resolve().parent in folders
        if is_list or any(Path(part).exists() and destination.samefile(part) for part in parts):
            raise ExportError(
                "the copy would replace a part of the checkpoint itself",
                where=str(destination),
                remedy="choose another file",
            )


def copy_times(path: str, destination: Path) -> None:
    """Set the times of a copy to those of the original."""
    with explained(destination, "the times cannot be set"):
        status = Path(path).stat()
        os.utime(destination, ns=(status.st_atime_ns, status.st_mtime_ns))

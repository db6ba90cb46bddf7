"""The files of tensors that are dragged out: written into a temporary folder, and removed later.

A file manager copies what it is given after the drag has ended, and tells nobody when it is done. So files
stay for a while, and each drag removes what older ones left, also those of a program that was killed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspector.errors import ExportError
from inspector.progress import Progress
from inspector.session.document import Document
from inspector.session.export.arrays import write_npy
from inspector.session.values.taking import PREFIX, Taking
from inspector.units import format_nbytes
from inspector.values.asking import ValueReader
from inspector.values.request import Requests

KEPT_S = 600.0
"""How long files stay after they were written: a file manager takes its time for a gigabyte."""
KEPT_AT_END_S = 60.0
"""As above, when the program ends."""
_SPARE_NBYTES = 16 << 20


def temporary_root() -> str:
    """Return where the folders of drags are."""
    return tempfile.gettempdir()


def take_out(document: Document, reader: ValueReader, taking: Taking, progress: Progress) -> Taking:
    """Write the files, all of them or none."""
    folder = Path(taking.folder)
    remove_left(str(folder.parent), KEPT_S)
    progress.start("preparing arrays", taking.nbytes)
    _make(folder, taking.nbytes)
    head: dict[str, Any] = {"what": "rows", **Requests(document.checkpoint).file}
    try:
        for path, request in taking.files:
            write_npy(path, reader.answers({**head, "tensor": request}, progress))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return taking


def remove_taken(taking: Taking) -> None:
    """Remove the files of a drag that came to nothing."""
    shutil.rmtree(taking.folder, ignore_errors=True)


def remove_left(root: str, older_s: float) -> None:
    """Remove the folders that drags of this user made, so many seconds after the last file was written."""
    now = time.time()
    for path, modified in list(_own_folders(root)):
        if now - modified >= older_s:
            shutil.rmtree(path, ignore_errors=True)


def _own_folders(root: str) -> Iterator[tuple[str, float]]:
    """Yield the folders of drags and when they were changed last; a link of that name is none."""
    owner = os.getuid() if hasattr(os, "getuid") else None
    try:
        with os.scandir(root) as entries:
            for entry in (entry for entry in entries if entry.name.startswith(PREFIX)):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and owner in {None, status.st_uid}:
                    yield entry.path, status.st_mtime
    except OSError:  # nothing to list, or another program was quicker
        return


def _make(folder: Path, nbytes: int) -> None:
    try:
        free = shutil.disk_usage(folder.parent).free
        if free >= nbytes + _SPARE_NBYTES:
            folder.mkdir(mode=0o700)
            return
    except OSError as error:
        what = "the array cannot be written"
        raise ExportError(what, where=f"{folder.parent}: {error.strerror}") from error
    raise ExportError(
        f"the arrays take {format_nbytes(nbytes)}, and the temporary folder has {format_nbytes(free)} left",
        where=str(folder.parent),
        remedy="save them on the Tensor page, or set TMPDIR to a folder with more room",
    )

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import ExportError
from inspector.remap.files.unchanged import refuse_changed


def append(path: Path) -> None:
    path.write_bytes(b"more")


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def replace(path: Path) -> None:
    status = path.stat()
    path.rename(path.with_name("old"))
    path.touch()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", [append, touch, replace, Path.unlink])
def test_a_file_that_changed_is_refused(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "in.pt"
    path.touch()
    with path.open("rb") as file:
        before = path.stat()
        for fd in (None, file.fileno()):
            refuse_changed(str(path), before, "read", fd)
        change(path)
        with pytest.raises(ExportError, match="the file changed while it was copied") as error:
            refuse_changed(str(path), before, "copied")
        assert error.value.where == str(path)
        if change in {append, touch}:  # otherwise it is open as it was
            with pytest.raises(ExportError, match="the file changed while it was read"):
                refuse_changed(str(path), before, "read", file.fileno())
        else:
            refuse_changed(str(path), before, "read", file.fileno())

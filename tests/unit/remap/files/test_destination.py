from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from inspector.errors import ExportError
from inspector.remap.files.destination import copy_times, refuse_destination


def test_times_are_those_of_the_original(tmp_path: Path) -> None:
    for name in ("in.pt", "out.pt"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "in.pt", ns=(3, 5))
    copy_times(str(tmp_path / "in.pt"), tmp_path / "out.pt")
    assert (tmp_path / "out.pt").stat().st_mtime_ns == 5
    with pytest.raises(ExportError, match="the times cannot be set: No such file"):
        copy_times(str(tmp_path / "in.pt"), tmp_path / "none")


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(ExportError, match="Permission denied"):
        refuse_destination(str(tmp_path / "in.pt"), tmp_path / "out.pt", overwrite=False)


def test_a_source_that_is_gone_is_left_to_its_reader(tmp_path: Path) -> None:
    refuse_destination(str(tmp_path / "none"), tmp_path / "out.pt", overwrite=False)

"""The files of a drag: all or none, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from inspector.errors import CancelledError, ExportError, ValuesError
from inspector.progress import Progress
from inspector.session.document import open_document
from inspector.session.values import taken as module
from inspector.session.values.taken import remove_left, remove_taken, take_out, temporary_root
from inspector.session.values.taking import plan_taking
from tests.unit.session.values.test_intentions import Here
from tests.unit.values.test_statistics import NAN, weights


@pytest.fixture
def document(tmp_path: Path):
    return open_document(weights(tmp_path, a=[1.0, 2.0, 3.0, NAN], b=[5.0] * 6), Progress())


def left_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("checkpoint-inspector-drag-*"))


def test_the_files_hold_what_the_tensors_hold(document, tmp_path: Path) -> None:
    import numpy as np

    taking = plan_taking(document, [1, 2], str(tmp_path))
    progress = Progress()
    assert take_out(document, Here(), taking, progress) is taking
    found = [np.load(path).tolist() for path, _ in taking.files]
    assert found[0][0] == [1.0, 2.0]
    assert found[1] == [[5.0, 5.0]] * 3
    assert Path(taking.folder).stat().st_mode & 0o777 == 0o700
    assert progress.total == 40
    remove_taken(taking)
    assert left_in(tmp_path) == []


def test_one_that_fails_takes_all_away(document, tmp_path: Path) -> None:
    taking = plan_taking(document, [1, 2], str(tmp_path))
    second = taking.files[1][1]
    second["dtype"] = "int3"
    with pytest.raises(ValuesError, match="int3"):
        take_out(document, Here(), taking, Progress())
    assert left_in(tmp_path) == []
    second["dtype"] = "float32"
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        take_out(document, Here(), taking, progress)
    assert left_in(tmp_path) == []


def test_a_folder_without_room_or_that_is_not_there_is_an_error(document, tmp_path, monkeypatch) -> None:
    taking = plan_taking(document, [1], str(tmp_path / "none"))
    with pytest.raises(ExportError, match="the array cannot be written") as caught:
        take_out(document, Here(), taking, Progress())
    assert "No such file" in str(caught.value.where)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    taking = plan_taking(document, [1], str(tmp_path))
    with pytest.raises(ExportError, match=r"take 16 B, and the temporary folder has 1.0 KB left"):
        take_out(document, Here(), taking, Progress())
    assert left_in(tmp_path) == []


def test_old_folders_of_drags_are_removed_and_nothing_else(tmp_path: Path, monkeypatch) -> None:
    old = time.time() - 1000
    other = tmp_path / "kept"
    other.mkdir()
    (other / "file").write_bytes(b"")
    names = [f"checkpoint-inspector-drag-{name}" for name in ("old", "new", "file", "link")]
    for name in names[:2]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.npy").write_bytes(b"")
    (tmp_path / names[2]).write_bytes(b"")
    (tmp_path / names[3]).symlink_to(other)
    for path in (names[0], names[2], "kept"):
        os.utime(tmp_path / path, (old, old))
    remove_left(str(tmp_path), 600)
    assert left_in(tmp_path) == sorted(names[1:])
    assert (other / "file").exists()
    monkeypatch.setattr(module.os, "getuid", lambda: -1)
    remove_left(str(tmp_path), 0)  # those of another user
    assert left_in(tmp_path) == sorted(names[1:])
    monkeypatch.delattr(module.os, "getuid")  # as on Windows
    remove_left(str(tmp_path), 0)
    assert left_in(tmp_path) == sorted(names[2:])
    remove_left(str(tmp_path / "none"), 0)


def test_the_folders_are_where_temporary_files_go(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert temporary_root() == str(tmp_path)

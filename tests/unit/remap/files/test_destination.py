from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.remap.export_form import export_form
from inspector.remap.files import copy_times, refuse_destination, refuse_parts
from inspector.remap.forms import Form
from tests.builders.folders import two_shards


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


def test_no_part_of_a_checkpoint_is_written_over(tmp_path: Path) -> None:
    index = two_shards(tmp_path / "run")
    part = index.with_name("pytorch_model-00001-of-00002.bin")
    (tmp_path / "link.bin").symlink_to(part)
    (index.with_name("mine.bin")).touch()
    (tmp_path / "other").mkdir()
    other = tmp_path / "other/model.bin.index.json"
    other.write_text("{}")
    parts = [row.path for row in open_checkpoint(str(index)).parts]
    refused = []
    for place in (
        part,
        tmp_path / "link.bin",
        index,
        index.with_name("mine.bin"),
        tmp_path / "new.bin",
        other,
    ):
        try:
            refuse_parts(parts, place)
        except ExportError:
            refused.append(place.name)
    assert refused == [part.name, "link.bin", index.name]
    refuse_parts((), part)
    before = part.read_bytes()
    with pytest.raises(ExportError, match="a part of the checkpoint itself"):
        export_form(str(index.parent), part, None, Form(shape="state-dict"), overwrite=True)
    assert part.read_bytes() == before

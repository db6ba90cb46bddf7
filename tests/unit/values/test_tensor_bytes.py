"""Bytes of files that are as they were, and of files that are not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from inspector.containers import opening
from inspector.errors import ContainerError, ValuesError
from inspector.model.build import open_checkpoint
from inspector.values import tensor_bytes
from inspector.values.request import Requests
from inspector.values.tensor_bytes import open_bytes
from tests.builders.folders import two_shards
from tests.builders.pickles import state_dict, storage, tensor
from tests.builders.zips import DEFLATED, Record, build_zip


def place(**more: Any) -> dict[str, Any]:
    return {"key": "0", "nbytes": 4, "part": "", "file_offset": 2} | more


def test_bytes_are_those_of_the_storage_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"..abcd....")
    with open_bytes(str(path), None) as opened:
        read = opened.read_of(place())
        assert read(1, 3) == b"bcd"
        for offset, nbytes in ((2, 3), (-1, 2)):
            with pytest.raises(ValuesError, match="past the 4 bytes"):
                read(offset, nbytes)


def test_a_file_that_changes_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"..abcd....")
    status = path.stat()
    stamp = [status.st_mtime_ns, status.st_size, status.st_ino]
    with pytest.raises(ContainerError, match="changed"), open_bytes(str(path), stamp):
        os.utime(path, ns=(5, 5))
    with pytest.raises(ContainerError, match="changed"), open_bytes(str(path), stamp):
        pass


def test_compressed_storages_are_inflated_and_the_container_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "packed.pt"
    records = (
        Record(name="archive/data.pkl", data=state_dict(w=tensor(storage(), 2))),
        Record(name="archive/data/0", data=b"abcdefgh", method=DEFLATED),
        Record(name="archive/version", data=b"3\n"),
    )
    path.write_bytes(build_zip(*records))
    read_files = []
    monkeypatch.setattr(
        tensor_bytes, "read_container", lambda source: read_files.append(1) or opening.read_container(source)
    )
    for _ in range(2):
        with open_bytes(str(path), None) as opened:
            assert opened.read_of(place(file_offset=None, nbytes=8))(2, 3) == b"cde"
            assert opened.read_of(place(file_offset=None, nbytes=8))(0, 1) == b"a"
    assert read_files == [1]


def test_parts_of_a_folder_are_read(tmp_path: Path) -> None:
    folder = two_shards(tmp_path)
    checkpoint = open_checkpoint(str(folder))
    requests = Requests(checkpoint)
    asked = [requests.of(row) for row in range(len(checkpoint.tensors))]
    assert len({request["place"]["part"] for request in asked}) == 2
    with open_bytes(**requests.file) as opened:
        for request in asked:
            nbytes = request["place"]["nbytes"]
            assert len(opened.read_of(request["place"])(0, nbytes)) == nbytes

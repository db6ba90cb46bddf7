"""Two folders compared: by the bytes of storages, and file by file where there are none."""

from __future__ import annotations

import shutil
from pathlib import Path

from inspector.remap.verify import compare_files
from tests.builders.archives import archive
from tests.builders.folders import trainer
from tests.builders.pickles import proto, storage, stream, tensor


def differences(tmp_path: Path) -> tuple[str, ...]:
    return compare_files(str(tmp_path / "copy"), str(tmp_path / "run")).differences


def test_folders_are_compared_whole(tmp_path: Path) -> None:
    shutil.copytree(trainer(tmp_path / "run"), tmp_path / "copy")
    found = compare_files(str(tmp_path / "copy"), str(tmp_path / "run"))
    assert (found.differences, found.tensors, found.compared_nbytes) == ((), 4, 4685)
    assert compare_files(str(tmp_path / "run"), str(tmp_path / "run")).is_same
    config = tmp_path / "copy" / "config.json"
    config.write_text(config.read_text() + " ")
    assert differences(tmp_path) == ("The file config.json differs.",)
    config.rename(tmp_path / "copy" / "other.json")
    assert "The file config.json is missing from the copy." in differences(tmp_path)
    assert "The file other.json is in the copy alone." in differences(tmp_path)


def test_changed_bytes_are_found(tmp_path: Path) -> None:
    shutil.copytree(trainer(tmp_path / "run"), tmp_path / "copy")
    file = tmp_path / "copy" / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert differences(tmp_path) == ("The file model.safetensors differs.",)
    file.write_bytes(data[:-8])
    assert differences(tmp_path) == ("The file model.safetensors differs.",)


def test_files_beside_are_compared_to_their_end(tmp_path: Path) -> None:
    trainer(tmp_path / "run")
    (tmp_path / "run" / "vocab.txt").write_bytes(bytes(3 << 20))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert differences(tmp_path) == ()
    (tmp_path / "copy" / "vocab.txt").write_bytes(bytes((3 << 20) - 1) + b"x")
    assert differences(tmp_path) == ("The file vocab.txt differs.",)


def add_stranger(folder: Path, location: str) -> None:
    """Have a folder hold a file that is no part of its checkpoint, and so in no row."""
    push = tensor(storage("0", location=location), 2)
    (folder / "mine.pth").write_bytes(archive(stream(proto(), push), {"0": bytes(8)}))


def test_devices_that_no_row_of_a_folder_shows_are_compared(tmp_path: Path) -> None:
    add_stranger(trainer(tmp_path / "run"), "cuda:0")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    paths = str(tmp_path / "copy"), str(tmp_path / "run")
    assert compare_files(*paths, []).is_same
    add_stranger(tmp_path / "copy", "cuda:7")
    assert compare_files(*paths, []).differences == ("A device that no row shows differs.",)

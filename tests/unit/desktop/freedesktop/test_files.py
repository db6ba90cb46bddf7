"""Small files are replaced as a whole or not at all."""

from __future__ import annotations

import os

import pytest

from inspector.desktop.freedesktop.caches import (
    read_if_there,
    remove_empty_folders,
    restore,
    write_atomically,
)


def test_a_new_file_can_be_read_by_the_desktop(tmp_path):
    path = tmp_path / "a" / "b" / "new"
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"
    assert path.stat().st_mode & 0o777 == 0o644


def test_the_mode_and_the_link_of_an_old_file_stay(tmp_path):
    target = tmp_path / "dotfiles" / "mimeapps.list"
    target.parent.mkdir()
    target.write_bytes(b"old")
    target.chmod(0o600)
    link = tmp_path / "mimeapps.list"
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse(handle, mode):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


def test_what_was_read_is_put_back(tmp_path):
    path = tmp_path / "file"
    assert read_if_there(path) is None
    path.write_bytes(b"old")
    before = read_if_there(path)
    path.write_bytes(b"new")
    restore(path, before)
    assert path.read_bytes() == b"old"
    restore(path, None)
    restore(path, None)
    assert not path.exists()


def test_empty_folders_go_up_to_the_first_that_is_in_use(tmp_path):
    deep = tmp_path / "home" / "a" / "b" / "c"
    deep.parent.mkdir(parents=True)
    (tmp_path / "home" / "file").touch()
    remove_empty_folders(deep, below=tmp_path / "home")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["file"]
    remove_empty_folders(tmp_path / "home", below=tmp_path)
    assert (tmp_path / "home" / "file").exists()


def test_nothing_outside_is_removed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    remove_empty_folders(tmp_path / "elsewhere", below=tmp_path / "home")
    assert (tmp_path / "elsewhere").exists()


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        read_if_there(tmp_path / "fifo")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than"):
        read_if_there(tmp_path / "large")
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    assert read_if_there(tmp_path / "link") is None

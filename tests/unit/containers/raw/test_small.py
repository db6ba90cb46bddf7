from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.containers.source import read_small
from inspector.errors import ContainerError


def test_a_small_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_small(path, 5) == read_small(str(path), 6) == b"12345"


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ContainerError, match="larger than 1,000 bytes"):
        read_small(path, 1000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path):
        with pytest.raises(ContainerError, match=r"not a regular file|this folder"):
            read_small(path, 1000)
    with pytest.raises(ContainerError, match="no such file"):
        read_small(tmp_path / "none", 1000)

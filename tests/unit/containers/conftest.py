from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.limits import Limits


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a file and give its path."""

    def write(data: bytes, name: str = "file.pt") -> str:
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return write


@pytest.fixture
def take_apart(write: Callable[..., str]) -> Callable[..., Container]:
    """Write a file and take it apart within these limits."""

    def take_apart(data: bytes, **limits: float) -> Container:
        return read_container(write(data), Limits(**limits))

    return take_apart

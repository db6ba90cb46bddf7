"""A row of the tree is dragged into a folder of a file manager, where a `.npy` file appears."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.end2end.screen import wait_until

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

_FIRST_ROW = 150  # below the corner of the window


def test_a_row_becomes_a_file_in_the_folder(screen, program, tmp_path, folder, file_manager):
    values = torch.arange(3_000_000, dtype=torch.bfloat16).reshape(1000, 3000)
    path = tmp_path / "large.pth"
    torch.save({"a": values}, path)
    window = program.open(path)
    screen.put(window, 640, 60, 1280, 800)
    place = screen.place(window)
    start = place.x + 40, place.y + _FIRST_ROW
    screen.activate(window)
    made: Path = folder / "a.npy"
    screen.drag(start, (500, 400), made.exists, "the array")  # to a place without an icon
    size = 128 + 4 * values.numel()
    wait_until(lambda: made.stat().st_size == size, "all of the array")
    time.sleep(0.2)
    assert np.array_equal(np.load(made), values.float().numpy())

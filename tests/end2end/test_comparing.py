"""Two checkpoints compared by a user's hand: dropped with Ctrl held, and chosen by the keyboard."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.builders.states import T, save_zip
from tests.end2end.screen import wait_until

BESIDE_THE_FILE_MANAGER = (640, 0, 800, 700)
BEGINNING_S = 0.5


def wait_comparison(screen, *names: str) -> int:
    """Wait for the window that compares two files."""
    return wait_until(lambda: comparison(screen, *names), "a window that compares two files")


def comparison(screen, *names: str) -> int:
    """Return the window that compares two files, or 0."""
    return next(iter(screen.windows(re.escape(" \u2194 ".join(names)) + ".*")), 0)


def test_a_second_file_that_is_dropped_with_ctrl_and_one_that_is_chosen(
    screen, program, tmp_path, checkpoint, file_manager
):
    first = Path(save_zip(tmp_path / "first.pt", {"w": T([1.0, 2.0])}))
    second = Path(save_zip(tmp_path / "second.pt", {"w": T([1.0, 4.0])}))
    window = program.open(first)
    screen.put(window, *BESIDE_THE_FILE_MANAGER)
    start, place = file_manager.first_icon(), screen.place(window)
    end = place.x + place.width * 3 // 4, place.middle[1]
    both = first.name, checkpoint.name
    compared = screen.drag(start, end, lambda: comparison(screen, *both), "both files in a window", "ctrl")
    screen.close(compared)
    screen.open_dialog(window, "ctrl+d")
    time.sleep(BEGINNING_S)
    screen.type(str(second))
    screen.press("Return")
    compared = wait_comparison(screen, first.name, second.name)
    screen.wait_active(compared)
    pictures = [screen.picture_at_rest(tmp_path / "compared.png", compared)]
    screen.press("Down", "Down")
    pictures.append(screen.picture_at_rest(tmp_path / "selected.png", compared))
    second.unlink()
    screen.press("F5")
    pictures.append(screen.picture_at_rest(tmp_path / "gone.png", compared))
    assert len(set(pictures)) == len(pictures)
    screen.close(compared)
    assert program.wait(first) == window

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
    title = re.escape(" \u2194 ".join(names)) + ".*"
    return wait_until(lambda: screen.windows(title), f"a window {title}", timeout_s=60)[-1]


def test_a_second_file_that_is_dropped_with_ctrl_and_one_that_is_chosen(
    screen, program, tmp_path, checkpoint, file_manager
):
    first = Path(save_zip(tmp_path / "first.pt", {"w": T([1.0, 2.0])}))
    second = Path(save_zip(tmp_path / "second.pt", {"w": T([1.0, 4.0])}))
    window = program.open(first)
    screen.put(window, *BESIDE_THE_FILE_MANAGER)
    start, place = file_manager.first_icon(), screen.place(window)
    screen.do("keydown", "ctrl")
    screen.drag(start, (place.x + place.width * 3 // 4, place.middle[1]))
    screen.do("keyup", "ctrl")
    screen.close(wait_comparison(screen, first.name, checkpoint.name))
    screen.open_dialog(window, "ctrl+d")
    time.sleep(BEGINNING_S)
    screen.type(str(second))
    screen.press("Return")
    compared = wait_comparison(screen, first.name, second.name)
    screen.wait_active(compared)
    pictures = [screen.picture_at_rest(tmp_path / "compared.png", compared)]
    for name, keys in (("selected", ("Down", "Down")), ("measured", ("ctrl+n",))):
        screen.press(*keys)
        pictures.append(screen.picture_at_rest(tmp_path / f"{name}.png", compared))
    second.unlink()
    screen.press("F5")
    pictures.append(screen.picture_at_rest(tmp_path / "gone.png", compared))
    assert len(set(pictures)) == len(pictures)
    screen.close(compared)
    assert program.wait(first) == window

"""What a file manager opens beside a single file: names in two parts, several files, folders."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.end2end.conftest import ROOT
from tests.end2end.file_manager import FileManager, Thunar
from tests.end2end.screen import repeat_until

CORPUS = ROOT / "tests" / "data" / "corpus"


@pytest.mark.skipif(shutil.which("thunar") is None, reason="needs Thunar, the file manager of Xfce")
@pytest.mark.usefixtures("registered")
def test_thunar_opens_a_name_in_two_parts(screen, program, folder):
    checkpoint = Path(shutil.copy(CORPUS / "zip" / "train.pt", folder / "model best 100%.pth.tar"))
    manager = Thunar(screen, folder)
    screen.put(manager.window, 0, 0, 700, 500)
    window = screen.double_click(
        manager.first_icon(), lambda: program.shows(checkpoint), "the file in a window"
    )
    assert '"checkpoint-inspector"' in screen.run("xprop", "-id", str(window), "WM_CLASS")
    screen.close(window)
    screen.run("thunar", "--quit")
    manager.close()


@pytest.mark.usefixtures("registered")
def test_several_files_get_a_window_each_in_one_program(screen, program, checkpoint):
    alone = FileManager(screen, checkpoint.parent)
    screen.put(alone.window, 0, 0, 600, 500)
    icon = alone.first_icon()  # of a file alone: those of two look like one
    alone.close()
    other = Path(shutil.copy(checkpoint, checkpoint.with_name("last.ckpt")))
    manager = FileManager(screen, checkpoint.parent)
    screen.put(manager.window, 0, 0, 600, 500)
    manager.first_icon()  # both are drawn

    def open_all() -> None:
        screen.press("Escape")  # a menu that came late
        screen.press("ctrl+a")
        screen.do("mousemove", *icon, "click", "3")
        time.sleep(1)  # the menu takes the keyboard
        screen.press("Down")
        screen.press("Return")

    repeat_until(open_all, lambda: program.shows(checkpoint), "the file in a window")
    windows = [program.wait(path) for path in (checkpoint, other)]
    assert len({screen.process_of(window) for window in windows}) == 1
    for window in windows:
        screen.close(window)
    manager.close()


def test_a_folder_is_dropped(screen, program, folder):
    place = Path(shutil.copytree(CORPUS / "dcp" / "plain", folder / "step100"))
    window = program.open()
    manager = FileManager(screen, folder)
    screen.put(manager.window, 0, 0, 600, 500)
    screen.put(window, 640, 60, 1280, 800)
    screen.activate(manager.window)
    start, end = manager.first_icon(), screen.place(window).middle
    assert screen.drag(start, end, lambda: program.shows(place), "the folder in the window") == window
    manager.close()

"""Every way in which a user opens a checkpoint, each done by pointer and keys on a real screen."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.builders.states import T, save_zip
from tests.end2end.conftest import DEMO
from tests.end2end.file_manager import FileManager
from tests.end2end.screen import wait_until
from tests.hostile.poison import poison

BESIDE_THE_FILE_MANAGER = (640, 60, 1280, 800)
END_S = 60.0
BEGINNING_S = 0.3  # what a dialog takes until it listens to the keyboard


@pytest.mark.usefixtures("registered")
def test_by_a_double_click_in_a_file_manager(screen, program, checkpoint, file_manager):
    """The whole way: the registration, the file type, the launcher, and the program that it starts."""
    window = screen.double_click(
        file_manager.first_icon(), lambda: program.shows(checkpoint), "the file in a window"
    )
    assert "Traceback" not in screen.log("pcmanfm")
    screen.close(window)


@pytest.mark.usefixtures("registered")
def test_a_double_click_runs_nothing_that_lies_in_the_folder(screen, program, tmp_path, folder):
    """The file manager starts the program there, and the program asks torch in a child."""
    marks, checkpoint = tmp_path / "marks.txt", Path(shutil.copy(DEMO, folder / "0best.pth"))
    poison(folder, marks, packages=())  # folders would come before the checkpoint
    manager = FileManager(screen, folder)
    screen.put(manager.window, 0, 0, 600, 500)
    window = screen.double_click(
        manager.first_icon(), lambda: program.shows(checkpoint), "the file in a window"
    )
    process = screen.process_of(window)
    wait_until(lambda: _has_probe(process), "the probe to begin")
    wait_until(lambda: not _has_probe(process), "the probe to end")
    screen.close(window)
    manager.close()
    assert not marks.exists(), marks.read_text(encoding="utf-8")


def _has_probe(process: int) -> bool:
    children = Path(f"/proc/{process}/task").glob("*/children")
    numbers = [number for path in children for number in path.read_text().split()]
    return any(b"serve.py" in Path(f"/proc/{number}/cmdline").read_bytes() for number in numbers)


def test_by_dragging_the_file_into_the_empty_window(screen, program, checkpoint, file_manager):
    window = program.open()
    screen.put(window, *BESIDE_THE_FILE_MANAGER)
    start, end = file_manager.first_icon(), screen.place(window).middle
    assert screen.drag(start, end, lambda: program.shows(checkpoint), "the file in the window") == window
    assert checkpoint.exists()  # the file manager would have moved it, had the program agreed


@pytest.mark.parametrize("share", [0.25, 0.75], ids=["tree", "pages"])
def test_by_dragging_the_file_onto_another(screen, program, tmp_path, checkpoint, file_manager, share):
    """No part of the window keeps the drop for itself."""
    window = program.open(Path(shutil.copy(checkpoint, tmp_path / "first.pth")))
    screen.put(window, *BESIDE_THE_FILE_MANAGER)
    place = screen.place(window)
    start, end = file_manager.first_icon(), (place.x + int(place.width * share), place.middle[1])
    assert screen.drag(start, end, lambda: program.shows(checkpoint), "the file in the window") == window


def test_by_the_file_dialog(screen, program, checkpoint):
    window = program.open()
    dialog = screen.open_dialog(window, "ctrl+o")
    time.sleep(BEGINNING_S)
    screen.type(str(checkpoint))
    screen.press("Return")
    assert program.wait(checkpoint) == window
    screen.wait_gone(dialog)


def test_by_a_path_on_the_command_line(screen, program, checkpoint):
    process = program.start(checkpoint)
    window = program.wait(checkpoint)
    assert screen.process_of(window) == process.pid
    screen.close(window)
    assert process.wait(END_S) == 0


def test_a_folder_and_by_keys_one_of_its_checkpoints(screen, program, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in ("e2.pt", "e10.pt"):
        save_zip(runs / name, {"w": T([1.0, 2.0])})
    window = program.open(runs)
    screen.wait_active(window)
    screen.picture_at_rest(tmp_path / "folder.png", window)
    screen.press("Down", "Return")
    assert program.wait(runs / "e10.pt") != window  # Down goes on from the first
    assert program.shows(runs) == window


def test_the_demo_checkpoint(screen, program):
    program.start("--demo")
    screen.wait_window("demo.pth - Checkpoint Inspector")


# ------------------------------------------------------------------ a second launch


def test_a_second_launch_hands_its_file_to_the_running_program(screen, program, tmp_path, checkpoint):
    first = program.start(checkpoint)
    first_window = program.wait(checkpoint)
    other = Path(shutil.copy(checkpoint, tmp_path / "other.pth"))
    second = program.start(other)
    assert second.wait(END_S) == 0
    window = program.wait(other)
    assert window != first_window
    assert screen.process_of(window) == screen.process_of(first_window) == first.pid
    screen.wait_active(window)


@pytest.mark.usefixtures("registered")
def test_a_double_click_hands_its_file_to_the_running_program(screen, program, checkpoint, file_manager):
    first = program.start()
    program.wait()
    screen.activate(file_manager.window)
    window = screen.double_click(
        file_manager.first_icon(), lambda: program.shows(checkpoint), "the file in a window"
    )
    assert screen.process_of(window) == first.pid
    screen.wait_active(window)


def test_a_second_launch_without_a_file_brings_an_empty_window_to_the_front(screen, program, checkpoint):
    first = program.start(checkpoint)
    program.wait(checkpoint)
    assert program.start().wait(END_S) == 0
    window = program.wait()
    assert screen.process_of(window) == first.pid
    screen.wait_active(window)


def test_launches_at_the_same_moment_become_one_program(screen, program, tmp_path, checkpoint):
    paths = [Path(shutil.copy(checkpoint, tmp_path / f"rank{number}.pth")) for number in range(3)]
    processes = [program.start(path) for path in paths]
    owners = {screen.process_of(program.wait(path)) for path in paths}
    assert len(owners) == 1
    wait_until(lambda: [process.poll() for process in processes].count(0) == 2, "the others to end")


def test_after_a_crash_the_next_launch_stands_on_its_own(screen, program, checkpoint):
    first = program.start(checkpoint)
    window = program.wait(checkpoint)
    first.kill()
    first.wait()
    screen.wait_gone(window)
    second = program.start(checkpoint)
    assert screen.process_of(program.wait(checkpoint)) == second.pid


# ------------------------------------------------------------------ more windows, and none


def test_several_files_get_a_window_each_and_the_last_one_ends_the_program(
    screen, program, tmp_path, checkpoint
):
    other = Path(shutil.copy(checkpoint, tmp_path / "other.pth"))
    process = program.start(checkpoint, other)
    first, second = program.wait(checkpoint), program.wait(other)
    screen.close(first)
    assert screen.process_of(second) == process.pid
    screen.close(second)
    assert process.wait(END_S) == 0


def test_a_launch_while_the_last_window_closes_is_not_lost(screen, program, checkpoint):
    for _ in range(3):
        process = program.start(checkpoint)
        screen.close(program.wait(checkpoint))
    assert process.wait(END_S) == 0


def test_what_is_no_checkpoint_is_shown_as_such(screen, program, tmp_path):
    path = tmp_path / "page.pth"
    path.write_text("<!DOCTYPE html><html><title>404 Not Found</title></html>\n", encoding="utf-8")
    process = program.start(path)
    screen.close(program.wait(path))
    assert process.wait(END_S) == 0

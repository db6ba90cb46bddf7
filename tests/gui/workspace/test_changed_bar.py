from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QEvent

from inspector.containers.opening import stamp_at
from inspector.containers.source import stamp_of
from inspector.gui.workspace import around as module
from inspector.gui.workspace.around import ChangedBar
from inspector.records import replace
from tests.gui import fakes
from tests.gui.looking import button, shown


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "best.pth"
    path.write_bytes(b"one")
    return path


@pytest.fixture
def bar(qtbot, theme, monkeypatch, path) -> ChangedBar:
    monkeypatch.setattr(module, "_SETTLED_MS", 20)
    bar = ChangedBar(theme)
    qtbot.addWidget(bar)
    bar.touched.connect(lambda: look(bar))
    bar.watch(str(path), stamp_of(path.stat()))
    return bar


def look(bar: ChangedBar) -> None:
    """Show what the file looks like, as the session does."""
    bar.show_file(stamp_at(bar._path))


def test_a_file_that_is_written_again_is_offered(bar, path, qtbot):
    assert bar.isHidden()
    path.write_bytes(b"another one")
    qtbot.waitUntil(bar.isVisible)
    assert "changed on disk" in shown(bar)
    with qtbot.waitSignal(bar.reload_wanted):
        button(bar, "Reload").click()
    bar.watch(str(path), stamp_of(path.stat()))
    assert bar.isHidden()


def test_a_file_that_is_replaced_is_watched_on(bar, path, qtbot):
    """As torch.save users do it: write beside, then move over."""
    for content in (b"second", b"the third"):
        fresh = path.with_suffix(".tmp")
        fresh.write_bytes(content)
        fresh.replace(path)
        qtbot.waitUntil(bar.isVisible)
        button(bar, "Not now").click()
        assert bar.isHidden()


def test_a_file_that_is_gone_cannot_be_read_again(bar, path, qtbot):
    path.unlink()
    qtbot.waitUntil(bar.isVisible)
    assert "gone from the disk" in shown(bar)
    assert button(bar, "Reload").isHidden()


def test_a_folder_is_watched_with_the_files_that_are_read(bar, tmp_path, qtbot):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    part = folder / "__0_0.distcp"
    part.write_bytes(b"one")
    bar.watch(str(folder), stamp_at(str(folder)), (str(part),))
    with part.open("ab") as file:  # nothing that the folder itself is told of
        file.write(b" and another")
    qtbot.waitUntil(bar.isVisible)
    assert "A file of this checkpoint has changed" in shown(bar)


def test_a_touch_without_a_change_is_nothing(bar, qtbot):
    bar._on_touched()
    qtbot.wait(60)
    assert bar.isHidden()


@pytest.mark.parametrize("nowhere", ["", "/none/at/all.pth"])
def test_nothing_to_watch_is_no_mistake(bar, nowhere):
    bar.watch(nowhere, None)
    assert bar.isHidden()


@pytest.mark.wide
def test_the_window_watches_the_open_file_and_reloads(make_window, session, path, qtbot, monkeypatch):
    monkeypatch.setattr(module, "_SETTLED_MS", 20)
    window = make_window(replace(fakes.ready_screen(), path=str(path), stamp=stamp_of(path.stat())))
    path.write_bytes(b"another one")
    bar = window.workspace.changed
    qtbot.waitUntil(lambda: session.look_at_file.called)
    window.show_screen(replace(window.shown, on_disk=stamp_of(path.stat())))
    assert bar.isVisible()
    button(bar, "Reload").click()
    session.reload.assert_called_once_with()


def test_a_change_between_reading_and_showing_is_told(bar, path):
    read = stamp_of(path.stat())
    fresh = path.with_suffix(".tmp")
    fresh.write_bytes(b"two")
    fresh.replace(path)
    bar.watch(str(path), read)
    look(bar)
    assert bar.isVisible()
    assert "changed on disk" in shown(bar)
    path.unlink()
    bar.watch(str(path), read)
    look(bar)
    assert "gone from the disk" in shown(bar)


def test_a_file_whose_name_is_no_text_is_watched_by_its_folder(bar, path, tmp_path, qtbot):
    strange = tmp_path / "b\udcffst.pth"
    path.rename(strange)
    bar.watch(str(strange), stamp_of(strange.stat()))
    assert bar.isHidden()
    strange.unlink()
    qtbot.waitUntil(bar.isVisible)
    assert "gone from the disk" in shown(bar)


def test_a_window_that_is_turned_to_again_has_its_file_looked_at(make_window, session, qtbot):
    window = make_window(fakes.ready_screen())
    session.look_at_file.reset_mock()
    QCoreApplication.sendEvent(window.workspace, QEvent(QEvent.Type.WindowActivate))
    session.look_at_file.assert_called_once_with()


def test_a_disk_is_asked_only_after_it_has_just_answered_a_job(bar, path, monkeypatch):
    """A disk may hang, and to watch a file asks it: never for a screen that says nothing new of the file."""
    seen = stamp_at(str(path))
    bar.show_file(seen)
    asked = []
    bar._watcher.removePath(str(path))
    monkeypatch.setattr(bar._watcher, "addPath", lambda path: asked.append(path) or False)
    for _ in range(3):
        bar.show_file(seen)
    assert not asked
    bar.show_file(stamp_at(str(path)))  # another look: its answer is new, though it says the same
    assert asked == [str(path), str(path.parent)]
    asked.clear()
    bar.show_file(None)
    assert not asked

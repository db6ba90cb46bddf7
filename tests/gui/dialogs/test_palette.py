from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QTreeWidget

from inspector.gui.dialogs.palette import Palette
from inspector.records import replace
from tests.gui import fakes

READY = replace(fakes.ready_screen(), recent=("/runs/a&b.pth",))


@pytest.fixture
def window(make_window):
    return make_window(READY)


@pytest.fixture
def palette(window, qtbot) -> Palette:
    window.actions_by_name["palette"].trigger()
    palette = window.findChild(Palette)
    qtbot.waitUntil(palette.isVisible)
    return palette


def listed(palette: Palette) -> dict[str, str]:
    found = palette.findChild(QTreeWidget)
    items = map(found.topLevelItem, range(found.topLevelItemCount()))
    return {item.text(0): item.text(1) for item in items}


def test_it_lists_what_can_be_done_now_with_its_key(palette, window) -> None:
    found = listed(palette)
    assert found["File: Open"] == "Ctrl+O"
    assert "File: Open recent: a&b.pth    runs/" in found
    assert "View: Theme: Dark" in found
    enabled = sum(action.isEnabled() for action in window.actions_by_name.values())
    assert len(found) > enabled
    assert "Edit: Find next" not in found  # nothing was searched


def test_typing_and_enter_do_it_when_the_palette_is_gone(palette, window, session, qapp, qtbot) -> None:
    line = palette.findChild(QLineEdit)
    gone: list[bool] = []
    reload = window.actions_by_name["reload"]
    reload.triggered.connect(lambda: gone.append(qapp.activeModalWidget() is None))
    qtbot.keyClicks(line, "relo")
    assert list(listed(palette)) == ["File: Reload"]
    qtbot.keyClick(line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(gone))
    assert gone == [True]
    session.reload.assert_called_once_with()


def test_the_arrows_choose_and_stop_at_the_ends(palette, qtbot) -> None:
    line, found = palette.findChild(QLineEdit), palette.findChild(QTreeWidget)
    for key, row in ((Qt.Key.Key_Down, 1), (Qt.Key.Key_Up, 0), (Qt.Key.Key_Up, 0), (Qt.Key.Key_PageDown, 8)):
        qtbot.keyClick(line, key)
        assert found.currentIndex().row() == row
    qtbot.keyClicks(line, "no such thing")
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(line, key)
    assert palette.isVisible()


def test_other_windows_are_brought_to_the_front(window, make_window, qtbot) -> None:
    other = make_window(replace(READY, title="last.pth - Checkpoint Inspector"))
    other.show()
    qtbot.waitExposed(other)
    palette = Palette(window)
    line = palette.findChild(QLineEdit)
    palette.show()
    qtbot.keyClicks(line, "last.pth")
    assert list(listed(palette)) == ["Window: last.pth - Checkpoint Inspector"]
    window.activateWindow()
    qtbot.keyClick(line, Qt.Key.Key_Return)
    qtbot.waitUntil(other.isActiveWindow)

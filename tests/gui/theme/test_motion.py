from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QProgressBar

from inspector.gui.menus import ThemeMenu
from inspector.gui.settings import Settings
from inspector.gui.theme.motion import is_still, set_still
from inspector.gui.widgets.progress import show_fraction

COMBO = Qt.UIEffect.UI_AnimateCombo


@pytest.fixture
def moving(qapp):
    """A system that wants its lists to unfold."""
    QApplication.setEffectEnabled(Qt.UIEffect.UI_General, True)
    QApplication.setEffectEnabled(COMBO, True)
    before = QApplication.cursorFlashTime()
    QApplication.setCursorFlashTime(900)
    yield
    set_still(still=False)
    QApplication.setCursorFlashTime(before)
    for effect in (COMBO, Qt.UIEffect.UI_General):
        QApplication.setEffectEnabled(effect, False)


def test_nothing_moves_until_it_may_again(moving, qtbot):
    bar = QProgressBar()
    qtbot.addWidget(bar)
    show_fraction(bar, None)
    assert bar.maximum() == 0  # which runs to and fro
    for _ in range(2):
        set_still(still=True)
        assert is_still()
        assert not QApplication.isEffectEnabled(COMBO)
        assert QApplication.cursorFlashTime() == 0
    show_fraction(bar, None)
    assert (bar.maximum() > 0, bar.value()) == (True, 0)
    show_fraction(bar, 0.5)
    assert bar.value() == bar.maximum() // 2
    set_still(still=False)
    assert not is_still()
    assert QApplication.isEffectEnabled(COMBO)
    assert not QApplication.isEffectEnabled(Qt.UIEffect.UI_FadeMenu)
    assert QApplication.cursorFlashTime() == 900


def test_the_menu_reduces_motion_and_remembers_it(moving, qtbot, theme):
    settings = Settings()
    menu = ThemeMenu(None, theme, settings)
    qtbot.addWidget(menu)
    still = menu.actions()[-1]
    mode = theme.mode
    still.trigger()
    assert (is_still(), settings.is_still, theme.mode) == (True, True, mode)
    still.trigger()
    assert (is_still(), settings.is_still) == (False, False)

"""Whether anything may move by itself: menus that unfold, a cursor that blinks, a bar that runs to and fro.

Qt asks the system which of its effects are wanted; who wants still less says so in the menu.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

_PROPERTY, _FLASH = "still", "flash_ms"
_EFFECTS = (
    Qt.UIEffect.UI_AnimateMenu,
    Qt.UIEffect.UI_FadeMenu,
    Qt.UIEffect.UI_AnimateCombo,
    Qt.UIEffect.UI_AnimateTooltip,
    Qt.UIEffect.UI_FadeTooltip,
    Qt.UIEffect.UI_AnimateToolBox,
)


def is_still() -> bool:
    app = QApplication.instance()
    return app is not None and bool(app.property(_PROPERTY))


def set_still(*, still: bool) -> None:
    app = QApplication.instance()
    if not isinstance(app, QApplication) or still == is_still():
        return
    if still:
        app.setProperty(_PROPERTY, [effect for effect in _EFFECTS if app.isEffectEnabled(effect)] or [None])
        app.setProperty(_FLASH, app.cursorFlashTime())
        app.setCursorFlashTime(0)
        for effect in _EFFECTS:
            app.setEffectEnabled(effect, False)
        return
    for effect in app.property(_PROPERTY):
        if effect is not None:
            app.setEffectEnabled(effect, True)
    app.setCursorFlashTime(app.property(_FLASH))
    app.setProperty(_PROPERTY, None)

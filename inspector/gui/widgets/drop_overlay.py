"""What covers the window while a file is dragged over it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from inspector.gui.theme.icons import draw_svg
from inspector.gui.theme.theme import Theme
from inspector.overriding import override

_MARGIN = 12
_ICON = 48
_EDGE = 2 * _MARGIN


class DropOverlay(QWidget):
    """Shows that a drop is welcome; transparent to the mouse."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAcceptDrops(False)
        self.hide()

    def cover(self, area: QWidget, text: str) -> None:
        """Cover a part of the window, and write what a drop would do; an empty text uncovers it."""
        if text == self._text:  # a drag moves often
            return
        self._text = text
        self.setVisible(bool(text))
        self.setGeometry(area.geometry())
        self.raise_()
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(tokens.color("window"))
        veil.setAlpha(150)
        painter.fillRect(self.rect(), veil)
        frame = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        painter.setPen(QPen(tokens.color("accent"), 2, Qt.PenStyle.DashLine))
        ground = tokens.color("accent_soft")
        ground.setAlpha(215)
        painter.setBrush(ground)
        painter.drawRoundedRect(frame, 16, 16)
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * 1.6)
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(tokens.color("text"))
        line = frame.adjusted(_EDGE, _ICON, -_EDGE, 0)
        text = painter.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideMiddle, int(line.width()))
        painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)
        icon = draw_svg("drop", tokens.color("accent"), _ICON, self.devicePixelRatioF())
        place = frame.center()
        painter.drawPixmap(int(place.x() - _ICON / 2), int(place.y() - _ICON), icon)
        painter.end()

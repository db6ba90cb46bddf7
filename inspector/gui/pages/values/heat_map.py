"""A slice as a picture: blue below zero, red above, what is no number in a color of its own."""

from __future__ import annotations

import struct

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.report.words.values import format_number
from inspector.session.values.page import Picture

_HEIGHT, _LEAST, _LARGEST_CELL = 260, 32, 24
_LOW, _HIGH, _NAN = "#2f6fc4", "#c8402e", "#e3c800"
_ZERO = {False: "#f6f7f9", True: "#20242c"}
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}
Cell = tuple[int, int]


class HeatMapView(QWidget):
    """Shows a `Picture`; the mouse or the arrow keys read one cell."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._picture: Picture | None = None
        self._image = QImage()
        self._current: Cell | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumHeight(_HEIGHT)
        theme.changed.connect(self._on_theme_changed)

    def show_picture(self, picture: Picture | None) -> None:
        """Show a picture, or nothing."""
        if picture is self._picture:
            return
        self._picture, self._current = picture, None
        if picture is not None:
            self.setMinimumHeight(min(_HEIGHT, max(_LEAST, picture.rows * _LARGEST_CELL + 6)))
        self.updateGeometry()
        self._draw()

    @property
    def image(self) -> QImage:
        """The picture, a pixel for each cell."""
        return self._image

    def _on_theme_changed(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self._image = QImage()
        if self._picture is not None and self._picture.rows and self._picture.columns:
            rows, columns = self._picture.rows, self._picture.columns
            shape = columns, rows, columns
            image = QImage(self._picture.levels, *shape, QImage.Format.Format_Indexed8)
            image.setColorTable(color_table(is_dark=self._theme.tokens.dark))
            self._image = image.copy()  # QImage does not own the bytes that it is made of
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(360, self.minimumHeight())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        area, tokens = self._area(), self._theme.tokens
        painter.drawImage(area, self._image)
        painter.setPen(QPen(tokens.color("border_strong"), 1))
        painter.drawRect(area)
        if self._current is not None and self._picture is not None:
            row, column = self._current
            width, height = area.width() / self._picture.columns, area.height() / self._picture.rows
            painter.setPen(QPen(tokens.color("text"), 2))
            painter.drawRect(QRectF(area.left() + column * width, area.top() + row * height, width, height))
        if self.hasFocus():
            painter.setPen(QPen(tokens.color("accent"), 1))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()

    def _area(self) -> QRectF:
        """Return where the picture is: cells keep their proportion unless they are far from square."""
        room = QRectF(self.rect()).adjusted(3, 3, -3, -3)
        if self._picture is None or not self._picture.rows or not self._picture.columns:
            return room
        columns, rows = self._picture.columns, self._picture.rows
        size = min(room.width() / columns, room.height() / rows, _LARGEST_CELL)
        width, height = size * columns, size * rows
        if min(width, height) < 24:  # a strip would not be seen
            width = room.width() if columns > rows else 24.0
            height = room.height() if rows > columns else 24.0
        return QRectF(room.left(), room.top(), width, height)

    # --- reading one cell -----------------------------------------------------------------------------------

    def words_of(self, cell: Cell) -> str:
        """Return what a cell stands for."""
        picture = self._picture
        if picture is None:
            return ""
        row, column = cell
        (value,) = struct.unpack_from("<f", picture.cells, 4 * (row * picture.columns + column))
        places = [
            _span(number * step, step, size)
            for number, step, size in zip(cell, picture.steps, picture.shape, strict=True)
        ]
        return f"row {places[0]}, column {places[1]}: {format_number(value)}"

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        area, picture, place = self._area(), self._picture, event.position()
        if picture is None or not area.contains(place):
            self._choose(None, event.globalPosition())
            return
        row = int((place.y() - area.top()) / area.height() * picture.rows)
        column = int((place.x() - area.left()) / area.width() * picture.columns)
        cell = min(row, picture.rows - 1), min(column, picture.columns - 1)
        self._choose(cell, event.globalPosition())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step, picture = _STEPS.get(Qt.Key(event.key())), self._picture
        if step is None or picture is None or not picture.rows or not picture.columns:
            super().keyPressEvent(event)
            return
        row, column = (0, 0) if self._current is None else self._current
        if self._current is not None:
            row = min(max(0, row + step[0]), picture.rows - 1)
            column = min(max(0, column + step[1]), picture.columns - 1)
        self._choose((row, column), self.mapToGlobal(self._area().center()))

    def _choose(self, cell: Cell | None, place: QPointF) -> None:
        if cell != self._current:
            self._current = cell
            words = "" if cell is None else self.words_of(cell)
            self.setAccessibleName(f"Heat map. {words}" if words else "Heat map")
            self.update()
            QToolTip.showText(place.toPoint(), plain_tooltip(words), self)


def _span(start: int, step: int, size: int) -> str:
    last = min(start + step, size) - 1
    return f"{start:,}" if last == start else f"{start:,} to {last:,}"


def color_table(*, is_dark: bool) -> list[int]:
    """Return the colors of all levels."""
    low, high, zero = QColor(_LOW), QColor(_HIGH), QColor(_ZERO[is_dark])
    colors = [_mixed(zero, low, (127 - level) / 127) for level in range(127)]
    colors += [_mixed(zero, high, (level - 127) / 127) for level in range(127, 255)]
    return [*colors, QColor(_NAN).rgb()]


def _mixed(start: QColor, end: QColor, share: float) -> int:
    parts = [
        round(one + (other - one) * share)
        for one, other in zip(start.getRgb()[:3], end.getRgb()[:3], strict=True)  # type: ignore[index]  # a tuple
    ]
    return QColor(*parts).rgb()

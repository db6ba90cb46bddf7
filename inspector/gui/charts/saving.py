"""The menu of a chart: save it as SVG, PNG or CSV, or copy it. A file appears whole or not at all.

A picture stands by itself, with its title and its legend.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QFileDialog, QMenu, QToolButton, QWidget

from inspector.errors import ExportError
from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme, Tokens
from inspector.gui.widgets.controls import show_notice
from inspector.gui.widgets.labels import named
from inspector.remap.files import refuse_destination, writing
from inspector.session.screen import FailurePage

KINDS = {"svg": "SVG image (*.svg)", "png": "PNG image (*.png)", "csv": "CSV table (*.csv)"}
PICTURES = ("svg", "png")
_NOT_WRITTEN = "the chart cannot be written"
_NOT_SAVED = "The chart was not saved"
_MOST_NAME = 60
_MARGIN, _TITLE, _LINE = 16.0, 26.0, 20.0
_SWATCH, _GAP = 10.0, 18.0
_PNG_RATIO = 2
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


class Saved(NamedTuple):
    """What can be saved: its title, the checkpoint that it is about, and its bytes of one of `KINDS`."""

    title: str
    source: str
    make: Callable[[str], bytes]


def save_button(
    theme: Theme,
    one: Callable[[], Saved],
    whole: Callable[[], Saved] | None = None,
    kinds: Sequence[str] = tuple(KINDS),
) -> QToolButton:
    """Make the button of a chart that opens its menu; with `whole`, also of the page that it is on."""
    button = named(QToolButton(), spoken="Save or copy this chart")
    button.setToolTip("Save or copy this chart")
    button.setProperty("kind", "icon")
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    set_icon(button, "export", theme.tokens)
    menu, clipboard = QMenu(button), QGuiApplication.clipboard()
    button.setMenu(menu)
    for kind in kinds:
        menu.addAction(f"Save as {kind.upper()}\u2026", partial(_ask, button, kind, one))
    menu.addSeparator()
    menu.addAction("Copy picture", lambda: clipboard.setImage(QImage.fromData(one().make("png"))))
    if "csv" in kinds:
        menu.addAction("Copy figures as CSV", lambda: clipboard.setText(one().make("csv").decode()))
    if whole is not None:
        menu.addSeparator()
        for kind in kinds:
            menu.addAction(f"Save whole page as {kind.upper()}\u2026", partial(_ask, button, kind, whole))
    return button


def proposed_path(saved: Saved, kind: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", saved.title.lower()).strip("-")
    source = Path(saved.source)
    return os.fspath(source.with_name(f"{source.stem}.{slug[:_MOST_NAME]}.{kind}"))


def save(parent: QWidget, saved: Saved, kind: str, path: str) -> bool:
    """Write a chart, and say so if that cannot be done; what stood there stays then."""
    destination = Path(path)
    try:
        refuse_destination(saved.source, destination, overwrite=True)
        data = saved.make(kind)
        with writing(destination, like=None, overwrite=True, what=_NOT_WRITTEN) as out:
            left = memoryview(data)
            while left:
                left = left[os.write(out.fd, left) :]
    except (ExportError, OSError) as error:
        page = FailurePage(title=_NOT_SAVED, what=str(error), where=path, remedy="choose another place")
        show_notice(parent, page)
        return False
    return True


def _ask(parent: QWidget, kind: str, of: Callable[[], Saved]) -> None:
    saved = of()
    path, _ = QFileDialog.getSaveFileName(parent, saved.title, proposed_path(saved, kind), KINDS[kind])
    if path:
        save(parent, saved, kind, path if Path(path).suffix else f"{path}.{kind}")


class Picture(NamedTuple):
    """Something that can be painted from (0, 0) on, and how high it is."""

    height: float
    paint: Callable[[QPainter], None]


def legend(entries: Sequence[tuple[QColor, str]], width: float, tokens: Tokens, font: QFont) -> Picture:
    metrics, places = QFontMetricsF(font), []
    x, y = 0.0, 0.0
    for color, text in entries:
        room = _SWATCH + 6 + metrics.horizontalAdvance(text)
        if x and x + room > width:
            x, y = 0.0, y + _LINE
        places.append((x, y, color, text))
        x += room + _GAP

    def paint(painter: QPainter) -> None:
        painter.setFont(font)
        painter.setPen(tokens.color("text"))
        for left, top, color, text in places:
            painter.fillRect(QRectF(left, top + 5, _SWATCH, _SWATCH), color)
            painter.drawText(QRectF(left + _SWATCH + 6, top, 2000, _LINE), _LEFT, text)

    return Picture(y + _LINE if entries else 0.0, paint)


def as_bytes(
    parts: Sequence[tuple[str, Picture]], width: float, tokens: Tokens, font: QFont, *, title: str, kind: str
) -> bytes:
    """Return pictures, each below its title, as an SVG, or as a PNG of twice as many pixels."""
    tops = list(accumulate((_part_height(*part) for part in parts), initial=_MARGIN))
    size = QSize(round(width + 2 * _MARGIN), round(tops.pop()))
    kept, bold = QByteArray(), QFont(font)
    bold.setBold(True)
    buffer = QBuffer(kept)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image = QImage(size * _PNG_RATIO, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(_PNG_RATIO)
    made = QSvgGenerator()
    made.setOutputDevice(buffer)
    made.setSize(size)
    made.setResolution(round(QGuiApplication.primaryScreen().logicalDotsPerInchX()))  # or text is smaller
    made.setViewBox(QRectF(0, 0, size.width(), size.height()))
    made.setTitle(title)
    painter = QPainter(image if kind == "png" else made)
    painter.fillRect(QRectF(0, 0, size.width(), size.height()), tokens.color("surface"))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for top, (words, picture) in zip(tops, parts, strict=True):
        painter.setFont(bold)
        painter.setPen(tokens.color("text"))
        painter.drawText(QRectF(_MARGIN, top, 4000, _TITLE - 6), _LEFT, words)
        painter.save()
        painter.translate(_MARGIN, top + (_TITLE if words else 0))
        picture.paint(painter)
        painter.restore()
    painter.end()
    if kind == "png":
        QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(kept.data())


def _part_height(title: str, picture: Picture) -> float:
    return (_TITLE if title else 0) + picture.height + _MARGIN

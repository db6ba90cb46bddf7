"""The menu of a chart: save it as SVG, PNG or CSV, or copy it. A file appears whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QMenu, QToolButton, QWidget

from inspector.errors import ExportError
from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import named
from inspector.gui.widgets.notice import show_notice
from inspector.records import dataclass
from inspector.remap.files.destination import refuse_destination
from inspector.remap.files.outfile import writing
from inspector.session.screen import FailurePage

KINDS = {"svg": "SVG image (*.svg)", "png": "PNG image (*.png)", "csv": "CSV table (*.csv)"}
_NOT_WRITTEN = "the chart cannot be written"
_NOT_SAVED = "The chart was not saved"
_MOST_NAME = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What can be saved of a chart.

    Attributes:
        title: What it is.
        source: The checkpoint that it is about.
        make: Make its bytes, of one of `KINDS`.
    """

    title: str
    source: str
    make: Callable[[str], bytes]


def save_button(
    theme: Theme, one: Callable[[], Saved], whole: Callable[[], Saved] | None = None
) -> QToolButton:
    """Make the button of a chart that opens its menu."""
    button = named(QToolButton(), spoken="Save or copy this chart")
    button.setToolTip("Save or copy this chart")
    button.setProperty("kind", "icon")
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    set_icon(button, "export", theme.tokens)
    button.setMenu(build_menu(button, one, whole))
    return button


def build_menu(parent: QWidget, one: Callable[[], Saved], whole: Callable[[], Saved] | None = None) -> QMenu:
    """Build the menu of a chart; with `whole`, of the page that it is on as well."""
    menu = QMenu(parent)
    for kind in KINDS:
        menu.addAction(f"Save as {kind.upper()}\u2026", partial(_ask, parent, kind, one))
    menu.addSeparator()
    menu.addAction("Copy picture", lambda: _copy_picture(one()))
    menu.addAction("Copy figures as CSV", lambda: _copy_text(one()))
    if whole is not None:
        menu.addSeparator()
        for kind in KINDS:
            menu.addAction(f"Save whole page as {kind.upper()}\u2026", partial(_ask, parent, kind, whole))
    return menu


def proposed_path(saved: Saved, kind: str) -> str:
    """Return a path beside the checkpoint, named after it and the chart."""
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


def _copy_picture(saved: Saved) -> None:
    QGuiApplication.clipboard().setImage(QImage.fromData(saved.make("png")))


def _copy_text(saved: Saved) -> None:
    QGuiApplication.clipboard().setText(saved.make("csv").decode())

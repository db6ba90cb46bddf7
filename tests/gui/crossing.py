"""What drives a window whose jobs cross: a runner that ends them in any order, files, pictures in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QModelIndex
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QSpinBox,
    QTabWidget,
    QTextEdit,
    QTreeView,
    QWidget,
)

from inspector.gui.main_window import MainWindow
from inspector.gui.pages.tabs import PageTabs
from inspector.gui.tree.model import Column
from inspector.gui.tree.view import TensorTreeView
from inspector.gui.widgets.progress import ProgressBar
from inspector.progress import Progress
from tests.builders import legacy, pickles, zips

FLOATS = bytes(16)
DELETION = QEvent.Type.DeferredDelete.value


# ------------------------------------------------------------------ jobs


class Job:
    """One piece of work: not begun, done, and told."""

    def __init__(self, work: Any, progress: Progress, on_done: Any, on_failed: Any) -> None:
        self.work, self.progress = work, progress
        self.on_done, self.on_failed = on_done, on_failed
        self.answer: Callable[[], None] | None = None

    def carry_out(self) -> None:
        """Do what the thread does."""
        try:
            result = self.work(self.progress)
        except Exception as error:  # noqa: BLE001 - as the real one does
            self.answer = lambda error=error: self.on_failed(error)
        else:
            self.answer = lambda: self.on_done(result)

    def tell(self) -> None:
        """Bring the answer, as the main thread does."""
        if self.answer is None:
            self.carry_out()
        self.answer()


class Crossroads:
    """A `TaskRunner` whose jobs are carried out, and told, in whatever order is asked for."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def run(self, work: Any, progress: Progress, on_done: Any, on_failed: Any) -> None:
        self.jobs.append(Job(work, progress, on_done, on_failed))

    def tell(self, place: int) -> None:
        self.jobs.pop(place).tell()

    def alive(self) -> list[Progress]:
        """The work that somebody waits for."""
        return [job.progress for job in self.jobs if not job.progress.cancelled]


# ------------------------------------------------------------------ files


def zip_file(prefix: str, *devices: str) -> bytes:
    """A model with one tensor on each device; files of other prefixes have equal rows."""
    rows = {
        f"{prefix}.{key}": pickles.tensor(pickles.storage(str(key), location=device, numel=4), 4)
        for key, device in enumerate(devices)
    }
    return zips.checkpoint(pickles.state_dict(**rows), {str(key): FLOATS for key in range(len(devices))})


def legacy_file(prefix: str, device: str) -> bytes:
    rows = {f"{prefix}.0": pickles.tensor(pickles.legacy_storage("7", location=device, numel=4), 4)}
    return legacy.checkpoint(pickles.state_dict(**rows), ("7", 4, FLOATS))


def write_files(folder: Path, probe: dict[str, Any]) -> dict[str, Path]:
    """Write the files that are opened, one of each kind."""
    contents = {
        "one.pth": zip_file("alpha", "cuda:0", "cuda:1"),
        "two.pth": zip_file("omega", "cuda:0", "cuda:1"),
        "old.pth": legacy_file("gamma", "cuda:0"),
        "cut.pth": zip_file("alpha", "cuda:0", "cuda:1")[:-200],
        "page.pth": b"<!DOCTYPE html><html></html>",
        "node7.json": json.dumps(probe).encode(),
        "config.json": b'{"hidden_size": 768}',
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in (*contents, "gone.pth")}


# ------------------------------------------------------------------ pictures in words


ROOM_FOR_TABS = ("ScrollLeftButton", "ScrollRightButton")
"""Shown by Qt where tabs find no room, and a window that was never on a screen has none."""


def picture_of(window: MainWindow) -> list[str]:
    """Return all that a window shows: every text, row, link and state of every widget that is not hidden."""
    for bar in window.findChildren(ProgressBar):
        bar.look()  # as its timer does, ten times a second
    for pages in window.findChildren(PageTabs):
        pages.page(pages.current_id)  # which is built after the first paint
    lines = [f"title {window.windowTitle()}"]
    for name, action in sorted(window.actions_by_name.items()):
        lines.append(f"action {name} {action.isEnabled()}")
    lines += [f"recent {action.text()}" for action in window._recent.actions()]
    lines += widgets_of(window, 0)
    for dialog in window.findChildren(QDialog):
        if dialog is window._export and not dialog.isHidden():
            lines += [f"dialog {dialog.windowTitle()}", *widgets_of(dialog, 1)]
    return lines


def widgets_of(widget: QWidget, depth: int) -> Iterator[str]:
    """Describe the widgets below one, as far as they are not hidden."""
    for child in widget.children():
        if not isinstance(child, QWidget) or child.isHidden() or child.isWindow():
            continue
        if child.objectName() in ROOM_FOR_TABS:
            continue
        said = " ".join(map(str, said_by(child)))
        named = (type(child).__name__, child.objectName(), child.accessibleName(), child.toolTip())
        enabled = "" if child.isEnabled() else "off"
        yield f"{'  ' * depth}{named} {enabled} {said}"
        if not isinstance(child, QComboBox | QTreeView | QLineEdit | QSpinBox):
            yield from widgets_of(child, depth + 1)


def said_by(widget: QWidget) -> Iterator[object]:
    """List what one widget says itself."""
    yield [widget.property(name) for name in ("kind", "role", "tone", "hot", "missed")]
    yield from next((list(say(widget)) for kind, say in SAYINGS if isinstance(widget, kind)), [])


def texts_of(widget: QComboBox | QTabWidget) -> Iterator[object]:
    text = widget.itemText if isinstance(widget, QComboBox) else widget.tabText
    yield [text(place) for place in range(widget.count())], widget.currentIndex()


def rows_of(tree: TensorTreeView) -> Iterator[object]:
    """List the rows of the tree with what is unfolded, marked and current."""
    model = tree.model()
    yield "current", tree.current_node(), "marked", sorted(model._matches)
    below = [model.index(row, 0) for row in range(model.rowCount(QModelIndex()))]
    while below:
        index = below.pop(0)
        cells = [model.data(index.siblingAtColumn(column)) for column in Column]
        yield model.node_id(index), cells, tree.isExpanded(index)
        below += [model.index(row, 0, index) for row in range(model.rowCount(index))]


SAYINGS = (
    (QLabel | QLineEdit, lambda widget: [ascii(widget.text())]),
    (QAbstractButton, lambda widget: [ascii(widget.text()), widget.isChecked()]),
    (QPlainTextEdit | QTextEdit, lambda widget: [ascii(widget.toPlainText())]),
    (QComboBox | QTabWidget, texts_of),
    (QSpinBox, lambda widget: [widget.minimum(), widget.maximum(), widget.value()]),
    (QProgressBar, lambda _: ["spinner"]),
    (TensorTreeView, rows_of),
)


def delete_what_is_to_go() -> None:
    QCoreApplication.sendPostedEvents(None, DELETION)

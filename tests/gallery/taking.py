"""Pictures of the real window with real files in it: every page and dialog in one theme, at one scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEventLoop, QPoint, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QImage, QImageWriter, QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QProgressBar, QWidget

from inspector.gui.app import Program, make_app
from inspector.gui.main_window import MainWindow
from inspector.gui.pages.registry import PAGES, PARTS
from inspector.gui.placing import LEAST
from inspector.gui.settings import Settings
from inspector.resources import demo_path
from inspector.session.jobs.pythons import PythonRow, PythonsPage

_COLORS, _APART = 48, 14
_TURNS = 2400
_TURN_MS = 25
_DIALOGS = ("shortcuts", "log", "about", "machine")
_SAMPLES = {"damaged": "half.pth", "unknown": "unknown.pth"}
_SELECTED = {"llm": "q_proj", "lora": "lora_A", "resnet": "conv1"}

PYTHONS = PythonsPage(
    rows=(
        PythonRow(
            path="/home/ann/train/.venv/bin/python",
            title="/home/ann/train/.venv/bin/python",
            detail="$VIRTUAL_ENV \u00b7 Python 3.11.9, torch 2.7.1",
            is_chosen=True,
            is_usable=True,
        ),
        PythonRow(
            path="/home/ann/miniconda3/bin/python",
            title="/home/ann/miniconda3/bin/python",
            detail="conda \u00b7 Python 3.12.4, torch 2.3.0",
            is_chosen=False,
            is_usable=True,
        ),
        PythonRow(
            path="/usr/bin/python3",
            title="/usr/bin/python3",
            detail="python3 on PATH \u00b7 Python 3.11.2, no torch",
            is_chosen=False,
            is_usable=True,
        ),
    ),
    is_looking=False,
)


class Gallery:
    """Opens one window after the other and takes its pictures."""

    def __init__(self, files: dict[str, Path], folder: Path, theme: str, size: tuple[int, int]) -> None:
        self._files = {"demo": demo_path(), **files}
        self._folder, self._size = folder, QSize(*size)
        self._program = Program(make_app(), Settings(fresh=True), theme)
        self.taken: list[str] = []

    def take_all(self, wanted: frozenset[str] = frozenset(), turn: tuple[int, int] = (0, 1)) -> None:
        """Take all pictures, or those whose names are wanted.

        Args:
            wanted: Names; none for all.
            turn: Which of how many takes the pictures in turns this one is.
        """
        for place, (name, take) in enumerate(self._scenes()):
            if place % turn[1] == turn[0] and (not wanted or name in wanted):
                take(name)

    # Scenes.

    def _scenes(self) -> Iterator[tuple[str, Callable[[str], None]]]:
        yield "empty", self._take_empty
        yield "failed", self._take_failed
        yield "demo", self._take_demo
        for page in PAGES:
            yield f"page-{page.id}", self._take_page
        for old, (page_id, _) in PARTS.items():
            yield f"{page_id}-{old}", self._take_page
        yield "folder", self._take_folder
        yield "lora", self._take_lora
        yield "search", self._take_search
        yield "verdict", self._take_verdict
        yield "device-map", self._take_device_map
        yield "least", self._take_least
        yield "list", self._take_list
        yield "export", self._take_export
        yield "compare", self._take_compare
        yield "series", self._take_series
        yield "pythons", self._take_pythons
        for name in _DIALOGS:
            yield name, self._take_dialog
        yield "optimizer", self._take_optimizer
        yield "error", self._take_error
        yield "script", self._take_script
        yield "damaged", self._take_sample
        yield "unknown", self._take_sample

    def _take_empty(self, name: str) -> None:
        with self._window(None) as window:
            self._picture(window, name)

    def _take_failed(self, name: str) -> None:
        broken = self._files["llm"].with_name("best.pth")
        broken.write_bytes(b"<!DOCTYPE html><html><body>Sign in to download best.pth</body></html>")
        with self._window(broken) as window:
            self._picture(window, name)
        broken.unlink()

    def _take_demo(self, name: str) -> None:
        with self._window(self._files["demo"]) as window:
            self._picture(window, name)

    def _take_page(self, name: str) -> None:
        page = name.rpartition("-")[2]
        file = {"tensor": "resnet", "code": "resnet", "values": "resnet"}.get(page, "llm")
        with self._window(self._files[file]) as window:
            if file == "resnet":
                self._select(window, _SELECTED[file])
            window.show_page(page)
            if page == "values":
                window.workspace.pages.page(page).switch.setCurrentIndex(1)
            self._picture(window, name)

    def _take_lora(self, name: str) -> None:
        with self._window(self._files["lora"]) as window:
            self._select(window, _SELECTED["lora"])
            window.show_page("findings")
            self._picture(window, name)

    def _take_search(self, name: str) -> None:
        with self._window(self._files["llm"]) as window:
            window.session.search("device:cuda:2 q_proj")
            window.show_page("tensor")
            self._wait(lambda: window.shown.matches is not None)
            window.session.select(window.shown.matches[0])
            self._picture(window, name)

    def _take_least(self, name: str) -> None:
        with self._window(self._files["resnet"]) as window:
            window.resize(LEAST)
            self._select(window, _SELECTED["resnet"])
            window.show_page("values")
            self._picture(window, name)

    def _take_list(self, name: str) -> None:
        with self._window(self._files["llm"]) as window:
            window.actions_by_name["flat"].trigger()
            window.session.search("attn dtype:bf16")
            window.show_page("map")
            self._wait(lambda: window.shown.matches is not None)
            self._picture(window, name)

    def _take_verdict(self, name: str) -> None:
        with self._window(self._files["llm"]) as window:
            banner = window.workspace.banner
            banner.open_details()
            self._picture(window, name, banner._dropdown)

    def _take_device_map(self, name: str) -> None:
        with self._window(self._files["llm"]) as window:
            bar = window.workspace.device_map
            bar._dropdown.open()
            self._picture(window, name, bar._dropdown)

    def _take_export(self, name: str) -> None:
        with self._window(self._files["llm"]) as window:
            window.actions_by_name["export"].trigger()
            self._wait(lambda: window.shown.export is not None and window.shown.export.stage == "draft")
            self._picture(window, name, window.export_dialog)

    def _take_dialog(self, name: str) -> None:
        with self._window(self._files["resnet"]) as window:
            window.actions_by_name[name].trigger()
            dialog = QApplication.activeModalWidget()
            self._picture(window, name, dialog)
            dialog.close()

    def _take_folder(self, name: str) -> None:
        with self._window(self._files["samples"]) as window:
            self._wait(lambda: window.shown.folder is not None and not window.shown.folder.reading)
            self._picture(window, name)

    def _take_compare(self, name: str) -> None:
        self._program.compare_files([str(self._files["resnet"]), str(self._files["later"])])
        window = self._program.comparisons[-1]
        window.setMinimumSize(1, 1)
        window.resize(self._size)
        self._wait(
            lambda: window.shown is not None and window.shown.phase == "ready" and window.shown.measured
        )
        self._wait(lambda: window.shown.measuring is None)
        self._let_live(8)
        self._save(window.grab().toImage(), name)
        window.close()

    def _take_series(self, name: str) -> None:
        self._program.compare_series((str(self._files["epochs"]),))
        window = self._program.comparisons[-1]
        window.setMinimumSize(1, 1)
        window.resize(self._size)
        self._wait(
            lambda: window.shown is not None and window.shown.phase == "ready" and window.chart.is_drawn
        )
        self._let_live(8)
        self._save(window.grab().toImage(), name)
        window.close()

    def _take_pythons(self, name: str) -> None:
        with self._window(self._files["resnet"]) as window:
            window._commands.show_pythons(PYTHONS)  # by hand: those of this machine are no others
            dialog = QApplication.activeModalWidget()
            self._picture(window, name, dialog)
            dialog.close()

    # What the guide speaks of, with its files.

    def _take_optimizer(self, name: str) -> None:
        with self._window(self._files["demo"]) as window:
            window.session.search("optimizer layer1.0.conv1 exp_avg")
            window.show_page("tensor")
            self._wait(lambda: window.shown.matches is not None)
            window.session.select(window.shown.matches[-1])
            self._picture(window, name)

    def _take_error(self, name: str) -> None:
        with self._window(self._files["samples"] / "best.pth") as window:
            window.show_page("findings")
            window.session.explain_error((self._files["samples"] / "traceback.txt").read_text("utf-8"))
            self._wait(lambda: window.shown.explanation is not None)
            self._picture(window, name)

    def _take_script(self, name: str) -> None:
        with self._window(self._files["samples"] / "best.pth") as window:
            window.show_page("findings")
            window.session.open_script(str(self._files["samples"] / "train.py"))
            self._wait(lambda: window.shown.explanation is not None)
            self._picture(window, name)

    def _take_sample(self, name: str) -> None:
        with self._window(self._files["samples"] / _SAMPLES[name]) as window:
            window.show_page("findings")
            self._picture(window, name)

    # How.

    @contextmanager
    def _window(self, path: Path | None) -> Iterator[MainWindow]:
        window = self._program.open_window(None if path is None else str(path))
        window.setMinimumSize(1, 1)
        window.resize(self._size)
        self._wait(lambda: window.shown is not None and window.shown.phase != "opening")
        self._wait(lambda: window.shown.phase != "ready" or window.shown.file)  # the whole screen
        yield window
        window.close()
        self._wait(lambda: not self._program._leaving)

    def _select(self, window: MainWindow, part: str) -> None:
        tree = window.shown.tree
        node = next(
            node for node in tree.tensor_nodes if part in tree.nodes[node].name or part in _above(tree, node)
        )
        window.session.select(node)

    def _picture(self, window: MainWindow, name: str, over: QWidget | None = None) -> None:
        self._wait(lambda: not window._stack.built_workspace or window.is_drawn)
        self._let_live(4)
        bars = window.findChildren(QProgressBar)
        self._wait(lambda: not any(bar.isVisible() for bar in bars))
        self._let_live(8)
        picture = window.grab()
        if over is not None:
            _lay_over(picture, window, over)
        self._save(picture.toImage(), name)

    def _save(self, image: QImage, name: str) -> None:
        image.setDevicePixelRatio(1.0)
        small = image.convertToFormat(
            QImage.Format.Format_Indexed8, _palette(image), Qt.ImageConversionFlag.ThresholdDither
        )
        path = self._folder / f"{name}.png"
        writer = QImageWriter(str(path), b"png")
        writer.setCompression(100)
        if not writer.write(small):
            raise OSError(f"{path}: {writer.errorString()}")
        self.taken.append(name)

    def _wait(self, done: Callable[[], bool]) -> None:
        for _ in range(_TURNS):
            if done():
                return
            self._let_live(1)
        raise TimeoutError("the window never came to rest")

    def _let_live(self, turns: int) -> None:
        for _ in range(turns):
            loop = QEventLoop()
            QTimer.singleShot(_TURN_MS, loop.quit)
            loop.exec()


def _palette(image: QImage) -> list[int]:
    """Return the colors that are used most and differ: that of a device before one more gray of a letter."""
    pixels = image.convertToFormat(QImage.Format.Format_RGB32)
    values = np.frombuffer(pixels.constBits(), dtype=np.uint32) | 0xFF000000
    colors, counts = np.unique(values, return_counts=True)
    ordered = colors[np.argsort(-counts)]
    channels = np.stack([(ordered >> shift) & 0xFF for shift in (16, 8, 0)], axis=1).astype(int)
    chosen: list[int] = []
    for place in range(len(ordered)):
        if len(chosen) == _COLORS:
            break
        if not chosen or np.abs(channels[chosen] - channels[place]).sum(axis=1).min() >= _APART:
            chosen.append(place)
    return [int(color) for color in ordered[chosen]]


def _above(tree: object, node: int) -> str:
    parent = tree.nodes[node].parent
    return tree.nodes[parent].name if parent is not None else ""


def _lay_over(picture: QPixmap, window: MainWindow, over: QWidget) -> None:
    """Paint a panel or a dialog where it stands over the window; a dialog in its middle, on a veil."""
    painter = QPainter(picture)
    is_popup = over.windowFlags() & Qt.WindowType.Popup == Qt.WindowType.Popup
    if is_popup:
        place = window.mapFromGlobal(over.mapToGlobal(QPoint(0, 0)))
    else:
        painter.fillRect(window.rect(), QColor(0, 0, 0, 90))
        middle = window.rect().center() - over.rect().center()
        place = QPoint(max(0, middle.x()), max(0, middle.y()))
    painter.drawPixmap(place, over.grab())
    if not is_popup:  # as a window manager frames it
        painter.setPen(over.palette().color(QPalette.ColorRole.Dark))
        painter.drawRect(QRect(place, over.size()).adjusted(-1, -1, 0, 0))
    painter.end()

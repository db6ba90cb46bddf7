"""How another machine is described: a script to run there, and its output to open here."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QLayout,
    QPushButton,
    QWidget,
)

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import MIDDLE, TOP, column, row
from inspector.gui.widgets.controls import CopyInset, button_row, make_button
from inspector.gui.widgets.labels import plain_label
from inspector.gui.widgets.notice import show_notice
from inspector.gui.widgets.start_folder import start_folder
from inspector.resources import PROBE, resource_path
from inspector.session.screen import FailurePage

_COMMAND = "python3 checkpoint_inspector_probe.py > machine.json"
_WIDTH = 560


class MachineDialog(QDialog):
    """Explains the three steps, and emits the chosen profile."""

    file_chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Load on another machine")
        self.setFixedWidth(_WIDTH)
        self._save = make_button("Save the script\u2026", self._on_save, icon="file", theme=theme)
        self._open = make_button(
            "Open machine.json\u2026", self._on_open, kind="primary", icon="open", theme=theme
        )
        intro = "See how this file would load on a server, a cluster node or a colleague's computer."
        promise = "It records GPUs, drivers and versions, but no users, hosts, folders or addresses."
        glyph = Glyph(theme, "shield", 18, ink="good")
        command = plain_label(_COMMAND, "mono", selectable=True)
        column(
            plain_label("Load on another machine", "lead"),
            plain_label(intro, "muted", wrap=True),
            _step("1", "Save the probe script and copy it to that machine.", self._save),
            _step("2", "Run it there. It needs Python 3.8 or newer and changes nothing."),
            CopyInset(theme, command, lambda: _COMMAND, "Copy the command"),
            _step("3", "Open its output here, or drop it on the window.", self._open),
            row((glyph, 0, TOP), (plain_label(promise, "small", wrap=True), 1), spacing=10),
            button_row(make_button("Close", self.reject)),
            spacing=14,
            margins=(28, 24, 28, 20),
            within=self,
        )

    def _on_save(self) -> None:
        proposed = str(Path.home() / Path(PROBE).name)
        path, _ = QFileDialog.getSaveFileName(self, "Save the probe script", proposed, "Python (*.py)")
        if path:
            self.save_script(path)

    def save_script(self, path: str) -> None:
        try:
            Path(path).write_bytes(resource_path(PROBE).read_bytes())
        except OSError as error:
            title, remedy = "The script was not saved", "choose another folder"
            what = error.strerror or "the folder does not accept files"
            show_notice(self, FailurePage(title=title, what=what, where=path, remedy=remedy))

    def _on_open(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, "Open the machine profile", start_folder(), "Machine profiles (*.json)"
        )
        if path:
            self.file_chosen.emit(path)
            self.accept()


def _step(number: str, text: str, button: QPushButton | None = None) -> QLayout:
    parts = ((plain_label(number, "strong"), 0, MIDDLE), (plain_label(text, wrap=True), 1, MIDDLE))
    return row(*parts, *([button] if button is not None else []), spacing=12)

"""How another machine is described: by hand, or by a script to run there whose output is opened here."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QFrame,
    QLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QWidget,
)

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import MIDDLE, TOP, column, row
from inspector.gui.widgets.controls import (
    CalmComboBox,
    CopyInset,
    button_row,
    make_button,
    number_field,
    show_notice,
)
from inspector.gui.widgets.labels import blocked, describe, named, plain_label, plain_tooltip
from inspector.gui.widgets.path_text import start_folder
from inspector.overriding import override
from inspector.resources import PROBE, resource_path
from inspector.session.jobs.pythons import PythonRow, PythonsPage
from inspector.session.screen import FailurePage
from inspector.session.targets import MOST_GIGABYTES, MOST_GPUS, kinds, word_for

_COMMAND = "python3 checkpoint_inspector_probe.py > machine.json"
_WIDTH = 560


class MachineDialog(QDialog):
    """Takes a description, or explains the three steps and emits the chosen profile."""

    file_chosen = Signal(object)
    described = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Load on another machine")
        self.setFixedWidth(_WIDTH)
        self._save = make_button("Save the script\u2026", self._on_save, icon="file", theme=theme)
        self._open = make_button("Open machine.json\u2026", self._on_open, icon="open", theme=theme)
        self._kinds = kinds()
        self._kind, self._count = CalmComboBox(), number_field("How many", 1, MOST_GPUS)
        self._kind.setAccessibleName("Kind of machine")
        for kind in self._kinds:
            self._kind.addItem(kind.label)
        self._kind.currentIndexChanged.connect(self._on_kind)
        self._memory = number_field("Memory of each in gigabytes", 0, MOST_GIGABYTES)
        self._memory.setSuffix(" GB")
        self._memory.setSpecialValueText("not known")
        use = make_button("Use this machine", self._on_use, kind="primary", icon="machine", theme=theme)
        intro = "See how this file would load on a server, a cluster node or a colleague's computer."
        promise = "It records GPUs, drivers and versions, but no users, hosts, folders or addresses."
        glyph = Glyph(theme, "shield", 18, ink="good")
        command = plain_label(_COMMAND, "mono", selectable=True)
        column(
            plain_label("Load on another machine", "lead"),
            plain_label(intro, "muted", wrap=True),
            row(
                column(plain_label("Kind", "section"), self._kind, spacing=4),
                column(plain_label("Count", "section"), self._count, spacing=4),
                column(plain_label("Memory of each", "section"), self._memory, spacing=4),
                1,
                spacing=12,
            ),
            row(1, use),
            named(QFrame(), "line"),
            plain_label("Or have the machine describe itself", "strong"),
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

    def _on_kind(self, place: int) -> None:
        is_counted = self._kinds[place].is_counted
        self._count.setEnabled(is_counted)
        if not is_counted:
            self._count.setValue(1)

    def _on_use(self) -> None:
        kind = self._kinds[self._kind.currentIndex()]
        self.described.emit(word_for(kind.id, self._count.value(), self._memory.value()))
        self.accept()

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


# Which Python's torch stands for this machine.


_SIZE = (640, 460)
_ROW_HEIGHT = 48
_INTRO = (
    "What is said of this machine is what torch says in your Python. By default that is the Python of the "
    "active environment, else python3 or python on PATH."
)
_LOOKING = "Asking each Python for its torch \u2026"
_NONE = "No Python was found. Choose one with Browse."


class PythonsDialog(QDialog):
    """Copies a page; emits the path that was chosen."""

    chosen = Signal(object)  # a path, of which a Signal(str) would lose bytes
    ended = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Python of this machine")
        self.resize(*_SIZE)
        self._rows: tuple[PythonRow, ...] = ()
        self._note = plain_label("", "muted")
        self._list = QListWidget()
        self._list.setAccessibleName("Pythons of this machine")
        self._list.setWordWrap(True)
        self._list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.currentRowChanged.connect(self._on_current)
        self._list.itemActivated.connect(self._on_use)
        self._use = make_button("Use this Python", self._on_use, kind="primary")
        self._use.setDefault(True)
        browse = make_button("Browse\u2026", self._on_browse, icon="open", theme=theme)
        column(
            plain_label("Python of this machine", "lead"),
            plain_label(_INTRO, "muted", wrap=True),
            self._note,
            (self._list, 1),
            button_row(browse, make_button("Cancel", self.reject), self._use),
            spacing=12,
            margins=(24, 20, 24, 20),
            within=self,
        )
        self._on_current(-1)

    def show_page(self, page: PythonsPage) -> None:
        if not self.isVisible():
            self.open()
        self._note.setText(_LOOKING if page.is_looking else "" if page.rows else _NONE)
        self._note.setVisible(bool(self._note.text()))
        if page.rows != self._rows:
            self._rows = page.rows
            self._fill()

    def _fill(self) -> None:
        with blocked(self._list):
            self._list.clear()
            for row in self._rows:
                self._list.addItem(_item(row))
        now = next((place for place, row in enumerate(self._rows) if row.is_chosen), 0)
        self._list.setCurrentRow(now)
        self._on_current(self._list.currentRow())

    def _on_current(self, place: int) -> None:
        usable = 0 <= place < len(self._rows) and self._rows[place].is_usable
        self._use.setEnabled(usable)
        describe(self._use, "" if usable else "Choose a Python that answers")

    def _on_use(self) -> None:
        row = self._rows[self._list.currentRow()]
        if row.is_usable:
            self._choose(row.path)

    def _on_browse(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Choose a Python", start_folder())
        if path:
            self._choose(path)

    def _choose(self, path: str) -> None:
        self.chosen.emit(path)
        self.accept()

    @override
    def done(self, result: int) -> None:
        super().done(result)
        self.ended.emit()


def _item(row: PythonRow) -> QListWidgetItem:
    now = "   (in use)" if row.is_chosen else ""
    item = QListWidgetItem(f"{row.title}{now}\n{row.detail}")
    item.setToolTip(plain_tooltip(row.title))
    item.setSizeHint(QSize(0, _ROW_HEIGHT))
    if not row.is_usable:
        item.setFlags(Qt.ItemFlag.NoItemFlags)
    return item

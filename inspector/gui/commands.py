"""What an action or a widget does: most of it is one call of the session."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QMainWindow

from inspector.gui.theme.theme import ZOOMS, Theme
from inspector.gui.widgets.path_text import start_folder
from inspector.session.targets import CUSTOM
from inspector.units import cut_text, format_count

if TYPE_CHECKING:
    from inspector.gui.dialogs.machine import PythonsDialog
    from inspector.gui.tree.search_box import SearchBox
    from inspector.gui.tree.view import TensorTreeView
    from inspector.session.controller import Session
    from inspector.session.jobs.pythons import PythonsPage
    from inspector.session.log import LogLine
    from inspector.session.screen import FindingRow, Screen

_KINDS = (
    "*.pth *.pt *.ckpt *.bin *.safetensors *.tar *.pth.gz *.pt.gz *.pkl *.pickle *.joblib *.gguf *.pt2 "
    "*.distcp *.metadata *.index.json"
)
_MESSAGE_MS = 2500
_READ_MS = 8000
_SCRIPTS = "Scripts and notebooks (*.py *.ipynb);;All files (*)"
_FILTERS = f"Checkpoints ({_KINDS});;All files (*)"


class Frame(QMainWindow):
    """A window as its commands know it; `MainWindow` fills in the methods.

    They raise here instead of being abstract, since Qt's classes have a metaclass of their own.
    """

    comparison_wanted = Signal(object)  # two paths: a str would lose bytes of names that are no UTF-8
    series_wanted = Signal(object)  # a folder, or several files
    session: Session | None = None
    shown: Screen | None = None
    search: SearchBox

    @property
    def tree(self) -> TensorTreeView:
        raise NotImplementedError

    def compare_selected(self) -> None:
        """Compare the checkpoints of a folder that are selected."""
        raise NotImplementedError

    def show_page(self, page: str, *, at_once: bool = False) -> None:
        """Turn to a page; its widget is made in the turns that follow, or at once."""
        raise NotImplementedError

    def open_paths(self, paths: list[str]) -> None:
        """Open the first file here, and ask for a window for each of the others."""
        raise NotImplementedError

    @property
    def can_compare(self) -> bool:
        return self.shown is not None and self.shown.phase == "ready"

    def compare_with(self, paths: list[str]) -> None:
        """Ask for a window that compares the file with each of the others."""
        if self.can_compare and self.shown is not None:
            for path in paths:
                self.comparison_wanted.emit([self.shown.path, path])


class Commands(QObject):
    """The slots behind the actions and the widgets of one window."""

    code_copied = Signal()
    tensor_code_copied = Signal()
    error_wanted = Signal()

    def __init__(self, window: Frame, theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._theme = theme
        self._pythons: PythonsDialog | None = None

    @property
    def session(self) -> Session | None:
        """The session of the window; there is one when a screen is shown."""
        return self._window.session

    @property
    def shown(self) -> Screen | None:
        return self._window.shown

    # File.

    def on_open(self) -> None:
        folder = self._folder()
        paths, _ = QFileDialog.getOpenFileNames(self._window, "Open checkpoints", folder, _FILTERS)
        if paths:
            self._window.open_paths(paths)

    def on_compare(self) -> None:
        if self.shown is not None and self.shown.phase == "checkpoints":
            self._window.compare_selected()
            return
        folder = self._folder()
        path, _ = QFileDialog.getOpenFileName(self._window, "Compare with", folder, _FILTERS)
        if path:
            self._window.compare_with([path])

    def _folder(self) -> str:
        """Return the folder of the file, none of which is chosen: to compare it with itself says nothing."""
        path = self._window.shown.path if self._window.shown else ""
        if self._window.shown is not None and self._window.shown.phase == "checkpoints":
            return path
        return str(PurePath(path).parent) if path else start_folder()

    def on_series(self) -> None:
        folder = self._folder()
        path = QFileDialog.getExistingDirectory(self._window, "Compare the checkpoints in a folder", folder)
        if path:
            self._window.series_wanted.emit((path,))

    def on_open_folder(self) -> None:
        folder = self._folder()
        path = QFileDialog.getExistingDirectory(self._window, "Open a folder", folder)
        if path:
            self._window.open_paths([path])

    def on_demo(self) -> None:
        if self.session:
            self.session.open_demo()

    def on_reload(self) -> None:
        if self.session:
            self.session.reload()

    def on_undo(self) -> None:
        if self.session:
            self.session.undo_export()

    def on_export(self) -> None:
        if self.session:
            self.session.begin_export()

    def on_check(self) -> None:
        self.on_page("file")
        if self.session:
            self.session.start_job("check")

    def on_close(self) -> None:
        screen = self._window.shown
        if self.session and screen is not None and screen.phase != "empty":
            self.session.close()
        else:
            self._window.close()

    def on_quit(self) -> None:
        QApplication.closeAllWindows()

    # Edit.

    def on_undo_map(self) -> None:
        if self.session:
            self.session.undo_map()

    def on_redo_map(self) -> None:
        if self.session:
            self.session.redo_map()

    def on_copy_rows(self) -> None:
        self._window.tree.copy_rows()

    def on_copy_path(self) -> None:
        node, session = self._window.tree.current_node(), self.session
        if node is not None and session is not None:
            path = session.node_path(node)
            if path:
                self.copy(path)
            else:
                self._window.statusBar().showMessage("A slice of a long list has no path", _MESSAGE_MS)

    def on_copy_expression(self) -> None:
        node, session = self._window.tree.current_node(), self.session
        if node is not None and session is not None:
            text = session.node_expression(node)
            if text:
                self.copy(text)
            else:
                self._window.statusBar().showMessage("Only a tensor has a Python expression", _MESSAGE_MS)

    def on_copy_code(self) -> None:
        screen = self._window.shown
        if screen is not None and screen.code is not None:
            self.copy(screen.code.text)
            self.code_copied.emit()

    def on_save_tensor(self) -> None:
        """Save the selected tensor as a file that can hold it; its page tells what becomes of that."""
        screen, session = self.shown, self.session
        if screen is None or session is None or not screen.values.forms:
            return
        from inspector.session.values.taking import file_stem

        forms = {f"{words} (*{suffix})": suffix for suffix, words in screen.values.forms}
        first = next(iter(forms.values()))
        proposed = str(PurePath(screen.path).parent / f"{file_stem(screen.values.title)}{first}")
        path, chosen = QFileDialog.getSaveFileName(self._window, "Save tensor", proposed, ";;".join(forms))
        if path:
            is_named = PurePath(path).suffix.lower() in forms.values()
            session.save_values(path if is_named else f"{path}{forms.get(chosen, first)}")
            self.on_page("tensor")

    def on_copy_tensor_code(self) -> None:
        screen, session = self.shown, self.session
        code = session.tensor_code(screen.selected) if session and screen and screen.selected else ""
        if code:
            self.copy(code)
            self.tensor_code_copied.emit()

    def on_copy_command(self) -> None:
        text = self.session.map_command() if self.session is not None else ""
        if text:
            self.copy(text)
        else:
            self._window.statusBar().showMessage("The map changes no device", _MESSAGE_MS)

    def on_paste_error(self) -> None:
        if self.shown is not None and self.shown.phase == "ready":
            self._window.show_page("findings", at_once=True)
        self.error_wanted.emit()

    def on_error_pasted(self, text: str) -> None:
        if self.session:
            self.session.explain_error(text, start_folder())

    def on_check_script(self) -> None:
        folder = self._folder()
        path, _ = QFileDialog.getOpenFileName(self._window, "Check a script", folder, _SCRIPTS)
        if path and self.session:
            self.session.open_script(path)

    def on_fix_wanted(self, row: FindingRow) -> None:
        """Do what the button of a card says."""
        if row.copies:
            self.copy(row.copies)
        elif row.fix is not None and row.fix.recovers:
            self.on_export()
        elif row.fix is not None and self.session:
            self.session.apply_fix(row.fix, exports=row.exports)

    def on_target_wanted(self, target: str) -> None:
        """Choose a machine of the list, or describe one."""
        if target == CUSTOM:
            self.on_machine()
        elif self.session:
            self.session.set_target(target)

    def on_path_wanted(self, path: str) -> None:
        self._window.open_paths([path])

    def on_find(self) -> None:
        self._window.search.begin()

    def on_find_next(self) -> None:
        self.on_step_wanted(1)

    def on_find_previous(self) -> None:
        self.on_step_wanted(-1)

    def on_find_end(self) -> None:
        self._window.search.leave()

    def on_step_wanted(self, step: int) -> None:
        """Go to the next match (1) or to the last one before (-1), wrapping around at the ends."""
        screen, session = self._window.shown, self.session
        if session is None or screen is None or not screen.matches:
            return
        matches, selected = screen.matches, screen.selected or 0
        # From a row that is no match, to the next one below or above it.
        place = bisect_right(matches, selected) if step > 0 else bisect_left(matches, selected) - 1
        if screen.flat is not None:  # what a search found in another order
            matches = screen.flat.nodes
            place = matches.index(selected) + step if selected in matches else min(0, step)
        session.select(matches[place % len(matches)])

    def on_search_left(self) -> None:
        self._window.tree.setFocus()

    # View.

    def on_flat(self) -> None:
        screen, session = self.shown, self.session
        if screen is not None and session is not None:
            session.list_flat(self._window.tree.order if screen.flat is None else None)

    def on_back(self) -> None:
        if self.session:
            self.session.go(-1)

    def on_forward(self) -> None:
        if self.session:
            self.session.go(1)

    def on_expand(self) -> None:
        left = self._window.tree.expand_below()
        if left:
            first = self._window.tree.name_of(left[0])
            words = (
                f"{format_count(len(left), 'branch', 'branches')} left folded: too many rows; first: {first}"
            )
            self._window.statusBar().showMessage(words, _READ_MS)

    def on_collapse(self) -> None:
        self._window.tree.collapse_all_rows()

    def on_page(self, page: str) -> None:
        self._window.show_page(page)

    def on_why_wanted(self) -> None:
        self.on_page("findings")

    def on_larger(self) -> None:
        self._zoom(1)

    def on_smaller(self) -> None:
        self._zoom(-1)

    def on_normal_text(self) -> None:
        self._zoom(0)

    def _zoom(self, step: int) -> None:
        """Make text larger (1) or smaller (-1) in all windows, or as large as the desktop says (0)."""
        at = ZOOMS.index(self._theme.zoom) + step
        self._theme.set_zoom(ZOOMS[max(0, min(at, len(ZOOMS) - 1))] if step else 100)
        told = f"Text at {self._theme.zoom} %"
        # A status bar with a new font shows its labels again, over what it says.
        QTimer.singleShot(0, self, partial(self._window.statusBar().showMessage, told, _MESSAGE_MS))

    # Help.

    def on_palette(self) -> None:
        from inspector.gui.dialogs.palette import Palette

        Palette(self._window).open()

    def on_shortcuts(self) -> None:
        from inspector.gui.dialogs.help import HelpDialog

        HelpDialog(self._window).open()

    def on_log(self) -> None:
        from inspector.gui.dialogs.help import LogDialog

        def log() -> tuple[LogLine, ...]:
            return self._window.shown.log if self._window.shown is not None else ()

        LogDialog(self._theme, self._window, log).open()

    def on_diagnostics(self) -> None:
        """Copy what a helper must know of the program and this machine, without paths."""
        self.copy(self._diagnostics())

    def on_about(self) -> None:
        from inspector.gui.dialogs.help import AboutDialog

        AboutDialog(self._theme, self._window, self._diagnostics).open()

    def _diagnostics(self) -> str:
        from inspector.gui.dialogs.help import diagnostics

        return diagnostics(self._window, self._window.shown, self._theme)

    # The widgets.

    def on_machine(self) -> None:
        from inspector.gui.dialogs.machine import MachineDialog

        dialog = MachineDialog(self._theme, self._window)
        if self.session is not None:
            dialog.file_chosen.connect(self.session.use_machine)
            dialog.described.connect(self.session.set_target)
        dialog.open()

    def on_python(self) -> None:
        if self.session is not None:
            self.session.look_for_pythons()

    def show_pythons(self, page: PythonsPage | None) -> None:
        if page is None or self.session is None:
            return
        if self._pythons is None:
            from inspector.gui.dialogs.machine import PythonsDialog

            self._pythons = PythonsDialog(self._theme, self._window)
            self._pythons.chosen.connect(self.session.use_python)
            self._pythons.ended.connect(self.session.end_pythons)
        self._pythons.show_page(page)

    def on_node_activated(self, node: int) -> None:
        if self.session:
            self.session.select(node)
        self.on_page("tensor")

    def tell(self, text: str) -> None:
        self._window.statusBar().showMessage(text, _READ_MS)

    def copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        first, _, rest = text.partition("\n")
        told = cut_text(first, 80) if not rest else f"{text.count(chr(10)) + 1:,} lines"
        self._window.statusBar().showMessage(f"Copied {told}", _MESSAGE_MS)

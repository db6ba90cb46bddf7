"""Pictures of the window in all its states, for people to look at.

`python -m tests.gui.gallery FOLDER [1280x800] [state,state,...]`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QApplication, QWidget

from inspector.gui.main_window import MainWindow
from inspector.gui.pages.memory.panel import MemoryPanel
from inspector.gui.settings import Settings
from inspector.gui.theme.theme import Theme
from inspector.progress import Progress
from inspector.session.export.page import ExportPage, ExportResult
from inspector.session.screen import FailurePage, Screen
from tests.gui import fakes

RECENT = (
    "/home/ada/runs/best.pth",
    "/data/zoo/a/rather/long/path/that/goes/on/and/on/yolo-v9-extended/weights/last.ckpt",
)
VERIFIED = (
    "105 tensors, all bytes equal to the original's",
    "All 64 moved tensors are on cpu",
    "Loads with torch.load without map_location",
)
NO_ROOM = FailurePage(
    title="The copy could not be written",
    what="No space left on the device after 41.2 MB.",
    where="/tmp/best.cpu.pth",
    remedy="Choose another place with 126 MB of room. Nothing was left behind.",
)


class Gallery:
    """Takes pictures of one state after the other, in the present theme."""

    def __init__(self, app: QApplication, theme: Theme, folder: Path, size: tuple[int, int]) -> None:
        self.app, self.theme, self.folder, self.size = app, theme, folder, size

    def settle(self, seconds: float = 0.15) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.app.processEvents()

    def picture(self, name: str, widget: QWidget) -> None:
        panel = widget.findChild(MemoryPanel)
        while panel is not None and not panel.is_drawn:
            self.settle(0.02)
        self.settle()
        widget.grab().save(str(self.folder / f"{name}-{self.theme.tokens.name}.png"))

    def window(self, screen: Screen) -> tuple[MainWindow, fakes.FakeSession]:
        window = MainWindow(self.theme, Settings(fresh=True))
        session = fakes.FakeSession(window, screen)
        window.attach(session)
        window.resize(*self.size)
        window.show_screen(screen)
        window.show()
        return window, session

    def take_phase(self, name: str, screen: Screen) -> None:
        window, _ = self.window(screen)
        self.picture(name, window)
        window.close()
        window.deleteLater()

    def take_page(self, page: str, screen: Screen | None = None) -> None:
        window, session = self.window(screen or fakes.ready_screen())
        window.workspace.pages.open_page(page)
        if page == "tensor":
            session.select(session.screen.tree.tensor_nodes[40])
        self.picture(page, window)
        window.close()
        window.deleteLater()

    def take_search(self) -> None:
        window, session = self.window(fakes.ready_screen())
        window.workspace.pages.open_page("tensor")
        session.search("conv1")
        session.select(session.screen.matches[3])
        self.picture("search", window)
        window.close()
        window.deleteLater()

    def take_drop(self) -> None:
        window, _ = self.window(fakes.ready_screen())
        window.workspace.changed._words.setText("The file has changed on disk since it was read.")
        window.workspace.changed.show()
        self.picture("changed", window)
        window._show_hot(hot=True)
        self.picture("drop", window)
        window.close()
        window.deleteLater()

    def take_export(self) -> None:
        window, session = self.window(fakes.ready_screen())
        session.begin_export()
        self.picture("export-draft", window.export_dialog)
        work = Progress()
        work.start("Copying records", 126_000_000)
        draft = session.screen.export.draft
        session.show(export=ExportPage(stage="running", draft=draft, title="Writing the copy", progress=work))
        work.advance(20_000_000)
        self.settle(0.7)
        work.advance(30_000_000)
        self.picture("export-running", window.export_dialog)
        done = ExportResult(destination="/tmp/best.cpu.pth", lines=VERIFIED, has_receipt=True)
        session.show(export=ExportPage(stage="done", draft=draft, result=done))
        self.picture("export-done", window.export_dialog)
        session.show(export=ExportPage(stage="failed", draft=draft, failure=NO_ROOM))
        self.picture("export-failed", window.export_dialog)
        window.export_dialog.close()
        window.close()
        window.deleteLater()

    def take_help(self) -> None:
        window, _ = self.window(fakes.empty_screen())
        for name in ("shortcuts", "about"):
            window.actions_by_name[name].trigger()
            dialog = self.app.activeModalWidget()
            self.picture(name, dialog)
            dialog.close()
        window.close()
        window.deleteLater()

    def states(self) -> dict[str, Callable[[], None]]:
        states: dict[str, Callable[[], None]] = {
            "empty": lambda: self.take_phase("empty", fakes.empty_screen(RECENT)),
            "failed": lambda: self.take_phase("failed", fakes.failed_screen()),
            "search": self.take_search,
            "export": self.take_export,
            "help": self.take_help,
            "drop": self.take_drop,
        }
        for page in ("memory", "tensor", "findings", "code", "file"):
            states[page] = lambda page=page: self.take_page(page)
        return states


def main() -> None:
    folder = Path(sys.argv[1])
    width, height = (sys.argv[2] if len(sys.argv) > 2 else "1280x800").split("x")
    folder.mkdir(exist_ok=True, parents=True)
    app = QApplication([])
    theme = Theme(app, "light")
    gallery = Gallery(app, theme, folder, (int(width), int(height)))
    states = gallery.states()
    for mode in ("light", "dark"):
        theme.set_mode(mode)
        for name in sys.argv[3].split(",") if len(sys.argv) > 3 else states:
            states[name]()


if __name__ == "__main__":
    main()

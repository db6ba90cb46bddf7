"""The running program: its windows, the files of later launches, and pictures of a window."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from PySide6.QtCore import QEvent, QEventLoop, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication, QMainWindow

from inspector.gui.main_window import MainWindow
from inspector.gui.placing import put_beside
from inspector.gui.settings import Settings
from inspector.gui.tasks import ThreadRunner, collect_closed
from inspector.gui.theme.icons import app_icon
from inspector.gui.theme.motion import set_still
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.path_text import is_same_file, leave_start_folder
from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.gui.compare.series_window import SeriesWindow
    from inspector.gui.compare.window import CompareWindow
    from inspector.gui.dialogs.error import ErrorDialog
    from inspector.session.screen import FailurePage, Screen
    from inspector.target.profile import Profile


_AGAIN_MS = 20


class Application(QApplication):
    """The application object, which is asked to open files that come while it runs, or as it starts.

    A filter of events would see each event of each object; this sees those of the application only.
    """

    paths_wanted = Signal(list)

    @override
    def event(self, event: QEvent) -> bool:
        """Ask for the file of an event; one without a file, such as a link, is left to Qt."""
        if isinstance(event, QFileOpenEvent) and event.url().isLocalFile():
            self.paths_wanted.emit([event.url().toLocalFile()])
            return True
        return bool(super().event(event))


def open_when_shown(program: Program, paths: list[str]) -> None:
    """Open files once every window knows what it shows.

    The event of a start comes before that, and the window of the start, still empty, is the one to take it.
    """
    if any(window.shown is None for window in program.windows):
        QTimer.singleShot(_AGAIN_MS, partial(open_when_shown, program, paths))
    else:
        program.open_paths(paths)


# Unexpected errors: shown once, as text that can be copied, while the window keeps running.
#
# What a slot or a thread raises is caught by no one: it would go to a terminal that most users never see.

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]
_MOST_CHARS = 20_000
_MOST_SHOWN = 20
_MESSAGE_MS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """One error.

    Attributes:
        key: What identifies it: its type and the line that raised it.
    """

    key: tuple[str, str, int]
    title: str
    text: str


class UnexpectedErrors(QObject):
    """Handles what slots and threads raise, and shows each different error once."""

    _happened = Signal(object)

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._known: set[tuple[str, str, int]] = set()
        self._dialog: ErrorDialog | None = None
        self._before: tuple[Hook, Callable[[threading.ExceptHookArgs], object]] | None = None
        self._happened.connect(self._on_happened, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._take
        threading.excepthook = self._take_from_thread

    def remove(self) -> None:
        if self._before is not None:
            sys.excepthook, threading.excepthook = self._before
            self._before = None

    def _take(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if self._before is not None:
            self._before[0](kind, error, trace)  # the terminal, if there is one, shows it as before
        if issubclass(kind, Exception):
            self._happened.emit(report_of(kind, error, trace))

    def _take_from_thread(self, raised: threading.ExceptHookArgs) -> None:
        if self._before is not None:
            self._before[1](raised)
        if issubclass(raised.exc_type, Exception) and raised.exc_value is not None:
            self._happened.emit(report_of(raised.exc_type, raised.exc_value, raised.exc_traceback))

    def _on_happened(self, report: ErrorReport) -> None:
        shown = self._dialog
        if report.key in self._known or len(self._known) >= _MOST_SHOWN:
            if shown is not None:
                shown.count()
            _show_message(f"Again: {cut_text(report.title, 100)}")
            return
        self._known.add(report.key)
        if shown is not None:
            shown.add(report.text)
            return
        from inspector.gui.dialogs.error import ErrorDialog

        dialog = self._dialog = ErrorDialog(self._theme, report.text)
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _on_closed(self) -> None:
        dialog, self._dialog = self._dialog, None
        if dialog is not None:
            dialog.deleteLater()


def report_of(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> ErrorReport:
    import platform
    import traceback

    import PySide6

    from inspector import __version__

    frames = traceback.extract_tb(trace)
    place = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
    program = f"Checkpoint Inspector {__version__}, Python {platform.python_version()}"
    system = f"PySide6 {PySide6.__version__}, {platform.platform()}"
    text = "".join(traceback.format_exception(kind, error, trace))
    title = "".join(traceback.format_exception_only(kind, error)).strip()
    return ErrorReport(
        key=(kind.__name__, *place), title=title, text=f"{program}\n{system}\n\n{_cut_middle(text)}".rstrip()
    )


def _cut_middle(text: str) -> str:
    """Cut what is very long: the beginning shows where, and the end shows what."""
    if len(text) <= _MOST_CHARS:
        return text
    half = _MOST_CHARS // 2
    return f"{text[:half]}\n...\n{text[-half:]}"


def _show_message(text: str) -> None:
    for window in QApplication.topLevelWidgets():
        if isinstance(window, QMainWindow):
            window.statusBar().showMessage(text, _MESSAGE_MS)


# Finds the window that shows a file, without the main thread waiting for a disk.
#
# Two names may lead to one file, which only the file system can tell, and a network path that hangs would
# hold all windows up. So a thread asks it; who gets no answer soon opens the file, which can be cancelled.

PATIENCE_MS = 500


class Shows(Protocol):
    """A window that shows a file, or none."""

    shown: Screen | None


Window = TypeVar("Window", bound=Shows)
Places = tuple[int | None, ...]
Tell = Callable[[Places], None]


def recognize(paths: Sequence[str], shown: Sequence[str], tell: Tell) -> None:
    """Look up for each path the place of the same file among those that are shown; None where it is not.

    At once where the names say it all, else in a later turn of the event loop, without an answer after
    `PATIENCE_MS`.
    """
    known = {path: place for place, path in reversed(list(enumerate(shown)))}
    places = tuple(map(known.get, paths))
    if not shown or None not in places:
        tell(places)
        return
    _Question(places, tell).ask(tuple(paths), tuple(shown))


def find_windows(
    paths: list[str],
    windows: list[Window],
    asking: Window | None,
    tell: Callable[[list[Window | None]], None],
) -> None:
    """Find the windows, all but one, that show these files, whatever they were called when opened there."""
    shown = [
        (window, window.shown.path)
        for window in windows
        if window is not asking
        and window.shown is not None
        and window.shown.phase in {"opening", "checkpoints", "ready"}
    ]

    def take(places: Places) -> None:
        found = [None if place is None else shown[place][0] for place in places]
        tell([window if window in windows else None for window in found])

    recognize(paths, [path for _, path in shown], take)


class _Question:
    """Waits for the thread or for the end of the patience, whichever comes first."""

    def __init__(self, places: Places, tell: Tell) -> None:
        self._places = places
        self._tell: Tell | None = tell
        self._runner = ThreadRunner()
        self._progress = Progress()

    def ask(self, paths: tuple[str, ...], shown: tuple[str, ...]) -> None:
        """Ask; refers to itself until there is an answer."""
        self._runner.run(partial(_find, paths, shown), self._progress, self._end, self._fail)
        QTimer.singleShot(PATIENCE_MS, partial(self._end, self._places))

    def _end(self, places: Places) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            self._runner.close()  # holds a thread that hangs until it ends, and no callback
            tell(places)

    def _fail(self, _: Exception) -> None:
        self._end(self._places)


def _find(paths: tuple[str, ...], shown: tuple[str, ...], progress: Progress) -> Places:
    found: list[int | None] = []
    for path in paths:
        progress.advance()
        found.append(next((place for place, other in enumerate(shown) if is_same_file(other, path)), None))
    return tuple(found)


_NAME = "checkpoint-inspector"
_CONTROLLER = "inspector.session.controller"
_PICTURE_TIMEOUT_S = 120.0
_YOUNG = 10_000
"""So many new objects take the garbage collector a millisecond; it would look at them every 700."""
MOST_AT_ONCE = 16
"""How many files one message or one drop opens: each takes a window and a thread."""


class MachineProbe:
    """Probes this machine once for all windows; a probe takes seconds and a process."""

    def __init__(self, python: str = "") -> None:
        self.python = python  # the command line's, in place of the remembered one
        self._found: dict[str | None, Profile] = {}

    def __call__(self, progress: Progress, python: str | None) -> Profile:
        """Return the profile of this machine by one of its Pythons; called in a worker thread."""
        if python not in self._found:
            from inspector.target.profile_file import probe_this_machine

            self._found[python] = probe_this_machine(progress, python)
        return self._found[python]


class Program(QObject):
    """Keeps the windows; each has a session and threads of its own."""

    def __init__(
        self, app: QApplication, settings: Settings, theme_mode: str, probe: MachineProbe | None = None
    ) -> None:
        super().__init__(app)
        self._probe = probe
        self._settings = settings
        self._theme = Theme(app, theme_mode)
        self._theme.set_zoom(settings.zoom)
        set_still(still=settings.is_still)
        self._windows: list[MainWindow] = []
        self._comparisons: list[CompareWindow | SeriesWindow] = []
        self._leaving: set[QMainWindow] = set()
        gc.set_threshold(_YOUNG, 10, 10)

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def windows(self) -> tuple[MainWindow, ...]:
        return tuple(self._windows)

    def open_window(self, path: str | None = None, *, demo: bool = False) -> MainWindow:
        """Open a window, with a file if there is one; the session starts after the first paint."""
        window = MainWindow(self._theme, self._settings)
        if self._windows:
            put_beside(self._windows[-1], window)
        self._windows.append(window)
        window.files_wanted.connect(self.open_paths)
        window.comparison_wanted.connect(self.compare_files)
        window.series_wanted.connect(self.compare_series)
        window.raise_elsewhere = partial(self._raise, window)
        window.closed.connect(partial(self._on_closed, window))
        window.painted.connect(partial(self._start_session, window, path, demo))
        window.show()
        return window

    def open_paths(self, paths: list[str]) -> None:
        """Open files, one window each, empty windows first; without files, show an empty window."""
        wanted = paths[:MOST_AT_ONCE]
        if not wanted:
            _bring_to_front(self._empty_window() or self.open_window())
            return

        def open_all(known: list[MainWindow | None]) -> None:
            for path, window in zip(wanted, known, strict=True):
                _bring_to_front(window or self._open_apart(path))
            self.say_rest(paths)

        find_windows(wanted, self._windows, None, open_all)

    def _open_apart(self, path: str) -> MainWindow:
        window = self._empty_window()
        if window is None:
            return self.open_window(path)
        window.open_paths([path])
        return window

    @property
    def comparisons(self) -> tuple[CompareWindow | SeriesWindow, ...]:
        return tuple(self._comparisons)

    def compare_files(self, paths: list[str]) -> None:
        from inspector.gui.compare.window import CompareWindow
        from inspector.gui.tasks import ThreadRunner
        from inspector.session.comparing.session import CompareSession

        for known in self._comparisons:
            session = known.session
            if isinstance(session, CompareSession) and list(session.paths) == paths:
                _bring_to_front(known)
                return
        window, runner = CompareWindow(self._theme), ThreadRunner()
        session = CompareSession(window, runner, *paths)
        window.attach(session)
        window.file_wanted.connect(self.open_paths)
        self._show_comparison(window, runner)
        session.compare()

    def compare_series(self, paths: tuple[str, ...]) -> None:
        from inspector.gui.compare.series_window import SeriesWindow
        from inspector.gui.tasks import ThreadRunner
        from inspector.session.comparing.series import SeriesSession

        for known in self._comparisons:
            session = known.session
            if isinstance(session, SeriesSession) and session.given == paths:
                _bring_to_front(known)
                return
        window, runner = SeriesWindow(self._theme), ThreadRunner()
        session = SeriesSession(window, runner, paths)
        window.attach(session)
        self._show_comparison(window, runner)
        session.compare()

    def _show_comparison(self, window: CompareWindow | SeriesWindow, runner: ThreadRunner) -> None:
        last = (*self._windows, *self._comparisons)
        if last:
            put_beside(last[-1], window)
        self._comparisons.append(window)
        window.closed.connect(runner.close)
        window.closed.connect(partial(self._on_closed, window))
        window.show()

    def say_rest(self, paths: list[str]) -> None:
        if len(paths) > MOST_AT_ONCE:
            self._windows[-1].show_notice(_too_many(len(paths)))

    def _raise(self, asking: MainWindow, paths: list[str], otherwise: Callable[[], None]) -> None:
        """Bring the window that shows the first of some files to the front, if that is another one.

        What was dropped with the file goes there, too.
        """

        def take(known: list[MainWindow | None]) -> None:
            window = known[0]
            if window is None:
                otherwise()
                return
            _bring_to_front(window)
            if paths[1:]:
                window.open_paths(paths[1:])

        find_windows(paths[:1], self._windows, asking, take)

    def _empty_window(self) -> MainWindow | None:
        for window in self._windows:
            if window.shown is not None and window.shown.phase == "empty":
                return window
        return None

    def _start_session(self, window: MainWindow, path: str | None, demo: bool) -> None:  # noqa: FBT001  # partial
        from inspector.gui.tasks import ThreadRunner

        runner = ThreadRunner()
        window.closed.connect(runner.close)
        begin = partial(self._begin_session, window, runner, path, demo)
        if _CONTROLLER in sys.modules:
            begin()
            return
        # The frame is painted; what reads files is imported beside it, while the workspace is built.
        runner.run(_import_controller, Progress(), begin)
        if demo or path is not None:
            QTimer.singleShot(0, window, window.prepare)

    def _begin_session(
        self,
        window: MainWindow,
        runner: ThreadRunner,
        path: str | None,
        demo: bool,  # noqa: FBT001  # partial
        _: object = None,
    ) -> None:
        from inspector.session.controller import Session

        kept = self._settings
        session = Session(
            window,
            runner,
            kept.recent,
            self._probe,
            python=(self._probe.python if self._probe else "") or kept.python,
            profiles=kept.profiles,
        )
        window.attach(session)
        if demo:
            session.open_demo()
        elif path is not None:
            session.open(path)
        else:
            window.show_screen(session.screen)
        QTimer.singleShot(0, window, window.prepare)

    def _on_closed(self, window: MainWindow | CompareWindow | SeriesWindow) -> None:
        windows: list[Any] = self._windows if window in self._windows else self._comparisons
        if window not in windows:
            return
        windows.remove(window)
        window.detach()
        # Held until Qt has deleted it: the garbage collector would take its parts apart in any order, and
        # perhaps in another thread.
        self._leaving.add(window)
        window.destroyed.connect(partial(self._on_destroyed, window))
        window.deleteLater()

    def _on_destroyed(self, window: QMainWindow) -> None:
        self._leaving.discard(window)
        QTimer.singleShot(0, self, collect_closed)


def main(paths: list[str], *, demo: bool = False, fresh: bool = False, python: str = "") -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C in the terminal ends the program
    app = make_app()
    server = None
    if not (demo or fresh or python):
        from inspector.gui.single_instance import lead_or_hand_over

        server = lead_or_hand_over(paths)
        if server is None:
            return 0
    settings = Settings(fresh=fresh)
    program = Program(app, settings, settings.theme, MachineProbe(python))
    errors = UnexpectedErrors(program.theme, program)
    errors.install()
    if server is not None:
        server.paths_received.connect(program.open_paths)
    if isinstance(app, Application):
        app.paths_wanted.connect(partial(open_when_shown, program))
    absolute = [str(Path(path).absolute()) for path in paths]
    leave_start_folder(app)
    for path in absolute[:MOST_AT_ONCE]:
        program.open_window(path)
    program.say_rest(absolute)
    if demo or not paths:
        program.open_window(demo=demo)
    code = app.exec()
    errors.remove()
    if server is not None:
        server.close()
    from inspector.gui.tree.dragging import end_drags

    end_drags()
    return code


def make_app() -> QApplication:
    """Make the application object, offscreen where there is no display."""
    screenless = not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if sys.platform.startswith("linux") and screenless:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = Application(["checkpoint-inspector"])
    app.setApplicationName(_NAME)
    app.setDesktopFileName(_NAME)
    app.setWindowIcon(app_icon())
    return app


def screenshot(
    path: str | None,
    out: str,
    *,
    size: tuple[int, int] = (1280, 800),
    theme: str = "light",
    page: str = "memory",
    target: Profile | None = None,
) -> None:
    """Render the real window with a file opened in it to a PNG.

    Args:
        path: The file; None for the empty window.
        theme: `light`, `dark`, `contrast-light` or `contrast-dark`.
        target: The machine to load the file on; None for this one, without its GPUs.
    """
    program = Program(make_app(), Settings(fresh=True), theme)
    window = program.open_window(None if path is None else str(Path(path).absolute()))
    window.resize(QSize(*size))
    try:
        _wait(lambda: window.shown is not None and not window.shown.is_on_its_way)
        if window.shown is not None and window.shown.phase == "ready":
            if target is not None and window.session is not None:
                window.session.choose_machine(target)
            window.workspace.pages.open_page(page)
            if page in {"tensor", "values"}:
                _select_first_tensor(window)
            _wait(lambda: window.is_drawn)
        for _ in range(5):  # texts that wrap settle from round to round
            _pass_time(0.03)
        if not window.grab().save(out, "PNG"):
            raise OSError(f"the picture could not be written: {out}")
    finally:
        window.close()
        _pass_time(0.0)


def _select_first_tensor(window: MainWindow) -> None:
    tree = window.shown.tree if window.shown is not None else None
    if window.session is not None and tree is not None and tree.tensor_nodes:
        window.session.select(tree.tensor_nodes[0])


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PICTURE_TIMEOUT_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("the window was not drawn in time")
        _pass_time(0.02)


def _pass_time(seconds: float) -> None:
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


def _too_many(count: int) -> FailurePage:
    from inspector.session.screen import FailurePage

    return FailurePage(
        title="Not all files were opened",
        what=f"only {MOST_AT_ONCE} of {count:,} files were opened",
        where="",
        remedy="open the others in smaller groups",
    )


def _import_controller(_: Progress) -> None:
    """Import what reads files; it knows nothing of Qt, so that a thread may do it."""
    import_module(_CONTROLLER)


def _bring_to_front(window: QMainWindow) -> None:
    window.showNormal() if window.isMinimized() else window.show()
    window.raise_()
    window.activateWindow()

"""A theme, a session that only remembers what it was asked, and a window between them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtGui import QPalette
from pytestqt.qtbot import QtBot

from inspector.gui.main_window import MainWindow
from inspector.gui.settings import Settings
from inspector.gui.theme.theme import Theme
from inspector.overriding import override
from inspector.session.screen import Screen
from tests.gui import fakes
from tests.gui.asked import AskedSession

WAIT_MS = 100_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Qt's offscreen platform has no window manager, and says so for each dialog and menu."""
    for item in items:
        item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))


class PatientBot(QtBot):
    """Waits as long as a busy machine takes; what is waited for comes, or the program is broken."""

    @override
    def waitUntil(self, callback, *, timeout=WAIT_MS):
        super().waitUntil(callback, timeout=timeout)

    @override
    def waitSignal(self, signal, *, timeout=WAIT_MS, **options):
        return super().waitSignal(signal, timeout=timeout, **options)

    @override
    def waitExposed(self, widget, *, timeout=WAIT_MS):
        return super().waitExposed(widget, timeout=timeout)


@pytest.fixture
def qtbot(qapp, request) -> QtBot:
    return PatientBot(request)


@pytest.fixture
def theme(qapp) -> Iterator[Theme]:
    theme = Theme(qapp, "light")
    yield theme
    theme.setParent(None)
    theme.deleteLater()
    qapp.setStyleSheet("")
    qapp.setPalette(QPalette())


@pytest.fixture
def session():
    """A session that does nothing; what it was asked is checked with `assert_called...`."""
    return AskedSession()


@pytest.fixture
def make_window(qtbot, theme, session) -> Callable[..., MainWindow]:
    windows = []  # held here: the garbage collector takes widgets apart in any order

    def make(screen: Screen | None = None, settings: Settings | None = None) -> MainWindow:
        window = MainWindow(theme, settings or Settings(fresh=True))
        windows.append(window)
        qtbot.addWidget(window)
        window.attach(session)
        if screen is not None:
            window.show_screen(screen)
        window.show()
        qtbot.waitExposed(window)
        return window

    return make


@pytest.fixture
def window(make_window) -> MainWindow:
    """A window with a training checkpoint in it."""
    return make_window(fakes.ready_screen())


@pytest.fixture(autouse=True)
def _no_leaked_widget(request: pytest.FixtureRequest) -> Iterator[None]:
    """A window that outlives its test fails it: in the program it would outlive its file."""
    if "qapp" not in request.fixturenames:
        yield
        return
    before = _windows()
    yield
    # pytest-qt has closed what was given to `qtbot.addWidget`, but nothing has carried out the deletions.
    if leaked := _windows() - before:
        gc.unfreeze()  # what a window was frozen with, when a file was read
        gc.collect()
        leaked = _windows() - before
    if leaked:
        pytest.fail(f"leaked windows: {', '.join(sorted(repr(widget) for widget in leaked))}")


def _windows() -> set[object]:
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication

    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    return {widget for widget in QApplication.topLevelWidgets() if widget.parent() is None}

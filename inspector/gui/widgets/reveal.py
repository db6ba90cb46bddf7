"""Show a file in the desktop's file manager, selected where the desktop can do that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QDesktopServices

from inspector.child import SAFE_FOLDER, find_program

_TIMEOUT_MS = 10_000


def show_in_folder(path: Path, failed: Callable[[], None] = lambda: None) -> bool:
    """Open the folder of a file; return whether that worked, as far as it is known at once.

    The file manager may be starting: its answer is not waited for. Where it has none, the folder is opened,
    and where that fails too, `failed` is called.
    """
    if sys.platform == "win32":
        return _start(["explorer", "/select,", str(path)])
    if sys.platform == "darwin":
        return _start(["open", "-R", str(path)])
    return _ask_file_manager(path, failed) or _open_folder(path)


def _open_folder(path: Path) -> bool:
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))


def _start(command: list[str]) -> bool:
    program = find_program(command[0])
    if program is None:
        return False
    try:
        # A fixed program, the path is its own argument.
        subprocess.Popen([program, *command[1:]], cwd=SAFE_FOLDER)  # noqa: S603
    except OSError:
        return False
    return True


def _ask_file_manager(path: Path, failed: Callable[[], None]) -> bool:
    """Ask over D-Bus, see https://www.freedesktop.org/wiki/Specifications/file-manager-interface/."""
    from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusPendingCallWatcher

    bus = QDBusConnection.sessionBus()
    if not bus.isConnected():
        return False
    name = "org.freedesktop.FileManager1"
    call = QDBusMessage.createMethodCall(name, "/org/freedesktop/FileManager1", name, "ShowItems")
    call.setArguments([[path.as_uri()], ""])  # with all bytes of a name that is no UTF-8
    watcher = QDBusPendingCallWatcher(bus.asyncCall(call, timeout=_TIMEOUT_MS), QCoreApplication.instance())

    def answered() -> None:
        watcher.deleteLater()
        if watcher.isError() and not _open_folder(path):
            failed()

    watcher.finished.connect(answered)
    return True

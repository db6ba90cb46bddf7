"""Show a file in the desktop's file manager, selected where the desktop can do that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from inspector.child import SAFE_FOLDER, find_program


def show_in_folder(path: Path) -> bool:
    """Open the folder of a file; return whether that worked."""
    if sys.platform == "win32":
        return _start(["explorer", "/select,", str(path)])
    if sys.platform == "darwin":
        return _start(["open", "-R", str(path)])
    return _ask_file_manager(path) or QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))


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


def _ask_file_manager(path: Path) -> bool:
    """Ask over D-Bus, see https://www.freedesktop.org/wiki/Specifications/file-manager-interface/."""
    from PySide6.QtDBus import QDBusConnection, QDBusMessage

    bus = QDBusConnection.sessionBus()
    if not bus.isConnected():
        return False
    name = "org.freedesktop.FileManager1"
    call = QDBusMessage.createMethodCall(name, "/org/freedesktop/FileManager1", name, "ShowItems")
    call.setArguments([[path.as_uri()], ""])  # with all bytes of a name that is no UTF-8
    return bus.call(call, timeout=2000).type() == QDBusMessage.MessageType.ReplyMessage

"""Whether a window can be opened here: where it cannot, Qt aborts the process, so we check first."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inspector.cli.common import PROGRAM
from inspector.desktop.folders import runtime_folder
from inspector.errors import PlanError
from inspector.resources import LIBRARIES, resource_path


def require_display(files: Sequence[str] = ()) -> None:
    """Raise an error unless Qt will find a screen.

    Args:
        files: What the window was to open: a terminal shows it as well.
    """
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM"):
        return
    if os.environ.get("WAYLAND_DISPLAY") and _wayland_answers():
        return
    if not (os.environ.get("DISPLAY") and _x_answers()):
        raise PlanError("there is no screen to open a window on", remedy=_without_a_window(files))
    _require_plugin()


def _without_a_window(files: Sequence[str]) -> str:
    from inspector.quoting import command, file_word

    return f"use: {command('show', *map(file_word, files))}" if files else f"name a file: {PROGRAM} show"


def _wayland_answers() -> bool:
    """Try the socket ourselves: Wayland's library would write its own complaint to stderr."""
    path = Path(runtime_folder() or "", os.environ["WAYLAND_DISPLAY"])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(os.fspath(path))
        except OSError:
            return False
    return True


def _x_answers() -> bool:
    try:
        library = ctypes.CDLL("libxcb.so.1")
    except OSError as error:
        raise _missing(error) from error
    library.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(library.xcb_connect(None, None))
    failed = bool(library.xcb_connection_has_error(connection))
    library.xcb_disconnect(connection)
    return not failed


def _require_plugin() -> None:
    """Load what Qt would load next: Qt would abort where this names the missing library."""
    package = importlib.util.find_spec("PySide6")
    folders = (package.submodule_search_locations if package is not None else None) or []
    for folder in folders:
        plugin = Path(folder, "Qt", "plugins", "platforms", "libqxcb.so")
        if plugin.exists():
            try:
                ctypes.CDLL(str(plugin))
            except OSError as error:
                raise _missing(error) from error


def require_packages() -> None:
    """Raise an error where the window was not installed: the command line works without it."""
    missing = [name for name in ("PySide6", "pyqtgraph") if importlib.util.find_spec(name) is None]
    if missing:
        from inspector.quoting import shell_word

        # Of the two releases that Python 3.11 takes, see pyproject.toml.
        qt = "PySide6-Essentials<6.12" if sys.version_info < (3, 12) else "PySide6-Essentials"
        words = (sys.executable, "-m", "pip", "install", qt, "pyqtgraph")
        raise PlanError(
            f"the window needs {' and '.join(missing)}, which {'are' if missing[1:] else 'is'} not installed",
            remedy=f"for this Python: {' '.join(map(shell_word, words))}",
        )


@contextmanager
def window_libraries() -> Iterator[None]:
    """Name the missing package where Qt or its own libraries cannot be imported."""
    require_packages()
    try:
        yield
    except ImportError as error:
        raise _missing(error) from error


def _missing(error: Exception) -> PlanError:
    remedy = f"on Debian: apt install {' '.join(system_libraries())}" if sys.platform == "linux" else None
    return PlanError(f"the window's libraries cannot be loaded: {error}", remedy=remedy)


def system_libraries() -> tuple[str, ...]:
    lines = resource_path(LIBRARIES).read_text(encoding="ascii").splitlines()
    return tuple(line.split()[0] for line in lines if not line.startswith("#"))

"""What a helper must know of the program and this machine: versions and settings, and no paths or names."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from PySide6 import __version__ as pyside_version
from PySide6.QtCore import QLocale, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from inspector import __version__
from inspector.gui.theme.theme import Theme
from inspector.session.screen import Screen
from inspector.units import format_count, format_nbytes

ABSENT = "not installed"


def versions() -> tuple[tuple[str, str], ...]:
    """Return the programs that this one is made of, each with its version; nothing is imported for it."""
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    return (
        ("Checkpoint Inspector", __version__),
        ("Python", python),
        ("Qt", f"{qVersion()} (PySide6 {pyside_version})"),
        ("pyqtgraph", installed("pyqtgraph")),
        ("NumPy", installed("numpy")),
        ("PyTorch", f"{installed('torch')} (only checks copies, where asked)"),
    )


def installed(package: str) -> str:
    """Return the version of a package of this Python."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT


def diagnostics(window: QWidget, shown: Screen | None, theme: Theme) -> str:
    """Return all of it as text: versions, the system, the screen, and of the file its format and size."""
    size, ratio = window.screen().size(), window.devicePixelRatioF()
    lines = [f"{name}: {what}" for name, what in versions()]
    lines += [
        f"System: {platform.system()} {platform.release()}, {platform.machine()}",
        f"Windows: {QGuiApplication.platformName()}, {theme.tokens.name}, {QLocale.system().name()}",
        f"Screen: {size.width()} x {size.height()} at {ratio:g}",
        f"Installed: {'as a package' if 'site-packages' in __file__ else 'from its sources'}",
        *_file_lines(shown),
    ]
    return "\n".join(lines) + "\n"


def _file_lines(screen: Screen | None) -> list[str]:
    """Return what is open: how it went, and how large it is."""
    if screen is None:
        return []
    lines = [f"Window: {screen.phase}{', not judged yet' if screen.is_checking else ''}"]
    root = screen.tree.nodes[0] if screen.tree is not None else None
    if root is not None and screen.status:
        lines.append(
            f"File: {screen.status[1]}, {format_count(root.tensors, 'tensor')}, {format_nbytes(root.nbytes)}"
        )
        lines.append(f"Findings: {', '.join(sorted({row.id for row in screen.findings})) or 'none'}")
    return lines

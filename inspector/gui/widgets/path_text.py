"""Paths in Qt's strings, which silently lose bytes of a name that are not UTF-8.

Python keeps such bytes as lone surrogates, and Qt drops those from every string, item and `Signal(str)`.
"""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QUrl

from inspector.resources import TRUSTED_FOLDER
from inspector.units import escape_text


def path_of_url(url: QUrl) -> str:
    """Return the path of a `file:` URL with all of its bytes."""
    if os.name == "nt":
        return url.toLocalFile()
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(url.path(QUrl.ComponentFormattingOption.FullyEncoded)))


def is_same_file(path: str, other: str) -> bool:
    try:
        return path == other or Path(path).samefile(other)
    except (OSError, ValueError):
        return False


class PathText:
    """A path and the text that stands for it in a field, where it can be edited."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.text = path if _is_lossless(path) else escape_text(path)

    def path_of(self, text: str) -> str:
        """Return the path that a field means: this one as long as the text was not edited."""
        return self.path if text == self.text else text.strip()


def _is_lossless(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


_NAME = "startFolder"


def leave_start_folder(app: QCoreApplication) -> None:
    try:
        app.setProperty(_NAME, os.getcwd())  # noqa: PTH109 - as Qt wants it
        os.chdir(TRUSTED_FOLDER)
    except OSError:  # the folder or the installation is gone
        return


def start_folder() -> str:
    """Return the folder where file dialogs begin; empty if the program never left it."""
    app = QCoreApplication.instance()
    return str((app.property(_NAME) if app is not None else None) or "")

"""The folder that the program was started in: file dialogs begin there, and nothing else of it is used.

A file manager starts programs in the folder of the file that is opened. A process that works there looks up
plug-ins, libraries and programs in it where a search path has a relative entry, and keeps its disk from being
unmounted.
"""

from __future__ import annotations

import os

from PySide6.QtCore import QCoreApplication

from inspector.resources import TRUSTED_FOLDER

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

"""Where the files of a user belong: https://specifications.freedesktop.org/basedir-spec."""

from __future__ import annotations

import os
from pathlib import Path


def data_home() -> Path:
    """Return where programs are registered, with their icons and file types."""
    return _named("XDG_DATA_HOME") or Path.home() / ".local/share"


def config_home() -> Path:
    """Return where it is said which program opens what."""
    return _named("XDG_CONFIG_HOME") or Path.home() / ".config"


def runtime_folder() -> Path | None:
    """Return where sockets belong; there is nothing that stands for it where it is not named."""
    return _named("XDG_RUNTIME_DIR")


def _named(variable: str) -> Path | None:
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None  # a relative path is to be ignored

"""`checkpoint-inspector desktop install|remove`: double-click, icon, launcher and Open With, for one user."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from inspector.child import python_command
from inspector.desktop import PROGRAM

WINDOW_PROGRAM = f"{PROGRAM}-window.exe"
"""The program of a bundle for Windows that has no console: what the desktop starts."""


class Registration(Protocol):
    """What one kind of desktop knows of the program."""

    def install(self, command: Sequence[str]) -> list[Path]:
        """Register the program; doing it again refreshes what is there.

        Returns:
            The files (or keys of the registry) that were written.
        """

    def remove(self) -> list[Path]:
        """Take back what `install` wrote; what others wrote beside it stays.

        Returns:
            The files that were removed or, with other programs' lines left in it, rewritten.
        """


def find_registration() -> Registration:
    """Return the registration of the desktop that this machine has."""
    # One of three: the others are not imported.
    if sys.platform == "win32":
        from inspector.desktop import windows  # noqa: PLC0415

        return windows.for_this_user()
    if sys.platform == "darwin":
        from inspector.desktop.macos import MacRegistration  # noqa: PLC0415

        return MacRegistration(program=Path(sys.executable))
    from inspector.desktop.freedesktop import registration as freedesktop  # noqa: PLC0415

    return freedesktop.for_this_user()


def find_running_command() -> list[str]:
    """Return the command line that starts this very program again, from any folder and without a shell.

    In this order: the bundle itself, the script that was started, the script beside the interpreter, and the
    package's own `__main__.py`. File managers start programs in the folder of the file that is opened, so
    nothing may be looked up there: no `python -m`, whose first place to look is the working directory.
    """
    here = Path(sys.executable).parent
    if getattr(sys, "frozen", False):
        windowed = here / WINDOW_PROGRAM
        return [str(windowed) if windowed.is_file() else sys.executable]
    main = Path(__file__).resolve().parents[1] / "__main__.py"
    if sys.platform == "win32":  # the script is a program of the console, which would open one
        windowed = here / "pythonw.exe"
        return [str(windowed), "-P", str(main)] if windowed.is_file() else python_command(main)
    for candidate in (Path(sys.argv[0]), here / PROGRAM):
        if candidate.name == PROGRAM and (script := shutil.which(str(candidate.absolute()))):
            return [script]
    return python_command(main)

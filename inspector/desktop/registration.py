"""`checkpoint-inspector desktop install|remove`: double-click, icon, launcher and Open With, for one user."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from inspector.child import python_command
from inspector.desktop import PROGRAM
from inspector.errors import ExportError


class Registration(Protocol):
    """What one kind of desktop knows of the program."""

    def install(self, command: Sequence[str]) -> list[Path]:
        """Register the program; doing it again refreshes what is there.

        Args:
            command: The command line that starts the program.

        Returns:
            The files that were written.

        Raises:
            ExportError: Something could not be written; everything is as it was before.
        """

    def remove(self) -> list[Path]:
        """Take back what `install` wrote; what others wrote beside it stays.

        Returns:
            The files that were removed or, with other programs' lines left in it, rewritten.

        Raises:
            ExportError: Something could not be removed.
        """


def find_registration() -> Registration:
    """Return the registration of the desktop that this machine has.

    Raises:
        ExportError: There is none for it.
    """
    if sys.platform in {"win32", "darwin"}:
        raise ExportError(
            "this desktop keeps no freedesktop.org registration",
            remedy="open files from the window or on the command line, or choose this program with Open With",
        )
    from inspector.desktop.freedesktop.registration import for_this_user  # noqa: PLC0415 - one of several

    return for_this_user()


def find_running_command() -> list[str]:
    """Return the command line that starts this very program again, from any folder and without a shell.

    In this order: the bundle itself, the script that was started, the script beside the interpreter, and the
    package's own `__main__.py`. File managers start programs in the folder of the file that is opened, so
    nothing may be looked up there: no `python -m`, whose first place to look is the working directory.
    """
    if getattr(sys, "frozen", False):
        return [sys.executable]
    for candidate in (Path(sys.argv[0]), Path(sys.executable).parent / PROGRAM):
        if candidate.name == PROGRAM and (script := shutil.which(str(candidate.absolute()))):
            return [script]
    return python_command(Path(__file__).resolve().parents[1] / "__main__.py")

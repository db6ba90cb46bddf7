"""Tells Launch Services of the application that runs, or to forget it.

Finder finds what lies in an Applications folder by itself; this is for a bundle that lies elsewhere.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from inspector.child import SAFE_FOLDER
from inspector.errors import ExportError
from inspector.records import dataclass

LSREGISTER = Path(
    "/System/Library/Frameworks/CoreServices.framework/Frameworks/LaunchServices.framework/Support/lsregister"
)
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MacRegistration:
    """The registration of one user: see `inspector.desktop.registration.Registration`."""

    program: Path
    tool: Path = LSREGISTER

    def install(self, command: Sequence[str]) -> list[Path]:
        """Register the bundle that the program is in; its types stand in its `Info.plist`."""
        del command  # the bundle says by itself what starts it
        return self._run("-f")

    def remove(self) -> list[Path]:
        """Let Launch Services forget the bundle."""
        return self._run("-u")

    def _run(self, option: str) -> list[Path]:
        bundle = self._find_bundle()
        try:
            done = subprocess.run(  # noqa: S603 - a fixed tool of the system
                [self.tool, option, bundle],
                check=False,
                capture_output=True,
                cwd=SAFE_FOLDER,
                errors="replace",
                timeout=_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ExportError("lsregister could not be run", where=str(error)) from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise ExportError("lsregister failed", where=said[-1] if said else str(bundle))
        return [bundle]

    def _find_bundle(self) -> Path:
        for folder in self.program.parents:
            if folder.suffix == ".app" and (folder / "Contents" / "Info.plist").is_file():
                return folder
        raise ExportError(
            "on macOS only an application bundle can be registered, and this program is in none",
            where=str(self.program),
            remedy="open files from the window, or name them to checkpoint-inspector",
        )

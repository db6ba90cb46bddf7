"""The caches of the desktop, which have to be told that something changed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from inspector.child import SAFE_FOLDER, find_program
from inspector.desktop import PROGRAM
from inspector.desktop.freedesktop.files import remove_empty_folders
from inspector.errors import ExportError

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 30.0

_MIME_CACHES = (
    "XMLnamespaces",
    "aliases",
    "generic-icons",
    "globs",
    "globs2",
    "icons",
    "magic",
    "mime.cache",
    "subclasses",
    "treemagic",
    "types",
    "version",
)


def refresh(data_home: Path) -> None:
    """Rebuild the caches of one data folder; a tool that is not installed has no cache to rebuild."""
    if (data_home / "mime" / "packages").is_dir():
        _run("update-mime-database", str(data_home / "mime"))
    if (data_home / "applications").is_dir():
        _run("update-desktop-database", "--quiet", str(data_home / "applications"))
    icons = data_home / "icons" / "hicolor"
    if icons.is_dir():
        os.utime(icons)  # icon themes are read again when the folder is younger than what was read
    if (icons / "icon-theme.cache").exists():  # without a cache the folders are read, and nothing is stale
        _run("gtk-update-icon-cache", "--quiet", "--force", "--ignore-theme-index", str(icons))


def remove_unneeded(data_home: Path) -> None:
    """Remove caches that describe nothing any more, and the folders that are empty then."""
    mime = data_home / "mime"
    if not any((mime / "packages").glob("*.xml")):
        for name in _MIME_CACHES:
            (mime / name).unlink(missing_ok=True)
        for media in mime.glob("*/"):  # one description a type was in there
            remove_empty_folders(media, below=mime)
    applications = data_home / "applications"
    if not any(applications.rglob("*.desktop")):
        (applications / "mimeinfo.cache").unlink(missing_ok=True)
    for name in (
        "mime/packages",
        "mime",
        "applications",
        "icons/hicolor/scalable/apps",
        "thumbnailers",
        PROGRAM,
    ):
        folder = data_home / name
        remove_empty_folders(folder, below=data_home)


def _run(tool: str, *arguments: str) -> None:
    path = find_program(tool)
    if path is None:
        return
    try:
        done = subprocess.run(  # noqa: S603 - a fixed tool of the desktop, with folders of the user
            [path, *arguments],
            check=False,
            capture_output=True,
            cwd=SAFE_FOLDER,
            env=outside_environment(),
            errors="replace",
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise ExportError(f"{tool} did not end within {TIMEOUT_S:.0f} s", where=arguments[-1]) from None
    except OSError as error:
        raise ExportError(f"{tool} could not be started", where=str(error)) from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise ExportError(f"{tool} failed", where=said[-1] if said else arguments[-1])


def outside_environment() -> dict[str, str]:
    """Return the environment without the libraries of a bundle, which the system's tools must not load.

    PyInstaller keeps the user's own value under another name:
    https://pyinstaller.org/en/stable/common-issues-and-pitfalls.html#launching-external-programs-from-the-frozen-application
    """
    environment = dict(os.environ)
    if getattr(sys, "frozen", False):
        environment.pop("LD_LIBRARY_PATH", None)
        if original := environment.pop("LD_LIBRARY_PATH_ORIG", ""):
            environment["LD_LIBRARY_PATH"] = original
    return environment

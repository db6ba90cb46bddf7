"""The caches of the desktop, which have to be told that something changed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from inspector.child import SAFE_FOLDER, find_program
from inspector.containers.source import read_small
from inspector.desktop import PROGRAM
from inspector.errors import ContainerError, ExportError

# Small files of the desktop, replaced as a whole or not at all.

_MOST_NBYTES = 16 << 20
NEW_FILE_MODE = 0o644
"""What other programs of the desktop expect to be able to read; `mkstemp` alone would give 0600."""


def read_if_there(path: Path) -> bytes | None:
    """Read a small file; None when there is none."""
    if not path.exists():
        return None
    try:
        return read_small(path, _MOST_NBYTES)
    except ContainerError as error:
        raise OSError(errno.EINVAL, error.what, os.fspath(path)) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` in one step, so that no reader ever meets half of it.

    A symbolic link is followed: people keep `mimeapps.list` in a repository of their own and link to it.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else NEW_FILE_MODE
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        temporary.replace(target)
    except OSError:
        temporary.unlink()
        raise


def restore(path: Path, content: bytes | None) -> None:
    """Put back what `read_if_there` gave."""
    if content is None:
        path.unlink(missing_ok=True)
    else:
        write_atomically(path, content)


def remove_empty_folders(folder: Path, *, below: Path) -> None:
    """Remove `folder` and its parents while they are empty; `below` itself stays."""
    while folder != below and below in folder.parents:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            return  # something else lives there
        folder = folder.parent


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

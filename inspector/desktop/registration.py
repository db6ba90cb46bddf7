"""`checkpoint-inspector desktop install|remove`: double-click, icon, launcher and Open With, for one user.

Everything is written under `$XDG_DATA_HOME`, but for one line a file type in the `mimeapps.list` of
`$XDG_CONFIG_HOME`, which makes the program the default for the types that are its own. A package of the
distribution installs the same sources for everyone.
https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from inspector.desktop import caches, default_apps, entry
from inspector.desktop.files import read_if_there, restore, write_atomically
from inspector.errors import ExportError
from inspector.resources import resource_path

ENTRY_NAME = f"{entry.PROGRAM}.desktop"


def install(
    *, data_home: Path | None = None, config_home: Path | None = None, command: str | None = None
) -> list[Path]:
    """Register the program for the current user; doing it again refreshes what is there.

    Args:
        data_home: In place of `$XDG_DATA_HOME`.
        config_home: In place of `$XDG_CONFIG_HOME`.
        command: How to start the program, quoted as for a shell; by default, the way it runs now.

    Returns:
        The files that were written.

    Raises:
        ExportError: Something could not be written; everything is as it was before.
    """
    _require_freedesktop()
    data_home = data_home or _base_folder("XDG_DATA_HOME", ".local/share")
    config_home = config_home or _base_folder("XDG_CONFIG_HOME", ".config")
    words = entry.find_running_command() if command is None else shlex.split(command)
    if not words:
        raise ExportError("the command of the launcher is empty")
    template = resource_path(f"desktop/{ENTRY_NAME}").read_text(encoding="utf-8")
    mime, launcher, icon = _own_files(data_home)
    defaults = config_home / "mimeapps.list"
    contents = {
        mime: resource_path(f"desktop/{entry.PROGRAM}.xml").read_bytes(),
        icon: resource_path("icons/app.svg").read_bytes(),
        launcher: os.fsencode(entry.format_entry(template, words)),
        defaults: _edit_defaults(defaults, entry.read_own_types(template)),
    }
    _write_all(contents, data_home)
    return list(contents)


def remove(*, data_home: Path | None = None, config_home: Path | None = None) -> list[Path]:
    """Take back what `install` wrote; what others wrote beside it stays.

    Returns:
        The files that were removed or, with other programs' lines left in it, rewritten.

    Raises:
        ExportError: Something could not be removed.
    """
    _require_freedesktop()
    data_home = data_home or _base_folder("XDG_DATA_HOME", ".local/share")
    config_home = config_home or _base_folder("XDG_CONFIG_HOME", ".config")
    defaults = config_home / "mimeapps.list"
    try:
        changed = [path for path in _own_files(data_home) if path.exists()]
        before = read_if_there(defaults)
        if before is not None and ENTRY_NAME.encode() in before:
            changed.append(defaults)
            restore(defaults, _without_us(before))
        for path in _own_files(data_home):
            path.unlink(missing_ok=True)
        if changed:
            caches.refresh(data_home)
        caches.remove_unneeded(data_home)
    except OSError as error:
        raise _as_export_error("the registration could not be removed", error) from error
    return changed


def _own_files(data_home: Path) -> tuple[Path, Path, Path]:
    """Name the file types, the launcher and the icon."""
    return (
        data_home / "mime" / "packages" / f"{entry.PROGRAM}.xml",
        data_home / "applications" / ENTRY_NAME,
        data_home / "icons" / "hicolor" / "scalable" / "apps" / f"{entry.PROGRAM}.svg",
    )


def _base_folder(variable: str, default: str) -> Path:
    """Follow the base directory specification: a relative path in the variable is to be ignored."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else Path.home() / default


def _require_freedesktop() -> None:
    if sys.platform in {"win32", "darwin"}:
        raise ExportError(
            "this desktop keeps no freedesktop.org registration",
            remedy="use the installer (Windows) or the application bundle (macOS)",
        )


def _edit_defaults(defaults: Path, types: list[str]) -> bytes:
    try:
        before = read_if_there(defaults) or b""
    except OSError as error:
        raise _as_export_error("the list of default programs could not be read", error) from error
    return _encode(default_apps.add_default(_decode(before), ENTRY_NAME, types))


def _without_us(before: bytes) -> bytes | None:
    """Give the list without our lines; None when nothing else is in it, as when there was none at first."""
    after = _encode(default_apps.remove_everywhere(_decode(before), ENTRY_NAME))
    return after if after.strip() else None


def _decode(content: bytes) -> str:
    """Read a file of the user so that any byte in it survives being written again."""
    return content.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _write_all(contents: dict[Path, bytes], data_home: Path) -> None:
    """Write all files and refresh the caches, or put everything back as it was."""
    before: dict[Path, bytes | None] = {}
    try:
        for path, content in contents.items():
            before[path] = read_if_there(path)
            write_atomically(path, content)
        caches.refresh(data_home)
    except (OSError, ExportError) as error:
        for path, old in before.items():
            with suppress(OSError):  # the error that is raised below says more than one from cleaning up
                restore(path, old)
        with suppress(OSError):
            caches.remove_unneeded(data_home)
        if isinstance(error, ExportError):
            raise
        raise _as_export_error("the registration could not be written", error) from error


def _as_export_error(what: str, error: OSError) -> ExportError:
    return ExportError(f"{what} ({error.strerror})", where=error.filename)

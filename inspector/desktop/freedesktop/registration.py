"""The registration of a desktop that follows freedesktop.org: most of those on Linux and the BSDs.

Everything is written under `$XDG_DATA_HOME`, but for one line a file type in the `mimeapps.list` of
`$XDG_CONFIG_HOME`, which makes the program the default for the types that are its own. A package of the
distribution installs the same sources for everyone.
https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from inspector.desktop import PROGRAM
from inspector.desktop.freedesktop import caches, default_apps, entry
from inspector.desktop.freedesktop.files import read_if_there, restore, write_atomically
from inspector.errors import ExportError
from inspector.records import dataclass
from inspector.resources import resource_path

ENTRY_NAME = f"{PROGRAM}.desktop"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreedesktopRegistration:
    """The registration of one user: see `inspector.desktop.registration.Registration`.

    Attributes:
        data_home: Where file types, launcher and icon stand.
        config_home: Where the list of default programs stands.
    """

    data_home: Path
    config_home: Path

    def install(self, command: Sequence[str]) -> list[Path]:
        """Write the file types, the launcher, the icon and the line among the default programs."""
        template = resource_path(f"desktop/{ENTRY_NAME}").read_text(encoding="utf-8")
        mime, launcher, icon = _own_files(self.data_home)
        contents = {
            mime: resource_path(f"desktop/{PROGRAM}.xml").read_bytes(),
            icon: resource_path("icons/app.svg").read_bytes(),
            launcher: os.fsencode(entry.format_entry(template, command)),
            self._defaults: _edit_defaults(self._defaults, entry.read_own_types(template)),
        }
        _write_all(contents, self.data_home)
        return list(contents)

    def remove(self) -> list[Path]:
        """Remove the files, and the program from the list."""
        try:
            changed = [path for path in _own_files(self.data_home) if path.exists()]
            before = read_if_there(self._defaults)
            if before is not None and ENTRY_NAME.encode() in before:
                changed.append(self._defaults)
                restore(self._defaults, _without_us(before))
            for path in _own_files(self.data_home):
                path.unlink(missing_ok=True)
            if changed:
                caches.refresh(self.data_home)
            caches.remove_unneeded(self.data_home)
        except OSError as error:
            raise _as_export_error("the registration could not be removed", error) from error
        return changed

    @property
    def _defaults(self) -> Path:
        return self.config_home / "mimeapps.list"


def for_this_user() -> FreedesktopRegistration:
    """Return the registration of the user who runs this."""
    return FreedesktopRegistration(
        data_home=_base_folder("XDG_DATA_HOME", ".local/share"),
        config_home=_base_folder("XDG_CONFIG_HOME", ".config"),
    )


def _own_files(data_home: Path) -> tuple[Path, Path, Path]:
    """Name the file types, the launcher and the icon."""
    return (
        data_home / "mime" / "packages" / f"{PROGRAM}.xml",
        data_home / "applications" / ENTRY_NAME,
        data_home / "icons" / "hicolor" / "scalable" / "apps" / f"{PROGRAM}.svg",
    )


def _base_folder(variable: str, default: str) -> Path:
    """Follow the base directory specification: a relative path in the variable is to be ignored."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else Path.home() / default


def _edit_defaults(defaults: Path, types: list[str]) -> bytes:
    try:
        before = read_if_there(defaults) or b""
    except OSError as error:
        raise _as_export_error("the list of default programs could not be read", error) from error
    return _encode(default_apps.add_default(_decode(before), ENTRY_NAME, types))


def _without_us(before: bytes) -> bytes | None:
    """Return the list without our lines; None when nothing else is in it, as when there was none at first."""
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

"""The registration of a desktop that follows freedesktop.org: most of those on Linux and the BSDs.

Everything is written under `$XDG_DATA_HOME`, but for the lines of the `mimeapps.list` in `$XDG_CONFIG_HOME`,
which make the program the default for the types that are its own, and offer it for some of others. A package
of the distribution installs the same sources for everyone.
https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from inspector.desktop import PROGRAM, folders
from inspector.desktop.freedesktop import caches, default_apps, entry
from inspector.desktop.freedesktop.caches import read_if_there, restore, write_atomically
from inspector.errors import ExportError
from inspector.records import dataclass
from inspector.resources import resource_path

ENTRY_NAME = f"{PROGRAM}.desktop"
THUMBNAILER_NAME = f"{PROGRAM}.thumbnailer"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreedesktopRegistration:
    """The registration of one user: see `inspector.desktop.registration.Registration`.

    Attributes:
        data_home: Where file types, launcher, icon, thumbnailer and the script of the launcher stand.
    """

    data_home: Path
    config_home: Path

    def install(self, command: Sequence[str]) -> list[Path]:
        """Write the files of the program, and its lines in the list of default programs."""
        template = _template(ENTRY_NAME)
        texts = {
            self._script: entry.format_script(_template("launch.sh"), command),
            self._thumbnailer: entry.format_thumbnailer(_template(THUMBNAILER_NAME), command),
        }
        defaults, kept = self._edit_defaults(entry.read_own_types(template))
        contents = {
            self._types: resource_path(f"desktop/{PROGRAM}.xml").read_bytes(),
            self._icon: resource_path("icons/app.svg").read_bytes(),
            **{path: os.fsencode(text) for path, text in texts.items()},
            self._launcher: os.fsencode(entry.format_entry(template, os.fspath(self._script), kept)),
            self._defaults: defaults,
        }
        _write_all(contents, self.data_home)
        return list(contents)

    def remove(self) -> list[Path]:
        """Remove the files, and the program from the list."""
        try:
            changed = [path for path in self._own_files if path.exists()]
            before = read_if_there(self._defaults)
            after = None if before is None else self._without_us(before)
            if before != after:
                changed.append(self._defaults)
                restore(self._defaults, after)
            for path in (*self._own_files, self._script.with_name("moved.txt")):
                path.unlink(missing_ok=True)
            if changed:
                caches.refresh(self.data_home)
            caches.remove_unneeded(self.data_home)
        except OSError as error:
            raise _as_export_error("the registration could not be removed", error) from error
        return changed

    @property
    def _own_files(self) -> tuple[Path, ...]:
        return (self._types, self._icon, self._script, self._thumbnailer, self._launcher)

    @property
    def _types(self) -> Path:
        return self.data_home / "mime" / "packages" / f"{PROGRAM}.xml"

    @property
    def _icon(self) -> Path:
        return self.data_home / "icons" / "hicolor" / "scalable" / "apps" / f"{PROGRAM}.svg"

    @property
    def _script(self) -> Path:
        return self.data_home / PROGRAM / "launch.sh"

    @property
    def _thumbnailer(self) -> Path:
        return self.data_home / "thumbnailers" / THUMBNAILER_NAME

    @property
    def _launcher(self) -> Path:
        return self.data_home / "applications" / ENTRY_NAME

    @property
    def _defaults(self) -> Path:
        return self.config_home / "mimeapps.list"

    def _kept(self) -> dict[str, str]:
        return default_apps.parse_kept(entry.read_kept(_decode(read_if_there(self._launcher) or b"")))

    def _edit_defaults(self, types: list[str]) -> tuple[bytes, str]:
        try:
            text = _decode(read_if_there(self._defaults) or b"")
            kept = self._kept()
        except OSError as error:
            raise _as_export_error("the list of default programs could not be read", error) from error
        text = default_apps.add_default(text, ENTRY_NAME, types)
        text, added = default_apps.add_last(text, default_apps.plan_offers(ENTRY_NAME))
        return _encode(text), default_apps.format_kept(kept | added)

    def _without_us(self, before: bytes) -> bytes | None:
        after = _encode(default_apps.remove_everywhere(_decode(before), ENTRY_NAME, self._kept()))
        return after if after == before or after.strip() else None


def for_this_user() -> FreedesktopRegistration:
    """Return the registration of the user who runs this."""
    return FreedesktopRegistration(data_home=folders.data_home(), config_home=folders.config_home())


def _template(name: str) -> str:
    return resource_path(f"desktop/{name}").read_text(encoding="utf-8")


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

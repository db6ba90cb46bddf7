"""What the program remembers between runs; `--fresh` starts without it and keeps nothing."""

from __future__ import annotations

import os

from PySide6.QtCore import QByteArray, QSettings

from inspector.gui.theme.theme import MODES, ZOOMS

MOST_RECENT = 10
_BYTES = "bytes:"  # no absolute path begins like this


class Settings:
    """Recent files, the Python of this machine, the window's layout and the theme."""

    def __init__(self, *, fresh: bool = False) -> None:
        self._store = None if fresh else QSettings("checkpoint-inspector", "checkpoint-inspector")

    @property
    def recent(self) -> tuple[str, ...]:
        """Recent files, the latest first.

        Whether they still exist is not checked: one on an unreachable network would block the start.
        """
        return tuple(map(_from_text, self._texts("recent")[:MOST_RECENT]))

    def keep_recent(self, paths: tuple[str, ...]) -> None:
        known = (path for path in self.recent if path not in paths)
        self._keep("recent", [_to_text(path) for path in (*paths, *known)][:MOST_RECENT])

    def drop_recent(self, path: str) -> None:
        self._keep("recent", [_to_text(known) for known in self.recent if known != path])

    @property
    def profiles(self) -> tuple[str, ...]:
        """Machine profiles that were used before, the latest first."""
        return tuple(map(_from_text, self._texts("profiles")))

    def keep_profiles(self, paths: tuple[str, ...]) -> None:
        self._keep("profiles", [_to_text(path) for path in paths])

    def keep_python(self, python: str) -> None:
        """Remember the Python of this machine. The machine itself is not: each start is on this one."""
        self._keep("python", _to_text(python))

    @property
    def python(self) -> str:
        """What names the Python whose torch stands for this machine; an empty str for the one that counts."""
        return _from_text(self._text("python"))

    @property
    def theme(self) -> str:
        """The chosen theme, one of `MODES`."""
        mode = self._text("theme")
        return mode if mode in MODES else "system"

    def keep_theme(self, mode: str) -> None:
        self._keep("theme", mode)

    @property
    def zoom(self) -> int:
        """How large text is, one of `ZOOMS`."""
        return next((zoom for zoom in ZOOMS if str(zoom) == self._text("zoom")), 100)

    def keep_zoom(self, percent: int) -> None:
        self._keep("zoom", str(percent))

    @property
    def is_still(self) -> bool:
        return self._text("motion") == "reduced"

    def keep_still(self, *, still: bool) -> None:
        self._keep("motion", "reduced" if still else "")

    def layout(self, name: str) -> QByteArray | None:
        """Return a part of the window's layout: `window`, `splitter`, `columns`."""
        value = None if self._store is None else self._store.value(f"layout/{name}")
        return value if isinstance(value, QByteArray) else None

    def keep_layout(self, name: str, state: QByteArray) -> None:
        self._keep(f"layout/{name}", state)

    def _text(self, key: str) -> str:
        value = None if self._store is None else self._store.value(key)
        return value if isinstance(value, str) else ""

    def _texts(self, key: str) -> list[str]:
        value = None if self._store is None else self._store.value(key)
        if isinstance(value, str):  # a list of one comes back as its only element
            return [value]
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

    def _keep(self, key: str, value: object) -> None:
        if self._store is not None:
            self._store.setValue(key, value)


def _to_text(path: str) -> str:
    """Encode a path so that the settings keep all of its bytes: Qt drops those that are not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote

        return f"{_BYTES}{quote(os.fsencode(path))}"
    return path


def _from_text(text: str) -> str:
    if not text.startswith(_BYTES):
        return text
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(text.removeprefix(_BYTES)))

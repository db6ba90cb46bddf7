"""The program under Open With, with a name and an icon for its files; what opens them by default stays.

A ProgID for each kind of file, named in the `OpenWithProgids` of its suffixes; the program itself below
`Applications`; and `RegisteredApplications`, so that the settings of Windows offer it among the default apps,
where only the user chooses: https://learn.microsoft.com/en-us/windows/win32/shell/fa-sample-scenarios
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from inspector.desktop.suffixes import KINDS
from inspector.desktop.windows.registry import Registry
from inspector.errors import ExportError
from inspector.records import dataclass

NAME = "Checkpoint Inspector"
_CLASSES = r"Software\Classes"
_APPLICATION = rf"{_CLASSES}\Applications\checkpoint-inspector.exe"
_OWN = r"Software\Checkpoint Inspector"
_REGISTERED = r"Software\RegisteredApplications"
_HIVE = "HKEY_CURRENT_USER"
_COMMENT = "See what is inside a PyTorch checkpoint, and make it load on your machine"
_PLACEHOLDER = re.compile(r"%[*~\dA-Za-z]")


class Value(NamedTuple):
    """A text in the registry; an empty name is the key's own value."""

    key: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsRegistration:
    """The registration of one user: see `inspector.desktop.registration.Registration`."""

    registry: Registry
    tell: Callable[[], object]
    icon: Path

    def install(self, command: Sequence[str]) -> list[Path]:
        """Write the keys; each kind of file gets a name, an icon and a command, no suffix a default."""
        values = list(_values(_format_command(command), f"{self.icon},0"))
        written: list[tuple[Value, str | None]] = []
        try:
            for value in values:
                written.append((value, self.registry.read(value.key, value.name)))
                self.registry.write(*value)
        except OSError as error:
            self._put_back(written)
            raise _as_export_error("the registration could not be written", error) from error
        self.tell()
        return _places(values)

    def remove(self) -> list[Path]:
        """Remove the keys of the program, and its names from the lists of others."""
        try:
            changed = [value for value in _values("", "") if self._has(value)]
            for key in _own_keys():
                self.registry.remove_tree(key)
            for value in changed:
                self.registry.remove(value.key, value.name)
                self.registry.remove_empty(value.key)
        except OSError as error:
            raise _as_export_error("the registration could not be removed", error) from error
        if changed:
            self.tell()
        return _places(changed)

    def _has(self, value: Value) -> bool:
        return self.registry.read(value.key, value.name) is not None

    def _put_back(self, written: list[tuple[Value, str | None]]) -> None:
        """Put back what was there before; the error that is raised says more than one from cleaning up."""
        for value, before in written:
            with suppress(OSError):
                if before is not None:
                    self.registry.write(value.key, value.name, before)
                else:
                    self.registry.remove(value.key, value.name)
                    self.registry.remove_empty(value.key)


def _values(command: str, icon: str) -> Iterator[Value]:
    """Return all that stands in the registry."""
    capabilities = rf"{_OWN}\Capabilities"
    for kind in KINDS:
        program = _program_id(kind.id)
        yield Value(rf"{_CLASSES}\{program}", "", kind.name)
        yield Value(rf"{_CLASSES}\{program}\DefaultIcon", "", icon)
        yield Value(rf"{_CLASSES}\{program}\shell\open\command", "", command)
        for suffix in kind.suffixes:
            yield Value(rf"{_CLASSES}\{suffix}\OpenWithProgids", program, "")
            yield Value(rf"{_APPLICATION}\SupportedTypes", suffix, "")
            if kind.is_own:
                yield Value(rf"{capabilities}\FileAssociations", suffix, program)
    yield Value(_APPLICATION, "FriendlyAppName", NAME)
    yield Value(rf"{_APPLICATION}\DefaultIcon", "", icon)
    yield Value(rf"{_APPLICATION}\shell\open\command", "", command)
    yield Value(capabilities, "ApplicationName", NAME)
    yield Value(capabilities, "ApplicationDescription", _COMMENT)
    yield Value(capabilities, "ApplicationIcon", icon)
    yield Value(_REGISTERED, NAME, capabilities)


def _own_keys() -> list[str]:
    return [*(rf"{_CLASSES}\{_program_id(kind.id)}" for kind in KINDS), _APPLICATION, _OWN]


def _program_id(kind: str) -> str:
    return f"CheckpointInspector.{kind}.1"


def _format_command(command: Sequence[str]) -> str:
    """Write a command line with the place for a file."""
    line = subprocess.list2cmdline(command)
    if _PLACEHOLDER.search(line):
        raise ExportError(
            "Windows would replace the % in the path of the program",
            where=line,
            remedy="install the program in a folder without % in its name",
        )
    return f'{line} "%1"'


def _places(values: list[Value]) -> list[Path]:
    """Return the keys, each once, as the registry's editor shows them."""
    keys = dict.fromkeys(value.key for value in values)
    return [Path(os.fspath(PureWindowsPath(_HIVE, key))) for key in keys]


def _as_export_error(what: str, error: OSError) -> ExportError:
    return ExportError(f"{what} ({error.strerror})", where=error.filename or _HIVE)

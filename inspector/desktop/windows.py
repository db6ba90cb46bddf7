"""The registration with Windows: keys below `HKEY_CURRENT_USER`, so that nobody needs to be an administrator.

Untested on real hardware: the tests play the registry.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from inspector.desktop.suffixes import KINDS
from inspector.errors import ExportError
from inspector.records import dataclass
from inspector.resources import resource_path

# What is asked of the registry, in five functions.
#
# https://learn.microsoft.com/en-us/windows/win32/sysinfo/registry

_OF_WINDOWS = {"Software", r"Software\Classes", r"Software\RegisteredApplications"}


class Registry:
    """The keys of the user who runs this.

    A key is a path with backslashes below `HKEY_CURRENT_USER`. Each function may raise an `OSError`.
    """

    def __init__(self, winreg: Any) -> None:  # noqa: ANN401 - the module has no stubs but on Windows
        self._winreg = winreg

    def read(self, key: str, name: str) -> str | None:
        """Read a text; None when it is not there or no text."""
        registry = self._winreg
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, key) as opened:
                value, kind = registry.QueryValueEx(opened, name)
        except FileNotFoundError:
            return None
        return value if kind == registry.REG_SZ else None

    def write(self, key: str, name: str, text: str) -> None:
        """Write a text, and the key if it is not there."""
        registry = self._winreg
        with registry.CreateKey(registry.HKEY_CURRENT_USER, key) as opened:
            registry.SetValueEx(opened, name, 0, registry.REG_SZ, text)

    def remove(self, key: str, name: str) -> bool:
        """Remove a value; return whether it was there."""
        registry = self._winreg
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, key, 0, registry.KEY_SET_VALUE) as opened:
                registry.DeleteValue(opened, name)
        except FileNotFoundError:
            return False
        return True

    def remove_tree(self, key: str) -> bool:
        """Remove a key with all that is below it; return whether it was there."""
        registry = self._winreg
        try:
            with registry.OpenKey(registry.HKEY_CURRENT_USER, key) as opened:
                below = [registry.EnumKey(opened, index) for index in range(registry.QueryInfoKey(opened)[0])]
        except FileNotFoundError:
            return False
        for name in below:
            self.remove_tree(f"{key}\\{name}")
        registry.DeleteKey(registry.HKEY_CURRENT_USER, key)
        return True

    def remove_empty(self, key: str) -> None:
        """Remove a key and those above it while nothing is in them, but for those that Windows makes."""
        registry = self._winreg
        while key not in _OF_WINDOWS:
            with suppress(FileNotFoundError):
                with registry.OpenKey(registry.HKEY_CURRENT_USER, key) as opened:
                    keys, values, _ = registry.QueryInfoKey(opened)
                if keys or values:
                    return
                registry.DeleteKey(registry.HKEY_CURRENT_USER, key)
            key = key.rpartition("\\")[0]


# The program under Open With, with a name and an icon for its files; what opens them by default stays.
#
# A ProgID for each kind of file, named in the `OpenWithProgids` of its suffixes; the program itself below
# `Applications`; and `RegisteredApplications`, so that the settings of Windows offer it among the default
# apps, where only the user chooses:
# https://learn.microsoft.com/en-us/windows/win32/shell/fa-sample-scenarios

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
    line = subprocess.list2cmdline(command)
    if _PLACEHOLDER.search(line):
        raise ExportError(
            "Windows would replace the % in the path of the program",
            where=line,
            remedy="install the program in a folder without % in its name",
        )
    return f'{line} "%1"'


def _places(values: list[Value]) -> list[Path]:
    keys = dict.fromkeys(value.key for value in values)
    return [Path(os.fspath(PureWindowsPath(_HIVE, key))) for key in keys]


def _as_export_error(what: str, error: OSError) -> ExportError:
    return ExportError(f"{what} ({error.strerror})", where=error.filename or _HIVE)


_ASSOCIATIONS_CHANGED = 0x08000000


def for_this_user() -> WindowsRegistration:
    """Return the registration of the user who runs this."""
    return WindowsRegistration(
        registry=Registry(import_module("winreg")),
        tell=tell_shell,
        icon=resource_path("desktop/checkpoint-inspector.ico"),
    )


def tell_shell() -> None:
    """Notify the shell that associations changed, which it would notice at the next log-in only.

    https://learn.microsoft.com/en-us/windows/win32/api/shlobj_core/nf-shlobj_core-shchangenotify
    """
    libraries: Any = ctypes
    libraries.windll.shell32.SHChangeNotify(_ASSOCIATIONS_CHANGED, 0, None, None)

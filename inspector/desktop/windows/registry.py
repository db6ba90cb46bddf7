"""What is asked of the registry, in five functions.

https://learn.microsoft.com/en-us/windows/win32/sysinfo/registry
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

_OF_WINDOWS = {"Software", r"Software\Classes", r"Software\RegisteredApplications"}


class Registry:
    """The keys of the user who runs this.

    A key is a path with backslashes below `HKEY_CURRENT_USER`. Each function may raise an `OSError`.
    """

    def __init__(self, winreg: Any) -> None:  # noqa: ANN401 - the module has no stubs but on Windows
        """Work with the module of the standard library, which only Windows has."""
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

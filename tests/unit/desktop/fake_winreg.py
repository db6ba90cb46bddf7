"""A registry in memory with the functions of `winreg` that are used, which fails where the real one does."""

from __future__ import annotations

from typing import Self

HKEY_CURRENT_USER = 1
REG_SZ, REG_DWORD = 1, 4
KEY_READ, KEY_SET_VALUE = 0x20019, 0x0002


class Key:
    """One key: names are compared without case, as in the real one."""

    def __init__(self) -> None:
        self.keys: dict[str, Key] = {}
        self.values: dict[str, tuple[object, int]] = {}


class Handle:
    """An open key."""

    def __init__(self, key: Key, access: int) -> None:
        self.key = key
        self.access = access

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeWinreg:
    """The module; `refused` is the number of a write from now that fails."""

    HKEY_CURRENT_USER = HKEY_CURRENT_USER
    REG_SZ = REG_SZ
    KEY_SET_VALUE = KEY_SET_VALUE

    def __init__(self) -> None:
        self.root = Key()
        self.refused = 10_000

    def tree(self) -> dict[str, dict[str, object]]:
        """Return all keys with their values."""
        found: dict[str, dict[str, object]] = {}

        def collect(key: Key, path: str) -> None:
            found[path] = {name: value for name, (value, _) in key.values.items()}
            for name, below in key.keys.items():
                collect(below, f"{path}\\{name}".strip("\\"))

        collect(self.root, "")
        return found

    def _find(self, path: str) -> Key:
        key = self.root
        for name in path.split("\\"):
            if name.lower() not in {known.lower() for known in key.keys}:
                raise FileNotFoundError(2, "The system cannot find the file specified")
            key = next(below for known, below in key.keys.items() if known.lower() == name.lower())
        return key

    def OpenKey(self, hive: int, path: str, reserved: int = 0, access: int = KEY_READ) -> Handle:  # noqa: N802
        assert hive == HKEY_CURRENT_USER
        assert reserved == 0
        return Handle(self._find(path), access)

    def CreateKey(self, hive: int, path: str) -> Handle:  # noqa: N802
        assert hive == HKEY_CURRENT_USER
        key = self.root
        for name in path.split("\\"):
            key = key.keys.setdefault(name, Key())
        return Handle(key, KEY_SET_VALUE)

    def SetValueEx(self, handle: Handle, name: str, reserved: int, kind: int, value: object) -> None:  # noqa: N802
        assert handle.access == KEY_SET_VALUE
        self.refused -= 1
        if self.refused == -1:
            raise PermissionError(13, "Access is denied")
        handle.key.values[name] = (value, kind)

    def QueryValueEx(self, handle: Handle, name: str) -> tuple[object, int]:  # noqa: N802
        if name not in handle.key.values:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        return handle.key.values[name]

    def QueryInfoKey(self, handle: Handle) -> tuple[int, int, int]:  # noqa: N802
        return len(handle.key.keys), len(handle.key.values), 0

    def EnumKey(self, handle: Handle, index: int) -> str:  # noqa: N802
        return list(handle.key.keys)[index]

    def DeleteValue(self, handle: Handle, name: str) -> None:  # noqa: N802
        assert handle.access == KEY_SET_VALUE
        if name not in handle.key.values:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        del handle.key.values[name]

    def DeleteKey(self, hive: int, path: str) -> None:  # noqa: N802
        assert hive == HKEY_CURRENT_USER
        above, _, name = path.rpartition("\\")
        if self._find(path).keys:
            raise PermissionError(13, "Access is denied")
        del self._find(above).keys[name]

"""The registry and the shell of the Windows that this runs on."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

from inspector.desktop.windows.registration import WindowsRegistration
from inspector.desktop.windows.registry import Registry
from inspector.resources import resource_path

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

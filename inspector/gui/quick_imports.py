"""Keeps PySide from reading the source of every module that is imported after it.

After each import, PySide searches the module's source for its own name, to know whether `__feature__` could
matter there. That reads a file a second time, and with 400 modules takes a fifth of the start. Nothing here
uses `__feature__`, so every module may count as one that might.
"""

from __future__ import annotations

import sys

_MODULE, _NAME = "shibokensupport.feature", "_mod_uses_pyside"


def leave_sources_unread() -> bool:
    """Answer PySide's question without reading; return whether this PySide asks it."""
    feature = sys.modules.get(_MODULE)
    if feature is None or not callable(getattr(feature, _NAME, None)):
        return False
    setattr(feature, _NAME, _may_use_it)
    return True


def _may_use_it(_module: object) -> bool:
    return True

"""Imports PySide without the work that it does at each start for things that nothing here asks for.

The wheels of PySide carry the Python half of its signatures as sources in a zip, and compile them whenever
Qt is imported: a third of that import, for type hints in `help()` and the texts of some errors. Here they are
compiled when they are first asked for. And after each import of anything, PySide searches the source of the
module for its own name, to know whether `__feature__` could matter there; nothing here uses `__feature__`, so
the import before that is put back. Where PySide does neither, this does nothing.
"""

from __future__ import annotations

import builtins
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from typing import Any

from inspector.gui.quick.absent import put_off
from inspector.gui.quick.enums import make_enums_quickly
from inspector.gui.quick.waiting import wait_no_longer

_PYSIDE = "PySide6"
_FOLDER = "shibokensupport/"
_SELDOM = (
    "feature",
    "signature/errorhandler",
    "signature/layout",
    "signature/lib/enum_sig",
    "signature/lib/pyi_generator",
    "signature/lib/tool",
    "signature/mapping",
    "signature/parser",
)
_UNUSED = ("tempfile", "textwrap", "traceback", "urllib.parse", "zipfile")
"""What PySide imports, or `pathlib` for it, and hardly uses."""
_LATER = """
from inspector.gui.quick.imports import fill_in as __fill_in
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return __fill_in(globals(), name)
"""
_AT_ONCE = {
    # PySide calls these whatever is imported,
    "feature": """
def feature_import(*_given):
    pass
def feature_imported(_module):
    pass
""",
    # and holds this one, to call it before it words an error.
    "signature/mapping": """
def update_mapping():
    __fill_in(globals(), "update_mapping")()
""",
}
"""What is there of a module before it is compiled."""
_STAND_INS = ("__", "feature_", "update_mapping")
_YOUNG = 10_000
"""So many new objects take the garbage collector a millisecond; it would look at them every 700."""
_AT_START = 20 * _YOUNG
"""More than a window makes until it is there, none of which is garbage."""
_LOCK = RLock()
_compile = builtins.compile
_sources: dict[str, Any] = {}


def import_pyside() -> bool:
    """Import PySide's core quickly; return whether it was not there before, so that there was a choice."""
    is_first = _PYSIDE not in sys.modules
    if is_first:
        gc.set_threshold(_AT_START, 10, 10)
        make_enums_quickly()
        builtins.compile = _compile_later  # type: ignore[assignment]  # takes what PySide gives
        try:
            with put_off(_UNUSED), _bound_late():
                import_module(f"{_PYSIDE}.QtWidgets")
                _ = sys.modules[f"{_PYSIDE}.QtCore"].Qt  # which imports `textwrap`, for a warning
        finally:
            builtins.compile = _compile
    leave_sources_unread()
    return is_first


@contextmanager
def _bound_late() -> Iterator[None]:
    """Have functions in C looked up when they are first called: PySide's modules refer to 13,000."""
    if not hasattr(sys, "setdlopenflags"):
        yield
        return
    usual = sys.getdlopenflags()
    sys.setdlopenflags(usual & ~os.RTLD_NOW | os.RTLD_LAZY)
    try:
        yield
    finally:
        sys.setdlopenflags(usual)


def collect_as_usual() -> None:
    """Let the garbage collector run as often as it is to while the window is used."""
    gc.set_threshold(_YOUNG, 10, 10)


def leave_sources_unread() -> bool:
    """Put the import back that was there before; return whether PySide had replaced it."""
    replaced = builtins.__dict__.get("__feature_import__")
    own = builtins.__dict__.get("__orig_import__")
    if own is None or builtins.__import__ is not replaced:
        return False
    builtins.__import__ = own
    return True


def fill_in(module: dict[str, Any], name: str) -> object:
    """Run the source of a module that was left for later, and return what was asked of it.

    Raises:
        AttributeError: The module has no such name.
    """
    with _LOCK:
        file = f"{module['__name__'].replace('.', '/')}.py"
        source = _sources.pop(file, None)
        if source is not None:
            wait_no_longer()
            leave_sources_unread()  # or PySide would ask the unfinished module about its own imports
            given = {key: value for key, value in module.items() if not key.startswith(_STAND_INS)}
            module.pop("__getattr__", None)
            exec(_compile(source, file, "exec"), module)  # noqa: S102 - PySide's own, as it would run it
            module.update(given)  # what PySide has set meanwhile
    try:
        return module[name]
    except KeyError:
        raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}") from None


def _compile_later(source: Any, file: Any, mode: Any, *rest: Any, **named: Any) -> Any:  # noqa: ANN401 - as `compile`
    """Compile a source as `compile` does; one that is seldom needed becomes a module that waits."""
    if isinstance(file, str) and file.startswith(_FOLDER) and file[len(_FOLDER) : -3] in _SELDOM:
        _sources[file] = source
        source = _LATER + _AT_ONCE.get(file[len(_FOLDER) : -3], "")
    return _compile(source, file, mode, *rest, **named)

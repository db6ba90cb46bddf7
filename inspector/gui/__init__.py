"""The window. PySide is imported here, before any module that uses it."""

from inspector.gui.quick.imports import import_pyside

import_pyside()

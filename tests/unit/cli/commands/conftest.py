from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def camera(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Stands in for the window: remembers what was asked of it, and fails as it is told to."""
    asked: dict[str, object] = {"error": None}

    def screenshot(path: str, out: str, **options: object) -> None:
        asked.update(options, path=path)
        Path(out).write_bytes(b"half")
        if isinstance(asked["error"], Exception):
            raise asked["error"]
        Path(out).write_bytes(b"picture")

    app = ModuleType("inspector.gui.app")
    app.screenshot = screenshot
    app.main = lambda files, **options: asked.update(options, files=files) or 0
    monkeypatch.setitem(sys.modules, "inspector.gui.app", app)
    return asked

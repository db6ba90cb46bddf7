from __future__ import annotations

import ctypes
import importlib.util
import socket
import sys
from types import SimpleNamespace

import pytest

from inspector.cli import screen
from inspector.cli.screen import require_display
from inspector.errors import PlanError


class Libraries:
    """Stands in for `ctypes.CDLL`: an X library, and Qt's plugin."""

    def __init__(self, *, x: bool = True, missing: str = "") -> None:
        self.x = x
        self.missing = missing
        self.loaded: list[str] = []

    def __call__(self, name: str) -> SimpleNamespace:
        if self.missing and self.missing in name:
            raise OSError(f"{self.missing}: cannot open shared object file")
        self.loaded.append(name.rpartition("/")[2])

        def connect(_name: object, _screen: object) -> int:
            return 1

        def has_error(_connection: object) -> int:
            return 0 if self.x else 1

        return SimpleNamespace(
            xcb_connect=connect, xcb_connection_has_error=has_error, xcb_disconnect=lambda _connection: None
        )


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Libraries:
    loader = Libraries()
    monkeypatch.setattr(ctypes, "CDLL", loader)
    return loader


def test_without_a_screen_there_is_no_window() -> None:
    with pytest.raises(PlanError, match=r"there is no screen .* \(name a file: checkpoint-inspector show\)"):
        require_display()
    with pytest.raises(PlanError, match=r"\(use: checkpoint-inspector show a.pth 'b c.pth'\)"):
        require_display(["a.pth", "b c.pth"])


def test_whoever_names_a_platform_knows_best(monkeypatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    require_display()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_always_have_a_screen(monkeypatch, platform) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    require_display()


def test_an_x_server_that_answers_is_a_screen(monkeypatch, libraries) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    require_display()
    assert libraries.loaded == ["libxcb.so.1", "libqxcb.so"]


def test_an_x_server_that_does_not_answer_is_none(monkeypatch, libraries) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    libraries.x = False
    with pytest.raises(PlanError, match="there is no screen"):
        require_display()


@pytest.mark.parametrize("missing", ["libxcb.so.1", "libqxcb.so"])
def test_a_missing_library_is_named_with_its_packages(monkeypatch, libraries, missing) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    libraries.missing = missing
    with pytest.raises(PlanError, match=rf"{missing}: cannot open ") as caught:
        require_display()
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith("on Debian: apt install lib")
    assert {"libglib2.0-0", "libxcb-cursor0", "libxcb-shape0"} <= set(caught.value.remedy.split())


@pytest.mark.parametrize("found", [None, SimpleNamespace(submodule_search_locations=["/nowhere"])])
def test_without_the_plugin_qt_shall_speak_for_itself(monkeypatch, libraries, found) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    require_display()
    assert libraries.loaded == ["libxcb.so.1"]


def test_a_wayland_compositor_that_listens_is_a_screen(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-0"))
        server.listen()
        require_display()


@pytest.mark.parametrize("path", ["wayland-0", "/" + "x" * 200])
def test_a_wayland_compositor_that_is_gone_is_none(monkeypatch, tmp_path, path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("WAYLAND_DISPLAY", path)
    with pytest.raises(PlanError, match="there is no screen"):
        require_display()


def test_a_display_that_nobody_serves_is_none(monkeypatch) -> None:
    monkeypatch.setenv("DISPLAY", "127.0.0.1:59")
    with pytest.raises(PlanError, match="there is no screen"):
        screen.require_display()

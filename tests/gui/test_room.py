"""How much of the window the contents get, and that nothing of it is cut off or jumps."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QApplication

from inspector.gui import main_window
from inspector.gui.pages.registry import PAGES
from inspector.gui.placing import LEAST
from inspector.gui.toolbar import ActionButton
from inspector.gui.workspace.banner import MAP_HEIGHT
from inspector.records import replace
from inspector.session.screen import BranchRow, Choice
from tests.gui import fakes
from tests.gui.clipping import clipped

READY = fakes.ready_screen()
RULES = tuple(BranchRow(pattern=f"m{i}/**", label=f"m{i}/**", to="cpu") for i in range(3))
MANY = tuple(replace(READY.device_map[0], device=f"cuda:{index}", to="cpu") for index in range(16))
LONG = replace(
    READY.banner,
    verdict="torch.load stops on a machine with 8 NVIDIA H100 80GB HBM3 GPUs of 80 GB each and more. " * 2,
    aside="RuntimeError: " + "a long message " * 20,
    headline="Saved on cuda:0. " * 20,
    error_text="RuntimeError: " + "a long message " * 200,
)
GREEN = replace(READY.banner, tone="good", error_text=None, advice="", aside="Saved on the CPU (8 KB).")
SCREENS = {
    "ready": READY,
    "five devices": replace(READY, device_map=MANY[:5]),
    "sixteen devices": replace(READY, device_map=MANY, branches=RULES),
    "a long verdict": replace(READY, banner=LONG),
    "a good file": replace(READY, banner=GREEN),
    "a device is wanted": replace(
        READY, devices=(Choice(id="cuda:1", label="cuda:1 NVIDIA H100"),), wanted="cuda:1"
    ),
    "no map": replace(READY, device_map=(), no_map="DeepSpeed shards hold no devices: " + "words " * 40),
}


def settle() -> None:
    for _ in range(4):
        QApplication.processEvents()


def content_of(window) -> QRect:
    """Return the part of the window that its tree and its pages cover."""
    space = window.workspace
    parts = [QRect(part.mapTo(window, QPoint(0, 0)), part.size()) for part in (space.tree, space.pages)]
    return parts[0].united(parts[1])


@pytest.mark.parametrize("size", [(1280, 800), (1366, 768), (1280, 740), (1920, 1080)])
def test_the_contents_get_seventy_percent_of_the_height(window, size):
    window.resize(*size)
    for name, screen in SCREENS.items():
        window.show_screen(screen)
        settle()
        picture = window.grab().toImage()
        colors = window._theme.tokens.colors
        inks = {colors["surface"], colors["hover"], colors["selection"]}  # the pointer may be over a row
        column = content_of(window).left() + 12
        rows = sum(picture.pixelColor(column, y).name() in inks for y in range(window.workspace.y(), size[1]))
        share = content_of(window).height() / size[1]
        assert share >= 0.7, f"{name}: {share:.1%}"
        assert rows >= 0.66 * size[1], f"{name}: {rows} rows of pixels"  # less rounded corners and letters


def test_the_tree_stands_still_whatever_is_said_above_it(window):
    window.resize(1280, 800)
    places = set()
    for screen in (screen for screen in SCREENS.values() if screen.device_map):
        window.show_screen(screen)
        window.workspace.changed._words.setText("The file has changed on disk since it was read.")
        window.workspace.changed.setVisible(len(places) == 1)
        settle()
        places.add(content_of(window).getRect())
    assert len(places) == 1, places
    ((_, top, _, height),) = places
    window.show_screen(SCREENS["no map"])
    settle()
    assert content_of(window).getRect()[1::2] == (top - MAP_HEIGHT - 8, height + MAP_HEIGHT + 8)


@pytest.mark.wide
def test_at_its_least_size_nothing_is_cut_off(window):
    window.resize(LEAST)
    found = []
    for name, screen in SCREENS.items():
        window.show_screen(screen)
        settle()
        found += [f"{name}: {line}" for line in clipped(window)]
    for page in PAGES:
        window.show_page(page.id, at_once=True)
        settle()
        found += [f"{page.id}: {line}" for line in clipped(window)]
    assert found == []


@pytest.mark.wide
def test_the_other_phases_are_not_cut_off_either(make_window):
    window = make_window(fakes.empty_screen(("/home/ada/runs/best.pth",) * 10))
    window.resize(LEAST)
    found = []
    for screen in (window.shown, fakes.failed_screen(), replace(fakes.empty_screen(), phase="opening")):
        window.show_screen(screen)
        settle()
        found += [f"{screen.phase}: {line}" for line in clipped(window)]
    assert found == []


def test_the_menus_and_the_tools_stand_in_one_line(window):
    window.resize(1280, 800)
    bar = window.top_bar
    assert bar.height() == 40
    assert window.menuBar().parent() is bar
    assert [action.text() for action in window.menuBar().actions()] == ["&File", "&Edit", "&View", "&Help"]
    assert bar.mapTo(window, QPoint(0, 0)) == QPoint(0, 0)
    lines = {
        part.geometry().center().y()
        for part in bar.children()
        if hasattr(part, "isVisible") and part.isVisible()
    }
    assert max(lines) - min(lines) <= 2


def test_without_a_file_the_tools_stay_beside_the_menus(make_window):
    window = make_window(fakes.empty_screen())
    window.resize(1280, 800)
    settle()
    assert max(button.geometry().right() for button in window.top_bar.findChildren(ActionButton)) < 400


def test_a_window_is_made_for_its_screen(make_window, monkeypatch):
    window = make_window()
    area = window.screen().availableGeometry()
    assert area.size().expandedTo(window.size()) == area.size()
    wished = QSize(area.width(), area.height() - 9)
    monkeypatch.setattr(main_window, "first_size", lambda _: wished)
    assert make_window().size() == wished

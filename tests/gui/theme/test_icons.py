from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtGui import QAction, QColor
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from inspector.gui.theme import icons
from inspector.gui.theme.icons import app_icon, draw_svg, retint, set_icon
from inspector.gui.theme.theme import build_sheet, read_tokens
from inspector.resources import resource_path

FILES = sorted(resource_path("icons").glob("*.svg"))
INK = QColor("#123456")


def test_every_icon_is_used() -> None:
    gui = Path(icons.__file__).parents[1]
    used = "".join(path.read_text(encoding="utf-8") for path in gui.rglob("*.py"))
    used += "".join(build_sheet(read_tokens(mode), 10.0) for mode in ("light", "dark"))
    tones = {f"tone-{tone}" for tone in ("good", "bad", "warning", "neutral")}
    names = {path.stem for path in FILES} - {"app", *tones}
    assert {name for name in names if f'"{name}"' not in used and f"/{name}.svg" not in used} == set()


def strong_colors(image) -> list[QColor]:
    places = ((x, y) for x in range(image.width()) for y in range(image.height()))
    return [color for place in places if (color := image.pixelColor(*place)).alpha() > 150]


def is_close(one: QColor, other: QColor) -> bool:
    return all(abs(a - b) <= 3 for a, b in zip(one.getRgb()[:3], other.getRgb()[:3], strict=True))


def has_ink(thing, color: QColor) -> bool:
    inked = strong_colors(thing.icon().pixmap(18, 18).toImage())
    return bool(inked) and all(is_close(each, color) for each in inked)


@pytest.mark.wide
@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_every_icon_draws_something_at_every_scale(qapp, ratio):
    for path in FILES:
        pixmap = draw_svg(path.stem, INK, 24, ratio)
        image = pixmap.toImage()
        assert (image.width(), pixmap.deviceIndependentSize().width()) == (24 * ratio, 24), path
        inked = strong_colors(image)
        assert inked, path
        if path.stem != "app" and not path.stem.startswith("sheet-"):
            assert all(is_close(color, INK) for color in inked), path


def test_icons_are_plain_drawings():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<(script|image|text|use|style|foreignObject)\b|href|clip-path|filter", text), (
            path
        )
        assert text.endswith("</svg>\n"), path


def test_the_programs_icon_exists(qapp):
    assert not app_icon().isNull()


def test_icons_change_their_ink_with_the_theme(qtbot):
    root = QWidget()
    qtbot.addWidget(root)
    button, action, bare = QPushButton("Go", root), QAction("Go", root), QToolButton(root)
    light, dark = read_tokens("light"), read_tokens("dark")
    set_icon(button, "open", light, "text")
    set_icon(action, "open", light)
    assert has_ink(button, light.color("text"))
    retint(root, dark)
    assert has_ink(button, dark.color("text"))
    assert has_ink(action, dark.color("muted"))
    assert bare.icon().isNull()

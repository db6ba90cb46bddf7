from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPalette

from inspector.gui.theme.theme import (
    MODES,
    build_palette,
    build_sheet,
    interface_font,
    mono_font,
    read_tokens,
)
from inspector.resources import resource_path

THEMES = MODES[1:]
GUI = Path(__file__).parents[3] / "inspector" / "gui"
# What color vision without one kind of cones makes of linear RGB (Machado, Oliveira and Fernandes, 2009).
VISIONS = {
    "all cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


def linear(color: QColor) -> list[float]:
    parts = [value / 255 for value in (color.red(), color.green(), color.blue())]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def seen_lab(color: QColor, vision: str) -> tuple[float, float, float]:
    """Return a color as somebody sees it, in CIE Lab, where distances are visible differences."""
    red, green, blue = (
        max(0.0, sum(weight * part for weight, part in zip(row, linear(color), strict=True)))
        for row in VISIONS[vision]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("name", THEMES)
def test_devices_differ_for_every_color_vision(name):
    tokens = read_tokens(name)
    colors = [tokens.device(index) for index in range(-1, len(tokens.devices))]
    for vision, (one, other) in itertools.product(VISIONS, itertools.combinations(colors, 2)):
        distance = math.dist(seen_lab(one, vision), seen_lab(other, vision))
        assert distance > 11, (vision, one.name(), other.name())


def test_all_themes_name_the_same_colors():
    themes = [read_tokens(name) for name in THEMES]
    for tokens in themes[1:]:
        assert tokens.colors.keys() == themes[0].colors.keys(), tokens.name
        assert len(tokens.devices) == len(set(tokens.devices)) == len(themes[0].devices), tokens.name
    assert [tokens.dark for tokens in themes] == [False, True, False, True]


def test_every_color_is_used_somewhere():
    sheet = resource_path("themes/window.qss").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in GUI.rglob("*.py"))
    computed = re.compile(r"code_\w+|(good|bad|warning|neutral)(_fill)?")  # f"{tone}_fill" and the like
    for token in read_tokens("light").colors:
        assert f"@{token};" in sheet or f'"{token}"' in sources or computed.fullmatch(token), token


@pytest.mark.parametrize("name", THEMES)
def test_the_sheet_is_filled_completely(name):
    sheet = build_sheet(read_tokens(name), 10)
    assert "@" not in sheet
    for path in re.findall(r'url\("([^"]+)"\)', sheet):
        assert path.endswith(".svg")
        assert resource_path(f"icons/{path.rsplit('/', 1)[1]}").is_file()


def test_the_palette_follows_the_tokens():
    tokens = read_tokens("dark")
    palette = build_palette(tokens)
    assert palette.color(QPalette.ColorRole.Window) == tokens.color("window")
    disabled = palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
    assert disabled == tokens.color("disabled")


def test_colors_begin_again_after_the_last_a_shade_off():
    tokens = read_tokens("light")
    count = len(tokens.devices)
    assert tokens.device(0) != tokens.device(count) != tokens.device(2 * count)
    assert tokens.device(-1) == QColor(tokens.cpu)
    assert tokens.shade(-1) == QColor(tokens.cpu)
    assert tokens.shade(len(tokens.shades)) == tokens.shade(0)
    assert read_tokens("dark").device(count).lightness() > read_tokens("dark").device(0).lightness()


def test_a_chosen_mode_changes_palette_and_sheet(qapp, qtbot, theme):
    assert theme.tokens.name == "light"
    sheet = qapp.styleSheet()
    with qtbot.waitSignal(theme.changed):
        theme.set_mode("dark")
    assert qapp.palette().window().color() == theme.tokens.color("window")
    assert qapp.styleSheet() != sheet
    with qtbot.assertNotEmitted(theme.changed):
        theme.set_mode("dark")


HIGH = Qt.ContrastPreference.HighContrast


@pytest.mark.parametrize(
    ("scheme", "system_dark", "contrast", "expected"),
    [
        (Qt.ColorScheme.Dark, False, None, "dark"),
        (Qt.ColorScheme.Light, True, None, "light"),
        (Qt.ColorScheme.Unknown, True, None, "dark"),
        (Qt.ColorScheme.Unknown, False, Qt.ContrastPreference.NoPreference, "light"),
        (Qt.ColorScheme.Light, True, HIGH, "contrast-light"),
        (Qt.ColorScheme.Unknown, True, HIGH, "contrast-dark"),
    ],
)
def test_the_system_is_asked_and_its_palette_where_it_has_no_answer(
    theme, monkeypatch, scheme, system_dark, contrast, expected
):
    class Hints:
        def colorScheme(self) -> Qt.ColorScheme:  # noqa: N802 - Qt's own name
            return scheme

    class Asked(Hints):
        def accessibility(self) -> Asked:
            return self

        def contrastPreference(self) -> Qt.ContrastPreference:  # noqa: N802 - Qt's own name
            return contrast

    hints = Hints if contrast is None else Asked  # before 6.10, Qt does not ask
    monkeypatch.setattr("inspector.gui.theme.theme.QGuiApplication.styleHints", hints)
    monkeypatch.setattr(theme, "_system_palette_dark", system_dark)
    theme.set_mode("system")
    assert theme.tokens.name == expected


def test_the_desktops_font_is_kept(qapp):
    font = QFont("Cantarell", 11)
    assert interface_font(font) == font


def test_without_a_desktop_a_better_font_is_looked_for(qapp):
    assert interface_font(QFont("Sans Serif", 8)).pointSizeF() == 9.5


def test_code_has_a_font_of_equal_widths(qapp):
    assert mono_font(12).styleHint() == QFont.StyleHint.Monospace

"""Pictures of the real window, for people to look at: `screenshots/`, which git ignores."""

from __future__ import annotations

import pytest

from tests.end2end.conftest import ROOT

PICTURES = ROOT / "screenshots"
BRIGHTNESS = {"light": (0.75, 1.0), "dark": (0.0, 0.35)}


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_window_in_both_themes_and_two_sizes(screen, program, checkpoint, theme, size):
    program.choose_theme(theme)
    for name, paths in (("empty", []), ("checkpoint", [checkpoint])):
        window = program.open(*paths)
        screen.put(window, 0, 0, *size)
        file = PICTURES / f"{name}-{theme}-{size[0]}x{size[1]}.png"
        width, height, brightness = screen.still_picture(file, window)
        assert (width, height) == size
        low, high = BRIGHTNESS[theme]
        assert low <= brightness <= high
        screen.close(window)

"""Pictures of the real window, for people to look at: `screenshots/`, which git ignores."""

from __future__ import annotations

import time

import pytest

from tests.end2end.conftest import ROOT

PICTURES = ROOT / "screenshots"
STARTED_S = 1.0  # what the program takes from its window to the start of its helpers
BRIGHTNESS = {"light": (0.75, 1.0), "dark": (0.0, 0.35)}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_window_in_both_themes_and_two_sizes(screen, program, checkpoint, theme):
    program.choose_theme(theme)
    low, high = BRIGHTNESS[theme]
    for name, paths in (("empty", []), ("checkpoint", [checkpoint])):
        window = program.open(*paths)
        time.sleep(STARTED_S)
        screen.wait_for_helpers(window)
        for width, height in ((1280, 800), (1920, 1080)):
            screen.put(window, 0, 0, width, height)
            file = PICTURES / f"{name}-{theme}-{width}x{height}.png"
            *size, brightness = screen.picture_at_rest(file, window)
            assert size == [width, height]
            assert low <= brightness <= high
        screen.close(window)

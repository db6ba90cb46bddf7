"""Pictures of the real window, for people to look at: `screenshots/`, which git ignores."""

from __future__ import annotations

import time

import pytest

from tests.end2end.conftest import ROOT
from tests.end2end.screen import wait_until

PICTURES = ROOT / "screenshots"
BRIGHTNESS = {"light": (0.75, 1.0), "dark": (0.0, 0.35)}
PAINTED_S = 0.4


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_window_in_both_themes_and_two_sizes(screen, program, checkpoint, theme, size):
    program.choose_theme(theme)
    for name, paths in (("empty", []), ("checkpoint", [checkpoint])):
        window = program.open(*paths)
        screen.put(window, 0, 0, *size)
        time.sleep(PAINTED_S)
        file = screen.screenshot(PICTURES / f"{name}-{theme}-{size[0]}x{size[1]}.png", window)
        told = screen.run("convert", str(file), "-format", "%w %h %[fx:mean]", "info:").split()
        assert (int(told[0]), int(told[1])) == size
        low, high = BRIGHTNESS[theme]
        assert low <= float(told[2]) <= high, file
        screen.close(window)
        wait_until(lambda: not screen.windows(".*Checkpoint Inspector"), "the window to close")

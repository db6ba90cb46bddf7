"""pcmanfm and Thunar, which open and drag files like those that users have, on a bare X screen."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.end2end.screen import Place, RealScreen, wait_until

_EMPTY_SPOT_FROM_RIGHT, _EMPTY_SPOT_FROM_BOTTOM = 60, 80
_ICON_WIDTH = 70
_SMALLEST_ICON_AREA = 150


class FileManager:
    """One pcmanfm window on a folder.

    Attributes:
        command: What starts it.
        title: What its window is called, with the folder's name.
        margins: Where it draws its icons: right of the side pane, below the address, above the status line.
    """

    command: tuple[str, ...] = ("pcmanfm", "--no-desktop")
    title = "{}"
    margins = (158, 68, 7, 42)

    def __init__(self, screen: RealScreen, folder: Path) -> None:
        self._screen = screen
        self._process = screen.start(self.command[0], *self.command, folder)
        self.window = screen.wait_window(self.title.format(folder.name), timeout_s=60)

    def close(self) -> None:
        self._screen.stop(self._process)

    def first_icon(self) -> tuple[int, int]:
        """Find the middle of the first icon, which a busy machine may bring late."""
        return min(wait_until(self._icons, "an icon in the file manager"), key=sum)

    def _icons(self) -> list[tuple[int, int]]:
        """Find the middles of the icons: selecting all and nothing changes the items only."""
        screen, place = self._screen, self._screen.place(self.window)
        left, top, right, bottom = self.margins
        x, y = place.x + left, place.y + top
        area = f"{place.width - left - right}x{place.height - top - bottom}+{x}+{y}"
        screen.activate(self.window)
        selected, plain = screen.folder / "selected.png", screen.folder / "plain.png"
        screen.press("ctrl+a")
        time.sleep(0.3)
        screen.screenshot(selected, "root", "-crop", area, "+repage")
        self._select_nothing(place)
        screen.screenshot(plain, "root", "-crop", area, "+repage")
        return [(x + across, y + down) for across, down in self._changes(selected, plain)]

    def _select_nothing(self, place: Place) -> None:
        spot = (
            place.x + place.width - _EMPTY_SPOT_FROM_RIGHT,
            place.y + place.height - _EMPTY_SPOT_FROM_BOTTOM,
        )
        self._screen.do("mousemove", *spot, "click", "1")
        time.sleep(0.6)  # the next click must not count as the second of a double-click

    def _changes(self, one: Path, other: Path) -> list[tuple[int, int]]:
        """Find the middles of the parts in which two pictures differ."""
        said = self._screen.run(
            *("convert", one, other, "-compose", "difference", "-composite", "-colorspace", "gray"),
            *("-threshold", "4%", "-morphology", "close", "disk:1"),
            *("-define", "connected-components:verbose=true"),
            *("-define", f"connected-components:area-threshold={_SMALLEST_ICON_AREA}"),
            *("-connected-components", "8", "null:"),
        )
        parts = re.findall(r"(\d+)x(\d+)\+(\d+)\+(\d+) .*(?:gray\(255\)|white|srgb\(255)", said)
        # Neighbors whose names touch are one part, and begin where the first of them does.
        return [
            (int(x) + min(int(w), _ICON_WIDTH) // 2, int(y) + min(int(h), _ICON_WIDTH) // 2)
            for w, h, x, y in parts
        ]


class Thunar(FileManager):
    """One window of the file manager of Xfce; it says above the icons when root uses it."""

    command = ("thunar",)
    title = "{} - Thunar"
    margins = (176, 124, 10, 40)

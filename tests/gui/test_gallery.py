from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage

from inspector.gui.pages.registry import PAGES
from tests.gallery.taking import Gallery, _palette


def test_every_page_has_its_picture(qapp, tmp_path):
    gallery = Gallery({}, tmp_path, "light", (1280, 800))
    names = [name for name, _ in gallery._scenes()]
    assert len(names) == len(set(names))
    assert {f"page-{page.id}" for page in PAGES} < set(names)


def test_a_rare_color_is_kept_before_the_grays_of_letters():
    image = QImage(64, 64, QImage.Format.Format_RGB32)
    for y in range(64):
        for x in range(64):
            image.setPixelColor(x, y, QColor(200 + (x + y) % 50, 200 + (x + y) % 50, 200 + (x + y) % 50))
    image.setPixelColor(3, 3, QColor("#1f77c9"))
    assert QColor("#1f77c9").rgb() in _palette(image)
    assert len(_palette(image)) < 20


@pytest.mark.wide
def test_a_picture_is_small_and_has_the_size_of_the_window(qapp, qtbot, tmp_path):
    gallery = Gallery({}, tmp_path, "dark", (1280, 800))
    gallery.take_all(frozenset({"demo"}))
    image = QImage(str(tmp_path / "demo.png"))
    assert (image.width(), image.height(), gallery.taken) == (1280, 800, ["demo"])
    assert (tmp_path / "demo.png").stat().st_size < 120_000

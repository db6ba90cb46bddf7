from __future__ import annotations

from itertools import product

import pytest
from PySide6.QtGui import QColor

from inspector.gui.theme.theme import contrast, ink_on, mixed, read_tokens


def test_text_is_read_on_every_color() -> None:
    steps = range(0, 256, 17)
    worst = min(
        contrast(ink_on(color), color) for color in (QColor(*rgb) for rgb in product(steps, steps, steps))
    )
    assert worst >= 4.5


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_is_read_on_every_color_of_a_chart(name) -> None:
    tokens = read_tokens(name)
    colors = [tokens.device(index) for index in range(-1, 32)] + [
        tokens.shade(index) for index in range(-1, 7)
    ]
    ground = tokens.color("surface")
    for color in [*colors, *(mixed(color, ground, 0.8) for color in colors)]:
        assert contrast(ink_on(color), color) >= 4.5, color.name()


def test_colors_mix() -> None:
    assert mixed(QColor("#ff0000"), QColor("#0000ff"), 0.25).name() == "#bf0040"
    assert contrast(QColor("#ffffff"), QColor("#000000")) == pytest.approx(21)

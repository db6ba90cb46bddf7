from __future__ import annotations

import json
from itertools import product

from inspector.cli.terminal.paint import luminance, nearest_256, paint_for
from inspector.resources import resource_path
from tests.unit.cli.terminal.looks import PLAIN, paint
from tests.unit.report.rows import is_harmless

EVIL = "a\x1b]0;owned\x07\x9b2J\u202eb\nc\x1b[31m\r\ud800"


def test_nothing_that_a_terminal_obeys_passes() -> None:
    for depth, is_unicode in product(("none", "16", "256", "true"), (True, False)):
        colors = paint(depth=depth, is_unicode=is_unicode)
        assert is_harmless(colors.text(EVIL))
        assert is_harmless(colors.exactly(EVIL))
        shown = colors.style(EVIL, "bad")
        assert is_harmless(shown.removeprefix("\x1b[1;31m").removesuffix("\x1b[0m"))


def test_a_terminal_without_colors_gets_none() -> None:
    assert PLAIN.style("a", "bad") == "a"
    assert PLAIN.dot(0) == "●"
    assert paint().style("a", "no such style") == "a"
    assert paint().style("", "bad") == ""


def test_devices_have_the_colors_of_the_window() -> None:
    for name in ("light", "dark"):
        theme = json.loads(resource_path(f"themes/{name}.json").read_text())
        for place, color in ((-1, theme["cpu"]), *enumerate(theme["devices"])):
            rgb = tuple(bytes.fromhex(color[1:]))
            dot = paint(depth="true", ground=name).dot(place)
            assert dot.startswith(f"\x1b[38;2;{rgb[0]};{rgb[1]};{rgb[2]}m")
            assert paint(depth="256", ground=name).dot(place).startswith(f"\x1b[38;5;{nearest_256(rgb)}m")


def test_a_ninth_device_has_another_shade_of_the_first_color() -> None:
    for ground, depth in product(("light", "dark", "unknown"), ("true", "256")):
        dots = [paint(depth=depth, ground=ground).dot(place) for place in range(16)]
        assert len(set(dots)) == 16, (ground, depth)
    assert paint().dot(0) == paint().dot(8) != paint().dot(1)


def test_the_cpu_is_told_by_its_sign_as_well() -> None:
    assert PLAIN.dot(-1) != PLAIN.dot(0)
    assert paint(depth="none", is_unicode=False).dot(-1) != paint(depth="none", is_unicode=False).dot(0)


def test_colors_show_on_any_background_that_nobody_knows() -> None:
    theme = paint_for(paint(ground="unknown").look).theme
    for color in theme.devices:
        light = luminance(tuple(bytes.fromhex(color[1:])))
        assert min(1.05 / (light + 0.05), (light + 0.05) / 0.05) > 1.5


def test_the_nearest_of_256_colors() -> None:
    assert [nearest_256(rgb) for rgb in ((0, 0, 0), (255, 255, 255), (128, 128, 128), (95, 135, 255))] == [
        16,
        231,
        244,
        69,
    ]


def test_ascii_stands_for_signs_and_leaves_lines_to_be_pasted_alone() -> None:
    ascii_only = paint(depth="none", is_unicode=False)
    assert ascii_only.text("3 × 4 … → 名") == "3 x 4 ~ > \\u540d"
    assert ascii_only.exactly("a×b") == "a\\xd7b"
    assert PLAIN.exactly("a×b") == "a×b"
    assert ascii_only.sign("good").isascii()

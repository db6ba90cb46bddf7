from __future__ import annotations

import json
import re

import pytest

from inspector.library.notebook import SCOPE, mark, style
from inspector.report.colors import NEUTRAL
from inspector.resources import resource_path


def test_every_rule_is_about_the_page_alone() -> None:
    text = style()
    assert text.count("{") == text.count("}")
    for selector in re.findall(r"([^{}]+)\{", text):
        if not selector.strip().startswith("@media"):
            assert all(SCOPE in one for one in selector.split(",")), selector
    assert not re.search(r"url\(|@import|expression|</", text)


def test_both_palettes_are_those_of_the_window() -> None:
    text = style()
    for theme in ("light", "dark"):
        data = json.loads(resource_path(f"themes/{theme}.json").read_text(encoding="utf-8"))
        assert f"--cpu:{data['cpu']};" in text
        for number, color in enumerate(data["devices"]):
            assert f"--d{number}:{color}" in text
    assert 'data-jp-theme-light="false"' in text
    assert "prefers-color-scheme:dark" in text


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("theme", "paper"), [("light", "#ffffff"), ("dark", "#111111")])
def test_all_text_is_in_the_color_of_the_notebook_and_marks_can_be_seen(theme: str, paper: str) -> None:
    colored = re.findall(r"([^{}\n]+)\{[^}]*[;{]color:", style())
    assert colored == [f".{SCOPE} .bad::before"]
    assert re.findall(r"([^{}\n]+)\{background", style())[0] == f".{SCOPE} .row:hover"
    assert f".{SCOPE} .bad{{background" not in style()
    data = json.loads(resource_path(f"themes/{theme}.json").read_text(encoding="utf-8"))
    low, high = sorted((luminance(data["colors"]["bad"]), luminance(paper)))
    assert (high + 0.05) / (low + 0.05) >= 3


def test_each_device_has_a_class_that_there_is() -> None:
    for color in (NEUTRAL, 0, 7, 8, 100):
        assert f".{mark(color)}{{background:var(--{mark(color)})}}" in style()

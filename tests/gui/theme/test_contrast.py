"""Every two colors that are used together can be told apart: text 4.5 to 1, borders of controls 3 to 1."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from PySide6.QtGui import QColor

from inspector.gui.theme.theme import MODES, Tokens, build_sheet, contrast, ink_on, read_tokens
from inspector.resources import resource_path

TONES = ("good", "bad", "warning", "neutral")
SOFT = tuple(f"{tone}_soft" for tone in TONES)
PAPER = ("window", "surface", "sunken", "hover")
TEXT = (
    *itertools.product(("text", "muted", "faint"), (*PAPER, "selection", "accent_soft", "match", *SOFT)),
    *itertools.product(("accent",), (*PAPER, "accent_soft", *SOFT)),
    *itertools.product(TONES, PAPER),
    *((tone, f"{tone}_soft") for tone in TONES),
    *itertools.product(("on_accent",), ("accent", "accent_hover", "accent_press")),
    *itertools.product(
        [f"code_{kind}" for kind in ("keyword", "string", "number", "comment", "name")], PAPER[:3]
    ),
    ("tooltip_text", "tooltip"),
)
EDGES = (
    *itertools.product(("border_strong", "accent", "scroll", "scroll_hover"), PAPER[:3]),
    *itertools.product(("accent",), SOFT),
    *((tone, ground) for tone in TONES for ground in (*PAPER[:3], *SOFT)),
    *(("on_fill", f"{tone}_fill") for tone in TONES),
    *((f"{tone}_fill", f"{tone}_soft") for tone in TONES),
)
NOT_READ = {"disabled"}
"""What says that something cannot be used needs no contrast (WCAG 2.2, 1.4.3)."""


def all_themes() -> list[Tokens]:
    return [read_tokens(name) for name in MODES[1:]]


def weak(tokens: Tokens, pairs: tuple[tuple[str, str], ...], least: float) -> list[str]:
    found = []
    for ink, ground in pairs:
        value = contrast(tokens.color(ink), tokens.color(ground))
        if value < least:
            found.append(f"{tokens.name}: {ink} on {ground} {value:.2f}")
    return found


def test_text_and_borders_stand_out_in_every_theme():
    found = []
    for tokens in all_themes():
        found += weak(tokens, TEXT, 7 if tokens.name.startswith("contrast") else 4.5)
        found += weak(tokens, EDGES, 3)
    assert found == []


def test_labels_on_bars_can_be_read_on_every_color_of_a_device_or_a_role():
    found = []
    for tokens in all_themes():
        colors = [tokens.device(index) for index in range(-1, 5 * len(tokens.devices))]
        colors += [tokens.shade(index) for index in range(-1, len(tokens.shades))]
        colors += [tokens.color(f"{tone}_fill") for tone in TONES]
        found += [f"{tokens.name} {each.name()}" for each in colors if contrast(ink_on(each), each) < 4.5]
        surface = tokens.color("surface")
        found += [f"{tokens.name} {each}" for each in tokens.devices if contrast(QColor(each), surface) < 2]
    assert found == []


def test_the_table_has_every_pair_of_the_sheet():
    """A rule that sets both colors is a pair; one that sets the ink alone stands on some paper."""
    sheet = resource_path("themes/window.qss").read_text(encoding="utf-8")
    missing = []
    for body in re.findall(r"\{([^{}]*)\}", sheet):
        ink = re.search(r"(?<![-\w])color: @(\w+)", body)
        if ink is None or ink[1] in NOT_READ:
            continue
        ground = re.search(r"background: @(\w+)", body)
        pairs = [(ink[1], ground[1])] if ground else [(ink[1], paper) for paper in PAPER[:2]]
        missing += [pair for pair in pairs if pair not in TEXT]
    assert missing == []


def test_the_borders_of_the_sheet_are_in_the_table():
    sheet = resource_path("themes/window.qss").read_text(encoding="utf-8")
    controls = re.findall(
        r"^(Q(?:PushButton|ComboBox|LineEdit|SpinBox|CheckBox)[^{]*)\{([^{}]*)\}", sheet, re.MULTILINE
    )
    assert len(controls) > 20
    strong = {ink for ink, _ in EDGES} | {"text", "faint"}
    for selector, body in controls:
        if ":disabled" in selector or ":hover" in selector:
            continue
        for token in re.findall(r"border(?:-color)?: (?:1px solid )?@(\w+)", body):
            assert token in strong, selector


def test_marks_in_boxes_stand_out_in_every_theme():
    found = []
    for tokens in all_themes():
        rules = re.findall(
            r"\{([^{}]*image: url\(\"[^\"]*sheet-(?:tick|dash)[^{}]*)\}", build_sheet(tokens, 10.0)
        )
        assert len(rules) > 4
        for rule in rules:
            ground = QColor(re.search(r"background: (#\w+)", rule)[1])
            picture = re.search(r"url\(\"([^\"]*)\"\)", rule)[1]
            ink = QColor(re.search(r"stroke=\"(#\w+)\"", Path(picture).read_text(encoding="utf-8"))[1])
            found += [f"{tokens.name} {rule}"] if contrast(ink, ground) < 3 else []
        off = tokens.color("faint")  # the ground of a box that cannot be clicked
        found += [f"{tokens.name} faint"] if contrast(ink, off) < 3 else []
    assert found == []

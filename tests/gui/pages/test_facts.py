from __future__ import annotations

from inspector.gui.pages.facts import FilePanel
from inspector.gui.pages.tensor.panel import TensorPanel
from inspector.records import replace
from inspector.report.details import FactGroup
from tests.gui import fakes
from tests.gui.looking import said

SCREEN = fakes.ready_screen()


def test_facts_stand_in_groups(qtbot, theme):
    panel = FilePanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(SCREEN)
    words = said(panel)
    for group in SCREEN.file:
        assert group.title in words
        for label, value in group.facts:
            assert label in words
            assert value in words


def test_facts_are_replaced_and_none_says_so(qtbot, theme):
    panel = TensorPanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(replace(SCREEN, tensor=(FactGroup(title="Tensor", facts=(("Path", "a/b"),)),)))
    assert "a/b" in said(panel)
    panel.show_screen(SCREEN)
    assert "Nothing selected" in said(panel)
    assert "a/b" not in said(panel)


def test_mark_up_in_a_fact_is_text(qtbot, theme):
    panel = TensorPanel(theme)
    qtbot.addWidget(panel)
    evil = "<b>bold</b><img src=x>" * 4
    panel.show_screen(replace(SCREEN, tensor=(FactGroup(title=evil, facts=((evil, evil), ("", evil))),)))
    assert said(panel).count(evil) == 4


def test_an_empty_fact_is_a_dash(qtbot, theme):
    panel = TensorPanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(replace(SCREEN, tensor=(FactGroup(title="T", facts=(("Shape", ""),)),)))
    assert "\u2013" in said(panel)

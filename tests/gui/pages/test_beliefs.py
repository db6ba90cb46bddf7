from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QToolButton

from inspector.gui.pages.beliefs import BeliefsPanel
from inspector.gui.pages.finding_card import FindingCard
from inspector.records import replace
from inspector.session.screen import FindingRow
from tests.gui import fakes

ROW = FindingRow(
    id="same-gpu",
    tone="neutral",
    title="Not so: \u201cIt must be there.\u201d",
    detail="<b>why</b>",
    facts=(("In this file", "Saved on cuda:0."),),
    lines=(("Write:", "a = 1\nb = 2"),),
)
ASKED = replace(fakes.ready_screen(), beliefs=(ROW, replace(ROW, id="other", lines=())))


def test_answers_are_asked_for_when_the_page_is_looked_at(qtbot, theme):
    panel = BeliefsPanel(theme)
    qtbot.addWidget(panel)
    with qtbot.waitSignal(panel.answers_wanted):
        panel.show_screen(fakes.ready_screen())
    assert panel.findChildren(FindingCard) == []
    with qtbot.assertNotEmitted(panel.answers_wanted):
        panel.show_screen(ASKED)
        panel.show_screen(ASKED)  # which replaces the cards
    qtbot.waitUntil(lambda: len(panel.findChildren(FindingCard)) == 2)


def test_many_cards_come_in_slices_and_a_new_screen_replaces_those_that_are_left(qtbot, theme):
    panel = BeliefsPanel(theme)
    qtbot.addWidget(panel)
    many = replace(ASKED, beliefs=tuple(replace(ROW, id=f"b{place}") for place in range(20)))
    panel.show_screen(many)
    assert (len(panel.findChildren(FindingCard)), panel.is_drawn) == (6, False)
    qtbot.waitUntil(lambda: panel.is_drawn)
    assert len(panel.findChildren(FindingCard)) == 20
    panel.show_screen(many)
    panel.show_screen(ASKED)
    qtbot.waitUntil(lambda: len(panel.findChildren(FindingCard)) == 2)
    assert panel.is_drawn


def test_a_card_is_plain_text_with_code_to_copy(qtbot, theme):
    panel = BeliefsPanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(ASKED)
    labels = panel.findChildren(QLabel)
    assert {"<b>why</b>", "Saved on cuda:0.", "same-gpu"} <= {label.text() for label in labels}
    assert {label.textFormat() for label in labels} == {Qt.TextFormat.PlainText}
    assert panel.findChild(FindingCard).accessibleName() == "Note: Not so: \u201cIt must be there.\u201d"
    panel.findChild(QToolButton).click()
    assert QGuiApplication.clipboard().text() == "a = 1\nb = 2"


def test_the_window_asks_once(make_window):
    window = make_window(fakes.ready_screen())
    window.show_page("beliefs", at_once=True)
    window.session.ask_beliefs.assert_called_once_with()
    window.show_screen(ASKED)
    assert len(window.workspace.pages.page("beliefs").findChildren(FindingCard)) == 2
    window.session.ask_beliefs.assert_called_once_with()

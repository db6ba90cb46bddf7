from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton

from inspector.gui.pages.finding_card import FindingCard
from inspector.gui.pages.findings import FindingsPanel
from inspector.gui.widgets.labels import WrappedText
from inspector.records import replace
from inspector.session.screen import FindingRow, Fix
from tests.gui import fakes

SCREEN = fakes.ready_screen()


def card_of(qtbot, theme, **fields: object) -> FindingCard:
    row = {"id": "mixed-devices", "tone": "warning", "title": "Mixed", "detail": "why", **fields}
    card = FindingCard(theme, FindingRow(**row), SCREEN.tree)
    qtbot.addWidget(card)
    card.show()
    return card


@pytest.mark.parametrize(
    ("fix", "text"),
    [
        (Fix(rule="cuda:*=cpu"), "Map cuda:* to cpu"),
        (Fix(option=("map_location", "'cpu'")), "Copy map_location='cpu'"),
        (Fix(style="resume"), "Show the loading code"),
    ],
)
def test_a_fix_is_a_button_that_wants_it(qtbot, theme, fix, text):
    card = card_of(qtbot, theme, fix=fix)
    button = card.findChild(QPushButton)
    assert button.text() == text
    with qtbot.waitSignal(card.fix_wanted) as wanted:
        button.click()
    assert wanted.args == [fix]


def test_without_a_fix_there_is_no_button(qtbot, theme):
    assert card_of(qtbot, theme).findChild(QPushButton) is None


def test_steps_can_be_copied(qtbot, theme):
    row = fakes.doctor_row()
    card = card_of(qtbot, theme, facts=row.facts, steps=row.steps)
    assert card.findChild(WrappedText).toPlainText() == "\n".join(row.steps)
    card.findChild(QToolButton).click()
    assert QGuiApplication.clipboard().text() == "\n".join(row.steps)
    words = [label.text() for label in card.findChildren(QLabel)]
    assert words.count("Seen") == 2
    assert "torch 2.13.0+cpu" in words


def test_foreign_text_is_no_mark_up(qtbot, theme):
    evil = "<b>bold</b>&amp;" * 9
    fix = Fix(rule=f"{evil}=cpu")
    card = card_of(qtbot, theme, title=evil, detail=evil, facts=((evil, evil),), steps=(evil,), fix=fix)
    words = [label.text() for label in card.findChildren(QLabel)]
    assert words.count(evil) == 4
    assert card.findChild(WrappedText).toPlainText() == evil


def test_the_answer_to_an_error_and_the_doctor_stand_before_the_findings(qtbot, theme):
    panel = FindingsPanel(theme)
    qtbot.addWidget(panel)
    screen = replace(
        SCREEN,
        error_text="RuntimeError: ...",
        explanation=fakes.explanation(SCREEN.tree),
        doctor=(fakes.doctor_row(),),
    )
    panel.show_screen(screen)
    titles = [card.accessibleName() for card in panel.findChildren(FindingCard)]
    assert [title.split(": ")[1] for title in titles] == [
        screen.explanation.title,
        fakes.doctor_row().title,
        *(finding.title.split(": ")[0] for finding in SCREEN.findings),
    ]
    words = [label.text() for label in panel.findChildren(QLabel)]
    assert {"GPUs there", "In this file"} <= set(words)


def test_errors_and_fixes_are_passed_on(qtbot, theme):
    panel = FindingsPanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(SCREEN)
    with qtbot.waitSignal(panel.fix_wanted) as wanted:
        next(b for b in panel.findChildren(QPushButton) if b.text() == "Map cuda:* to cpu").click()
    assert wanted.args == [SCREEN.findings[0].fix]
    with qtbot.waitSignal(panel.error_pasted) as pasted:
        panel.begin_error()
        panel.show_screen(replace(SCREEN, error_text=""))
        panel.findChildren(FindingCard)  # the cards are made anew, the field stays
        panel._ask._text.setPlainText("KeyError: 'x'")
    assert pasted.args == ["KeyError: 'x'"]


def test_gpus_that_work_do_not_push_the_findings_down(qtbot, theme):
    panel = FindingsPanel(theme)
    qtbot.addWidget(panel)
    fine = replace(fakes.doctor_row(), tone="good", title="All is well")
    panel.show_screen(replace(SCREEN, doctor=(fine,)))
    titles = [card.accessibleName() for card in panel.findChildren(FindingCard)]
    assert titles[-1] == "Good: All is well"

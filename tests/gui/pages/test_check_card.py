from __future__ import annotations

import pytest
from PySide6.QtWidgets import QProgressBar, QPushButton

from inspector.gui.pages.facts import CheckCard, FilePanel
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.screen import CheckPage
from tests.gui import fakes
from tests.gui.looking import button, shown

IDLE = CheckPage(hint="torch.load does not compare checksums.")


@pytest.fixture
def card(qtbot, theme) -> CheckCard:
    card = CheckCard(theme)
    card.show_check(IDLE)
    qtbot.addWidget(card)
    card.show()
    return card


def test_it_is_asked_for_with_a_button(card, qtbot):
    assert "does not compare checksums" in shown(card)
    with qtbot.waitSignal(card.check_wanted):
        button(card, "Check every byte").click()


def test_a_running_check_is_followed_and_can_be_stopped(card, qtbot):
    work = Progress()
    work.start("reading every byte", 1000)
    card.show_check(CheckPage(progress=work))
    work.advance(500)
    bar = card.findChild(QProgressBar)
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum() // 2)
    assert "reading every byte" in shown(card)
    assert not button(card, "Check every byte").isVisible()
    with qtbot.waitSignal(card.cancel_wanted):
        button(card, "Cancel").click()


def test_the_keyboard_stays_with_the_buttons_that_take_turns(card, qtbot):
    """Qt hands it to the next widget of the window, when the one that has it is hidden."""
    other = QPushButton("far away", card)
    other.show()
    check, cancel = button(card, "Check every byte"), button(card, "Cancel")
    card.activateWindow()
    qtbot.waitUntil(card.isActiveWindow)
    check.setFocus()
    card.show_check(CheckPage(progress=Progress()))
    assert cancel.hasFocus()
    card.show_check(CheckPage(tone="good", lines=("5 checksums compared.",)))
    assert check.hasFocus()
    other.setFocus()
    card.show_check(CheckPage(progress=Progress()))
    assert other.hasFocus()


@pytest.mark.parametrize("tone", ["good", "bad"])
def test_what_was_found_is_told(card, tone):
    card.show_check(CheckPage(tone=tone, lines=("5 checksums compared.", "model/a: its bytes were changed.")))
    assert "its bytes were changed" in shown(card)
    assert "does not compare checksums" not in shown(card)
    assert button(card, "Check every byte").isVisible()
    card.show_check(IDLE)
    assert "does not compare checksums" in shown(card)


def test_the_file_page_keeps_its_card_while_a_check_runs(qtbot, theme):
    panel = FilePanel(theme)
    qtbot.addWidget(panel)
    screen = fakes.ready_screen()
    panel.show_screen(screen)
    card = panel.findChild(CheckCard)
    panel.show_screen(replace(screen, check=CheckPage(progress=Progress("reading"))))
    assert panel.findChild(CheckCard) is card
    with qtbot.waitSignal(panel.check_cancelled):
        button(card, "Cancel").click()
    panel.show_screen(screen)
    with qtbot.waitSignal(panel.check_wanted):
        button(card, "Check every byte").click()

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QCheckBox, QSpinBox

from inspector.gui.pages.memory.panel import BarsPart, ForecastCard
from inspector.records import replace
from inspector.session.screen import Loading
from tests.gui import fakes
from tests.gui.looking import said

PAGE = fakes.forecast_page()


@pytest.fixture
def card(qtbot, theme) -> ForecastCard:
    card = ForecastCard(theme)
    qtbot.addWidget(card)
    card.show_forecast(PAGE)
    card.show()
    return card


def test_it_shows_what_the_forecast_was_made_for(card, qtbot):
    with qtbot.assertNotEmitted(card.loading_chosen):
        card.show_forecast(replace(PAGE, loading=Loading(ranks=4, mmap=True)))
    assert card.findChild(QSpinBox).value() == 4
    assert card.findChild(QSpinBox).maximum() == 8
    assert card.findChild(QCheckBox).isChecked()
    assert PAGE.chart.title in said(card)
    assert PAGE.notes[0] in said(card)


def test_another_number_of_processes_is_a_wish(card, qtbot):
    with qtbot.waitSignal(card.loading_chosen) as chosen:
        card.findChild(QSpinBox).setValue(5)
    assert chosen.args == [Loading(ranks=5)]
    with qtbot.waitSignal(card.loading_chosen) as chosen:
        card.findChild(QCheckBox).click()
    assert chosen.args == [Loading(ranks=5, mmap=True)]


def test_what_cannot_be_mapped_offers_no_mapping(card):
    card.show_forecast(replace(PAGE, can_map=False))
    assert card.findChild(QCheckBox).isHidden()


def test_a_load_that_fails_says_so_in_place_of_bars(card):
    card.show_forecast(replace(PAGE, chart=None, notes=("It would stop with: no",)))
    assert {"While loading", "It would stop with: no"} <= set(said(card))


def test_the_forecast_stands_below_the_devices(qtbot, theme):
    panel = BarsPart(theme)
    qtbot.addWidget(panel)
    panel.show_screen(fakes.ready_screen())
    assert isinstance(panel.cards.itemAt(1).widget(), ForecastCard)
    with qtbot.waitSignal(panel.loading_chosen):
        panel.findChild(QSpinBox).setValue(3)
    panel.show_screen(replace(fakes.ready_screen(), forecast=None))
    assert not isinstance(panel.cards.itemAt(1).widget(), ForecastCard)
    panel.show_screen(replace(fakes.ready_screen(), charts=(), forecast=None))
    assert "Nothing takes memory" in said(panel)

"""What a page shows where nothing but its user looks: what it asks for with its first screen, too."""

from __future__ import annotations

import pytest

from inspector.gui.main_window import MainWindow
from inspector.gui.pages.registry import PAGES
from inspector.gui.settings import Settings
from inspector.session.controller import Session
from tests.unit.session.documents import AtOnce


@pytest.fixture
def window(qtbot, theme):
    made = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(made)
    session = Session(made, AtOnce())
    made.attach(session)
    made.show()
    qtbot.waitExposed(made)
    session.open_demo()
    qtbot.waitUntil(lambda: bool(made.workspace.pages._built) and not made.workspace.pages.is_busy)
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_every_page_shows_what_it_asked_for_as_soon_as_that_is_known(qtbot, window, page):
    pages = window.workspace.pages  # `page` and `is_drawn` would feed it, so they are not asked

    window.show_page(page.id)
    qtbot.waitUntil(lambda: page.id in pages._fed and not pages.is_busy)

    assert pages._fed[page.id] == tuple(getattr(window.shown, field) for field in page.reads)
    qtbot.waitUntil(lambda: bool(getattr(pages._built[page.id], "is_drawn", True)))

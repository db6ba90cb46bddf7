from __future__ import annotations

from inspector.gui.workspace.workspace import NothingFound
from inspector.report.query import parse_query
from inspector.session.screen import SearchPage
from tests.gui.looking import button, shown

QUERY = parse_query("devise:cuda")


def test_the_word_that_is_no_good_is_named_with_a_way_out(qtbot, theme) -> None:
    card = NothingFound()
    qtbot.addWidget(card)
    card.show_search(SearchPage(size="", query=QUERY, why="devise: is no field.", instead="device:cuda & x"))
    assert card.isVisible()
    assert "devise: is no field." in shown(card)
    assert card.accessibleDescription() == "devise: is no field."
    with qtbot.waitSignal(card.query_wanted) as wanted:
        button(card, "Search device:cuda && x").click()
    assert wanted.args == ["device:cuda & x"]
    with qtbot.waitSignal(card.end_wanted):
        button(card, "Clear").click()


def test_without_a_better_query_there_is_only_the_reason(qtbot, theme) -> None:
    card = NothingFound()
    qtbot.addWidget(card)
    card.show_search(SearchPage(size="", query=QUERY, why="No path has x in it. " * 9))
    assert not button(card, "Search").isVisible()
    tall = card.height()
    card.show_search(SearchPage(size="", query=QUERY, why="No path has x in it."))
    assert card.height() < tall
    card.fit(280)
    assert card.width() == 280
    for page in (SearchPage(size="1 KB", query=QUERY), None):
        card.show_search(page)
        assert not card.isVisible()

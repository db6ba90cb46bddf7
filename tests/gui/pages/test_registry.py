from __future__ import annotations

import re

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QComboBox, QTabWidget, QWidget

from inspector.cli import main
from inspector.gui import actions, main_window
from inspector.gui.pages import registry, tabs
from inspector.gui.pages.code import CodePanel
from inspector.gui.pages.registry import PAGES, PARTS, Page
from inspector.records import replace
from tests.gui import fakes

READY = fakes.ready_screen()


class FakePanel(QWidget):
    def __init__(self, theme, commands, session) -> None:
        super().__init__()
        self.fed = []
        self.asked = (commands, session)

    def show_screen(self, screen) -> None:
        self.fed.append(screen.title)


def test_a_page_added_to_the_table_is_listed_built_when_looked_at_and_fed(make_window, monkeypatch):
    fake = Page(
        id="fake",
        text="Fa&ke",
        icon="spark",
        module=__name__,
        reads=("title",),
        build=FakePanel,
        count=lambda screen: len(screen.charts),
    )
    monkeypatch.setattr(registry, "PAGES", (*PAGES, fake))
    rows = (*actions.ACTIONS, actions.page_actions(registry.PAGES)[-1])
    for module in (actions, main_window):
        monkeypatch.setattr(module, "ACTIONS", rows)
    window = make_window(READY)
    pages = window.workspace.pages
    assert pages.tabText(len(PAGES)) == f"Fake  {len(READY.charts)}"
    key = registry.page_keys(registry.PAGES)[-1]
    assert pages.tabToolTip(len(PAGES)) == f"Fake ({key})"
    assert pages.page("fake") is None
    action = window.actions_by_name["page_fake"]
    assert (action.text(), action.shortcut()) == ("Fa&ke", QKeySequence(key))
    action.trigger()
    panel = pages.page("fake")
    assert panel.fed == [READY.title]
    assert panel.asked == (window._commands, window.session)
    window.show_screen(replace(READY, charts=()))
    assert panel.fed == [READY.title]
    assert pages.tabText(len(PAGES)) == "Fake"
    window.show_screen(replace(READY, title="other"))
    assert panel.fed == [READY.title, "other"]


@pytest.mark.wide
def test_every_page_has_an_entry_a_key_and_a_choice_on_the_command_line(window, capsys):
    keys = registry.page_keys(PAGES)
    assert len({*keys}) == len(PAGES)
    for page, key in zip(PAGES, keys, strict=True):
        action = window.actions_by_name[f"page_{page.id}"]
        assert action.shortcuts() == [QKeySequence(each) for each in (key, *page.old_keys)]
        action.trigger()
        assert window.workspace.pages.current_id == page.id
    with pytest.raises(SystemExit):
        main(["screenshot", "--help"])
    words = re.sub(r"\s", "", capsys.readouterr().out)
    choices = words.partition("--page{")[2].partition("}")[0].split(",")
    assert sorted(choices) == sorted([*(page.id for page in PAGES), *PARTS])


def test_the_tenth_page_has_no_key():
    pages = tuple(replace(PAGES[0], id=str(number)) for number in range(10))
    own = (replace(PAGES[0], id="own", key="Ctrl+I"), *pages)
    assert [row.keys for row in actions.page_actions(own)][9:] == [("Ctrl+9",), ()]
    assert actions.page_actions(own)[0].keys == ("Ctrl+I",)


@pytest.mark.wide
def test_pages_are_built_when_they_are_looked_at_and_fed_what_they_show(window):
    pages = window.workspace.pages
    assert pages.page("code") is None
    pages.open_page("code")
    code = pages.page("code")
    assert isinstance(code, CodePanel)
    window.show_screen(replace(READY, code=replace(READY.code, style="resume")))
    assert code.findChild(QComboBox).currentData() == "resume"
    pages.open_page("file")
    window.show_screen(READY)
    assert code.findChild(QComboBox).currentData() == "resume"
    pages.open_page("code")
    assert code.findChild(QComboBox).currentData() == "plain"


@pytest.mark.wide
def test_the_number_of_findings_stands_on_their_tab(window):
    tabs, place = window.findChild(QTabWidget), [page.id for page in PAGES].index("findings")
    notes = sum(row.is_note for row in READY.findings)
    assert (notes, tabs.tabText(place)) == (1, f"Findings  {len(READY.findings) - notes}")
    window.show_screen(replace(READY, findings=()))
    assert tabs.tabText(place) == "Findings"


def test_the_window_turns_to_the_page_of_its_screen_and_tells_of_one_that_is_chosen(window, session):
    pages = window.workspace.pages
    window.show_screen(replace(READY, opens_on="findings"))
    assert pages.current_id == "findings"
    session.turn_to.assert_not_called()
    window.show_screen(replace(READY, opens_on="findings", page="code"))
    assert pages.current_id == "code"
    pages.setCurrentIndex(0)
    session.turn_to.assert_called_once_with(PAGES[0].id)
    window.show_screen(replace(READY, opens_on="a page of another version", page=""))
    assert pages.current_id == PAGES[0].id


def test_the_page_about_the_file_has_a_tab_only_while_it_is_shown(window):
    pages, place = window.workspace.pages, [page.id for page in PAGES].index("file")
    assert not pages.isTabVisible(place)
    window.actions_by_name["page_file"].trigger()
    assert (pages.isTabVisible(place), pages.current_id) == (True, "file")
    window.show_page("code")
    assert (pages.isTabVisible(place), pages.current_id) == (False, "code")
    window.show_screen(replace(READY, page="file"))
    assert pages.isTabVisible(place)


def test_a_page_that_was_never_looked_at_is_made_in_several_turns(make_window, qtbot, monkeypatch):
    """Importing, building and filling it at once holds up the window."""
    window = make_window(READY)
    pages = window.workspace.pages
    qtbot.waitUntil(lambda: pages.page("overview") is not None)
    done = []
    monkeypatch.setattr(tabs, "import_module", lambda name: done.append(f"import {name}"))
    fake = replace(
        next(page for page in PAGES if page.id == "code"),
        module="there",
        build=lambda *given: done.append("build") or FakePanel(*given),
    )
    place = [page.id for page in PAGES].index("code")
    monkeypatch.setattr(pages, "_pages", (*PAGES[:place], fake, *PAGES[place + 1 :]))
    turns = []
    pages._turns._timer.timeout.connect(lambda: turns.append(list(done)))
    window.show_page("code")
    assert done == ["import there"]
    qtbot.waitUntil(lambda: not pages._turns.is_busy)
    assert turns[0] == ["import there", "build"]
    assert pages._built["code"].fed == [READY.title]
    assert len(turns) == 2
    window.show_page("overview")
    window.show_page("code")  # made before: nothing is to be done in turns
    assert not pages._turns.is_busy
    assert done == ["import there", "build"]


def test_a_file_that_is_closed_meanwhile_has_no_page(make_window, qtbot):
    window = make_window(READY)
    pages = window.workspace.pages
    window.show_page("tensor")
    assert pages._turns.is_busy
    pages.forget()
    assert not pages._turns.is_busy
    assert "tensor" not in pages._built


def test_a_page_of_earlier_versions_is_a_part_of_the_page_that_has_it_now(window, qtbot):
    pages = window.workspace.pages
    for old, (page, part) in PARTS.items():
        shown = []
        window.show_page("code")
        window.show_page(old)  # before the page is made, and again when it is there
        assert pages.current_id == page
        assert pages.page(old) is pages.page(page)
        pages._built[page].show_part = shown.append
        window.show_page(old)
        assert shown == [part]
        window.show_page(page)
        assert shown == [part]
    assert pages.page("memory").switch.currentIndex() == 1
    assert window.actions_by_name["page_tensor"].shortcuts()[1:] == [QKeySequence("Ctrl+7")]

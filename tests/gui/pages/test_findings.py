from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QToolButton

from inspector.gui.pages.findings import FindingCard, FindingsPanel, node_label
from inspector.gui.widgets.labels import WrappedText
from inspector.model.findings import Fix
from inspector.records import replace
from inspector.session.screen import FindingRow
from tests.gui import fakes
from tests.gui.looking import button as button_in
from tests.gui.looking import said

SCREEN = fakes.ready_screen()


def card_of(qtbot, theme, **fields: object) -> FindingCard:
    row = {"id": "mixed-devices", "tone": "warning", "title": "Mixed", "detail": "why", **fields}
    card = FindingCard(theme, FindingRow(**row), SCREEN.tree)
    qtbot.addWidget(card)
    card.show()
    return card


def test_a_fix_is_one_button_that_wants_it(qtbot, theme):
    for fix in (
        Fix(rule="cuda:*=cpu"),
        Fix(option=("mmap", "True")),
        Fix(style="resume"),
        Fix(recovers=True),
    ):
        card = card_of(qtbot, theme, fix=fix, button="Do it", lines=(("With:", "torch.load"),))
        assert [each.text() for each in card.findChildren(QPushButton)] == ["Do it", "More"]
        with qtbot.waitSignal(card.fix_wanted) as wanted:
            button_in(card, "Do it").click()
        assert wanted.args[0].fix == fix


def test_what_was_copied_is_confirmed(qtbot, theme):
    card = card_of(qtbot, theme, fix=Fix(option=("mmap", "True")), button="Copy", copies="mmap=True")
    button_in(card, "Copy").click()
    assert card.findChild(QPushButton).text() == "Copied"
    assert "mmap=True" in card.findChild(QPushButton).toolTip()


def test_code_and_commands_stand_behind_more(qtbot, theme):
    card = card_of(qtbot, theme, lines=(("Load it with:", 'torch.load("a.pth")'),))
    line, more = card.findChild(WrappedText), card.findChild(QPushButton)
    assert (line.isVisible(), more.text(), more.accessibleName()) == (False, "More", "Code for: Mixed")
    more.click()
    assert (line.isVisible(), more.text()) == (True, "Less")
    more.click()
    assert not line.isVisible()


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


def test_patch_keeps_its_lines_and_is_copied_whole(qtbot, theme):
    patch = "--- a/x.py\n+++ b/x.py\n" + "+line\n" * 100
    card = card_of(qtbot, theme, patch=patch)
    field = card.findChild(QPlainTextEdit)
    assert field.toPlainText() == patch.rstrip("\n")
    assert field.isReadOnly()
    assert field.height() < 40 * field.fontMetrics().lineSpacing()
    card.findChild(QToolButton).click()
    assert QGuiApplication.clipboard().text() == patch


def test_each_line_is_copied_by_itself(qtbot, theme):
    lines = (
        ("Load it with:", 'torch.load("a.pth")'),
        ("Or write a copy with:", "checkpoint-inspector x"),
    )
    card = card_of(qtbot, theme, lines=lines)
    assert [text.toPlainText() for text in card.findChildren(WrappedText)] == [line for _, line in lines]
    assert [caption for caption, _ in lines] == [
        label.text() for label in card.findChildren(QLabel) if label.text().endswith("with:")
    ]
    for button, (_, line) in zip(card.findChildren(QToolButton), lines, strict=True):
        button.click()
        assert QGuiApplication.clipboard().text() == line


def test_foreign_text_is_no_mark_up(qtbot, theme):
    evil = "<b>bold</b>&amp;" * 9
    fix = Fix(rule=f"{evil}=cpu")
    card = card_of(qtbot, theme, title=evil, detail=evil, facts=((evil, evil),), steps=(evil,), fix=fix)
    words = [label.text() for label in card.findChildren(QLabel)]
    assert words.count(evil) == 4
    assert card.findChild(WrappedText).toPlainText() == evil


# ------------------------------------------------------------------ the page


@pytest.fixture
def findings(qtbot, theme) -> FindingsPanel:
    panel = FindingsPanel(theme)
    qtbot.addWidget(panel)
    panel.resize(480, 600)
    panel.show_screen(SCREEN)
    panel.show()
    return panel


def test_each_finding_is_told_with_its_rows(findings):
    words = said(findings)
    for finding in SCREEN.findings:
        assert finding.title in words
        assert finding.detail in words
        assert finding.id not in words


def links_in(panel: FindingsPanel) -> list[QPushButton]:
    return [button for button in panel.findChildren(QPushButton) if button.property("kind") == "link"]


def test_one_row_is_selected_and_many_are_searched_for(findings, qtbot):
    card = SCREEN.findings[0]
    assert links_in(findings)[0].text() == "Show the 87 tensors"
    with qtbot.waitSignal(findings.query_wanted) as wanted:
        links_in(findings)[0].click()
    assert wanted.args == ["device:cuda"]
    findings.show_screen(replace(SCREEN, findings=(replace(card, count=1),)))
    link = links_in(findings)[0]
    assert link.text() == "model / conv1 / weight"
    with qtbot.waitSignal(findings.node_wanted) as chosen:
        link.click()
    assert chosen.args == [card.nodes[0]]


def test_what_is_good_to_know_is_folded_below_what_asks_for_something(findings, qtbot):
    def note() -> FindingCard:
        cards = findings.findChildren(FindingCard)
        return next(card for card in cards if "Random state" in card.accessibleName())

    assert not note().isVisible()
    button_in(findings, "Good to know (1)").click()
    assert note().isVisible()
    findings.show_screen(replace(SCREEN, selected=3))
    qtbot.waitUntil(lambda: note().isVisible())  # as it was left
    fresh = FindingsPanel(findings.theme)
    fresh.show_screen(replace(SCREEN, findings=SCREEN.findings[2:]))
    fresh.show()
    assert not fresh.findChild(FindingCard).parentWidget().isHidden()  # nothing else asks for anything


def test_far_too_many_findings_are_counted(findings, monkeypatch):
    monkeypatch.setattr("inspector.gui.pages.findings._MOST_CARDS", 1)
    findings.show_screen(SCREEN)
    assert "1 more finding of the same kinds." in said(findings)


def test_no_findings_are_good_news(findings):
    findings.show_screen(replace(SCREEN, findings=()))
    assert "Nothing to report" in said(findings)


def test_a_path_leaves_buckets_out_and_its_middle_where_it_is_long(findings, qtbot):
    leaves = [fakes.Leaf(names=("m" * 40, "n" * 40), device="cpu", shape=(2,))]
    tree = fakes.make_tree(leaves, fakes.COLOURS)
    tree.nodes[1].kind = "bucket"
    assert node_label(tree, 2) == "n" * 40
    tree.nodes[1].kind = "group"
    finding = replace(SCREEN.findings[0], nodes=(2,), count=1)
    findings.show_screen(replace(SCREEN, tree=tree, findings=(finding,)))
    link = links_in(findings)[0]
    qtbot.waitUntil(lambda: len(link.text()) < 60)
    assert "m" * 40 in link.toolTip()


def test_the_answer_to_an_error_and_the_doctor_stand_before_the_findings(findings, qtbot):
    screen = replace(
        SCREEN,
        error_text="RuntimeError: ...",
        explanation=fakes.explanation(SCREEN.tree),
        doctor=(fakes.doctor_row(),),
    )
    findings.show_screen(screen)
    titles = [card.accessibleName() for card in findings.findChildren(FindingCard)]
    assert [title.split(": ")[1] for title in titles] == [
        screen.explanation.title,
        fakes.doctor_row().title,
        *(finding.title.split(": ")[0] for finding in SCREEN.findings),
    ]
    words = [label.text() for label in findings.findChildren(QLabel)]
    assert {"GPUs on the target", "In this file"} <= set(words)


def test_errors_and_fixes_are_passed_on(findings, qtbot):
    findings.show_screen(SCREEN)
    with qtbot.waitSignal(findings.fix_wanted) as wanted:
        button_in(findings, "Export fixed copy").click()
    assert wanted.args == [SCREEN.findings[0]]
    with qtbot.waitSignal(findings.error_pasted) as pasted:
        findings.begin_error()
        findings.show_screen(replace(SCREEN, error_text=""))
        findings.findChildren(FindingCard)  # the cards are made anew, the field stays
        findings._ask._text.setPlainText("KeyError: 'x'")
    assert pasted.args == ["KeyError: 'x'"]


def test_gpus_that_work_do_not_push_the_findings_down(findings, qtbot):
    fine = replace(fakes.doctor_row(), tone="good", title="All is well")
    findings.show_screen(replace(SCREEN, doctor=(fine,)))
    titles = [card.accessibleName() for card in findings.findChildren(FindingCard)]
    assert titles[-1] == "Good: All is well"


def test_a_part_has_a_button_that_opens_the_whole(window, session, qtbot):
    row = FindingRow(
        id="part-of-checkpoint",
        tone="neutral",
        title="t",
        detail="d",
        opens="/run/a.index.json",
        opening="Open the whole checkpoint",
    )
    window.show_screen(replace(window.shown, findings=(row,)))
    window.show_page("findings", at_once=True)
    button_in(window, "Open the whole checkpoint").click()
    session.open.assert_called_once_with("/run/a.index.json")


def test_the_keyboard_stays_on_the_page_when_its_cards_are_made_anew(window, qtbot):
    window.show_page("findings", at_once=True)
    window.activateWindow()
    link = button_in(window.workspace.pages.page("findings"), "Show the 87 tensors")
    link.setFocus()
    qtbot.waitUntil(link.hasFocus)
    window.show_screen(replace(window.shown, doctor=(fakes.doctor_row(),)))
    assert button_in(window.workspace.pages.page("findings"), "Paste an error").hasFocus()

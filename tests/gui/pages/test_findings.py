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
from tests.gui.looking import said, shown

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
        (Fix(recovers=True), "Save what is intact\u2026"),
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
        assert finding.id in words


def links_in(panel: FindingsPanel) -> list[QPushButton]:
    return [button for button in panel.findChildren(QPushButton) if button.property("kind") == "link"]


def test_a_click_on_a_row_wants_its_node(findings, qtbot):
    link = links_in(findings)[0]
    assert link.text() == "model / conv1 / weight"
    with qtbot.waitSignal(findings.node_wanted) as wanted:
        link.click()
    assert wanted.args == [SCREEN.findings[0].nodes[0]]


def test_many_rows_are_shown_on_request(findings, qtbot):
    nodes = SCREEN.tree.tensor_nodes[:9]
    findings.show_screen(replace(SCREEN, findings=(replace(SCREEN.findings[0], nodes=nodes),)))
    links = links_in(findings)
    assert [link.text() for link in links if not link.isHidden()][4:] == ["Show 5 more"]
    links[-1].click()
    assert len([link for link in links if not link.isHidden()]) == 9
    findings.show_screen(replace(SCREEN, findings=(replace(SCREEN.findings[0], nodes=nodes, count=1_500),)))
    assert [link.text() for link in links_in(findings) if not link.isHidden()][4:] == ["Show 5 of 1,496 more"]


def test_far_too_many_findings_are_counted(findings, monkeypatch):
    monkeypatch.setattr("inspector.gui.pages.findings._MOST_CARDS", 2)
    findings.show_screen(SCREEN)
    assert "1 more finding of the same kinds." in said(findings)


def test_no_findings_are_good_news(findings):
    findings.show_screen(replace(SCREEN, findings=()))
    assert "Nothing to report" in said(findings)


def test_a_path_leaves_buckets_out_and_its_middle_where_it_is_long(findings):
    leaves = [fakes.Leaf(names=("m" * 40, "n" * 40), device="cpu", shape=(2,))]
    tree = fakes.make_tree(leaves, fakes.COLOURS)
    tree.nodes[1].kind = "bucket"
    assert node_label(tree, 2) == "n" * 40
    tree.nodes[1].kind = "group"
    finding = replace(SCREEN.findings[0], nodes=(2,))
    findings.show_screen(replace(SCREEN, tree=tree, findings=(finding,)))
    link = links_in(findings)[0]
    assert len(link.text()) < 60
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
        next(b for b in findings.findChildren(QPushButton) if b.text() == "Map cuda:* to cpu").click()
    assert wanted.args == [SCREEN.findings[0].fix]
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


def test_rows_that_are_not_listed_are_counted(qtbot, theme):
    tree = fakes.ready_screen().tree
    row = FindingRow(id="x", tone="bad", title="t", detail="d", nodes=tree.tensor_nodes[:20], count=1204)
    card = FindingCard(theme, row, tree)
    qtbot.addWidget(card)
    card.show()
    button_in(card, "Show 16 of 1,200 more").click()
    qtbot.waitUntil(lambda: "The first 20 of 1,204" in shown(card))
    assert sum(each.isVisible() for each in card.findChildren(QPushButton)) == 20


def test_a_part_has_a_button_that_opens_the_whole(window, session, qtbot):
    row = FindingRow(
        id="part-of-checkpoint", tone="neutral", title="t", detail="d", opens="/run/a.index.json"
    )
    window.show_screen(replace(window.shown, findings=(row,)))
    window.show_page("findings", at_once=True)
    button_in(window, "Open the whole checkpoint").click()
    session.open.assert_called_once_with("/run/a.index.json")

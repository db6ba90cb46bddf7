from __future__ import annotations

import pytest
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QComboBox, QLabel, QPlainTextEdit, QPushButton

from inspector.gui.pages.code import CodePanel
from inspector.gui.pages.finding_card import node_path
from inspector.gui.pages.findings import FindingsPanel
from inspector.gui.widgets.labels import WrappedText
from inspector.gui.widgets.panels import FilePanel, TensorPanel
from inspector.gui.workspace.workspace import banner
from inspector.records import replace
from inspector.session.screen import Choice, CodePage, FactGroup
from tests.gui import fakes

SCREEN = fakes.ready_screen()


def said(widget) -> list[str]:
    labels = [label.text() for label in widget.findChildren(QLabel)]
    return labels + [text.toPlainText() for text in widget.findChildren(WrappedText)]


# ------------------------------------------------------------------ facts


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


# ------------------------------------------------------------------ findings


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


def test_far_too_many_findings_are_counted(findings, monkeypatch):
    monkeypatch.setattr("inspector.gui.pages.findings._MOST_CARDS", 2)
    findings.show_screen(SCREEN)
    assert "1 more findings of the same kinds." in said(findings)


def test_no_findings_are_good_news(findings):
    findings.show_screen(replace(SCREEN, findings=()))
    assert "Nothing to report" in said(findings)


def test_a_path_leaves_buckets_out_and_its_middle_where_it_is_long(qtbot, theme):
    leaves = [fakes.Leaf(names=("m" * 40, "n" * 40), device="cpu", shape=(2,))]
    tree = fakes.make_tree(leaves, fakes.COLOURS)
    tree.nodes[1].kind = "bucket"
    assert node_path(tree, 2) == "n" * 40
    tree.nodes[1].kind = "group"
    panel = FindingsPanel(theme)
    qtbot.addWidget(panel)
    finding = replace(SCREEN.findings[0], nodes=(2,))
    panel.show_screen(replace(SCREEN, tree=tree, findings=(finding,)))
    link = links_in(panel)[0]
    assert len(link.text()) < 60
    assert "m" * 40 in link.toolTip()


# ------------------------------------------------------------------ code


@pytest.fixture
def code(qtbot, theme) -> CodePanel:
    panel = CodePanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(SCREEN)
    return panel


def colours_of(panel: CodePanel) -> dict[str, str]:
    """Give the colour of the first place of each word."""
    document = panel.findChild(QPlainTextEdit).document()
    found: dict[str, str] = {}
    block = document.begin()
    while block.isValid():
        for form in block.layout().formats():
            word = block.text()[form.start : form.start + form.length]
            found.setdefault(word, form.format.foreground().color().name())
        block = block.next()
    return found


def test_the_code_is_there_and_coloured(code, theme):
    assert code.findChild(QPlainTextEdit).toPlainText() == fakes.CODE
    colours = colours_of(code)
    assert colours["import"] == theme.tokens.colours["code_keyword"]
    assert colours['"best.pth"'] == theme.tokens.colours["code_string"]
    assert colours["load"] == theme.tokens.colours["code_name"]
    assert colours["# saved on two GPUs"] == theme.tokens.colours["code_comment"]
    assert colours["1"] == theme.tokens.colours["code_number"]
    theme.set_mode("dark")
    assert colours_of(code)["import"] == theme.tokens.colours["code_keyword"]


def test_the_style_is_chosen_by_the_user_alone(code, qtbot):
    combo = code.findChild(QComboBox)
    assert [combo.itemText(place) for place in range(combo.count())] == [
        "Plain torch.load",
        "Resume training",
    ]
    with qtbot.assertNotEmitted(code.style_chosen):
        code.show_screen(replace(SCREEN, code=replace(SCREEN.code, style="resume")))
    assert combo.currentData() == "resume"
    with qtbot.waitSignal(code.style_chosen) as chosen:
        combo.activated.emit(0)
    assert chosen.args == ["plain"]


def test_one_style_is_no_choice_and_no_code_no_copy(code):
    page = CodePage(styles=(Choice(id="plain", label="Plain"),), style="plain", text="import torch\n")
    code.show_screen(replace(SCREEN, code=page))
    assert not code.findChild(QComboBox).isEnabled()
    code.show_screen(replace(SCREEN, code=None))
    assert not code.findChild(QPushButton).isEnabled()


def test_the_same_code_keeps_what_is_selected(code):
    text = code.findChild(QPlainTextEdit)
    text.moveCursor(QTextCursor.MoveOperation.End)
    code.show_screen(SCREEN)
    assert text.textCursor().atEnd()


def test_copying_is_asked_for_and_confirmed(code, qtbot, monkeypatch):
    monkeypatch.setattr(banner, "COPIED_MS", 20)
    button = code.findChild(QPushButton)
    with qtbot.waitSignal(code.copy_wanted):
        button.click()
    code.confirm_copied()
    assert button.text() == "Copied"
    qtbot.waitUntil(lambda: button.text() == "Copy")

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox

from inspector.gui.dialogs.export.draft import ExportOptions
from inspector.records import replace
from inspector.session.export.page import ExportDraft, ExportWish
from inspector.session.screen import Choice
from tests.gui.looking import shown

DRAFT = ExportDraft(
    wish=ExportWish(kind="weights"),
    kinds=(Choice(id="copy", label="All"), Choice(id="weights", label="Weights")),
    destination="/x",
    summary=(),
    can_cast=True,
    can_average=True,
    can_exclude=True,
    can_verify=True,
    can_change_hidden=True,
)


@pytest.fixture
def options(qtbot) -> ExportOptions:
    options = ExportOptions()
    qtbot.addWidget(options)
    options.show_draft(DRAFT)
    options.show()
    return options


def combo(options: ExportOptions, name: str) -> QComboBox:
    return next(each for each in options.findChildren(QComboBox) if each.accessibleName() == name)


def box(options: ExportOptions, text: str) -> QCheckBox:
    return next(each for each in options.findChildren(QCheckBox) if each.text() == text)


def choose(box: QComboBox, id_: str) -> None:
    box.setCurrentIndex(box.findData(id_))
    box.activated.emit(box.currentIndex())


def test_a_draft_is_shown_without_asking(options, qtbot):
    wish = ExportWish(kind="copy", cast="float16", ema=True, exclude="a/**", verify="torch", hidden=True)
    with qtbot.assertNotEmitted(options.wish_changed, wait=400):
        options.show_draft(replace(DRAFT, wish=wish))
    assert combo(options, "What is written").currentData() == "copy"
    assert combo(options, "Type of the weights").currentData() == "float16"
    assert combo(options, "How the copy is checked").currentData() == "torch"
    assert all(each.isChecked() for each in options.findChildren(QCheckBox))
    with qtbot.waitSignal(options.wish_changed) as changed:
        box(options, "Devices outside of tensors as well").click()
    assert changed.args == [replace(wish, hidden=False)]  # the patterns stay


@pytest.mark.parametrize(
    ("name", "id_", "wish"),
    [
        ("What is written", "copy", ExportWish(kind="copy")),
        ("Type of the weights", "bfloat16", ExportWish(kind="weights", cast="bfloat16")),
        ("How the copy is checked", "full", ExportWish(kind="weights", verify="full")),
    ],
)
def test_each_choice_is_a_wish(options, qtbot, name, id_, wish):
    with qtbot.waitSignal(options.wish_changed) as changed:
        choose(combo(options, name), id_)
    assert changed.args == [wish]


def test_devices_outside_of_tensors_are_a_wish(options, qtbot):
    with qtbot.waitSignal(options.wish_changed) as changed:
        box(options, "Devices outside of tensors as well").click()
    assert changed.args == [ExportWish(kind="weights", hidden=True)]


def test_only_open_questions_are_asked(options):
    none = dict.fromkeys(("can_cast", "can_average", "can_exclude", "can_verify", "can_change_hidden"), False)
    options.show_draft(replace(DRAFT, **none))
    assert combo(options, "What is written").isVisible()
    assert not combo(options, "Type of the weights").isVisible()
    assert not any(each.isVisible() for each in options.findChildren(QCheckBox))
    assert not combo(options, "How the copy is checked").isVisible()


def test_a_kind_that_makes_no_sense_cannot_be_chosen_and_says_why(options):
    kinds = (Choice(id="copy", label="All", why="There are no devices."), DRAFT.kinds[1])
    options.show_draft(replace(DRAFT, kinds=kinds))
    kinds = combo(options, "What is written")
    enabled = [bool(kinds.model().index(place, 0).flags() & Qt.ItemFlag.ItemIsEnabled) for place in (0, 1)]
    assert enabled == [False, True]
    assert "There are no devices." in shown(options)
    options.show_draft(DRAFT)
    assert "There are no devices." not in shown(options)

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton

from inspector.gui.workspace.device_map import BranchList, DeviceCard, DeviceMapBar
from inspector.records import replace
from inspector.session.screen import BranchRow
from tests.gui import fakes
from tests.gui.looking import shown

ROWS = fakes.ready_screen().device_map


@pytest.fixture
def bar(qtbot, theme) -> DeviceMapBar:
    bar = DeviceMapBar(theme)
    qtbot.addWidget(bar)
    bar.resize(1200, 80)
    bar.show_rows(ROWS, fakes.COLOURS)
    bar.show()
    qtbot.waitExposed(bar)
    return bar


def test_each_device_has_a_card_with_its_name_and_summary(bar):
    cards = bar.findChildren(DeviceCard)
    assert len(cards) == 3
    for card, row in zip(cards, ROWS, strict=True):
        assert row.device in shown(card)
        assert row.summary in shown(card)
    assert "kept: Adam's step and RNG state" in shown(cards[2])


def test_choosing_a_device_says_so_and_showing_one_does_not(bar, qtbot):
    combo = bar.findChildren(QComboBox)[0]
    assert combo.currentText() == "cpu"
    with qtbot.waitSignal(bar.mapping_chosen) as chosen:
        combo.setCurrentText("mps")
    assert chosen.args == ["cuda:1", "mps"]
    with qtbot.assertNotEmitted(bar.mapping_chosen):
        bar.show_rows((replace(ROWS[0], to="cuda:0"), *ROWS[1:]), fakes.COLOURS)
    assert combo.currentText() == "cuda:0"


def test_cards_stay_while_their_number_does(bar):
    before = bar.findChildren(DeviceCard)
    bar.show_rows(ROWS[::-1], fakes.COLOURS)
    assert bar.findChildren(DeviceCard) == before
    bar.show_rows(ROWS[:1], fakes.COLOURS)
    bar.show_rows((), fakes.COLOURS)
    assert bar.isHidden()


def test_many_devices_wrap_and_then_scroll(bar, qtbot):
    many = tuple(replace(ROWS[0], device=f"cuda:{index}", note="") for index in range(8))
    bar.setFixedHeight(800)
    bar.show_rows(many, {})
    cards = bar.findChildren(DeviceCard)
    qtbot.waitUntil(lambda: len({card.y() for card in cards}) == 3)
    card = cards[0].sizeHint().height()
    assert card < bar.sizeHint().height() < 3 * card
    bar.setFixedHeight(600)
    bar.show_rows(many, {})
    qtbot.waitUntil(lambda: bar.sizeHint().height() < 2 * card)
    bar.resize(500, 600)
    qtbot.waitUntil(lambda: len({card.y() for card in cards}) == 8)


def test_a_long_name_leaves_the_list_its_room(bar, qtbot):
    bar.show_rows((replace(ROWS[0], device="privateuseone:0" * 20), *ROWS[1:]), {})
    card = bar.findChildren(DeviceCard)[0]
    qtbot.waitUntil(lambda: card.findChild(QComboBox).geometry().right() < card.width())


def test_everything_has_a_name_for_the_ear(bar):
    names = [combo.accessibleName() for combo in bar.findChildren(QComboBox)]
    assert names[0] == "Where the tensors of cuda:1 go"


def test_the_wheel_changes_nothing_by_accident(bar):
    combo = bar.findChildren(QComboBox)[0]
    combo.clearFocus()

    def turn() -> bool:
        event = QWheelEvent(
            QPointF(5, 5),
            QPointF(5, 5),
            QPoint(0, -120),
            QPoint(0, -120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        combo.wheelEvent(event)
        return event.isAccepted()

    assert not turn()
    assert combo.currentText() == "cpu"
    combo.setFocus()
    turn()
    assert combo.currentText() == "cuda:0"


def test_the_colors_follow_the_theme(bar, theme):
    combo = bar.findChildren(QComboBox)[0]

    def color() -> str:
        return combo.itemIcon(1).pixmap(24, 24).toImage().pixelColor(12, 12).name()

    assert color() == theme.tokens.device(0).name()
    theme.set_mode("dark")
    assert color() == theme.tokens.device(0).name()


# ------------------------------------------------------------------ branches


def branch_rows(count: int) -> tuple[BranchRow, ...]:
    return tuple(BranchRow(pattern=f"m{i}/**", label=f"m{i}/**", to="cpu") for i in range(count))


def test_each_branch_can_be_removed(qtbot, theme):
    branches = BranchList(theme)
    qtbot.addWidget(branches)
    branches.show_branches(branch_rows(2))
    buttons = branches.findChildren(QPushButton)
    assert [button.text() for button in buttons] == ["m0/** \u2192 cpu", "m1/** \u2192 cpu"]
    with qtbot.waitSignal(branches.removed) as removed:
        buttons[1].click()
    assert removed.args == ["m1/**"]


def test_none_takes_no_room_and_many_are_counted(qtbot, theme):
    branches = BranchList(theme)
    qtbot.addWidget(branches)
    branches.show_branches(())
    assert branches.isHidden()
    branches.show_branches(branch_rows(9))
    assert len(branches.findChildren(QPushButton)) == 4
    assert "and 5 more" in [label.text() for label in branches.findChildren(QLabel)]


def test_a_line_says_why_there_is_no_map(bar):
    bar.show_rows((), {}, (), "No devices are stored here: the call decides.")
    assert not bar.isHidden()
    assert "the call decides" in shown(bar)
    assert "Device map" not in shown(bar)
    bar.show_rows(ROWS, fakes.COLOURS)
    assert "Device map" in shown(bar)
    assert "the call decides" not in shown(bar)

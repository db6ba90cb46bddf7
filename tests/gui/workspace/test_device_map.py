from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QLabel, QPushButton

from inspector.gui.workspace.banner import MAP_HEIGHT
from inspector.gui.workspace.device_map import DeviceMapBar
from inspector.gui.workspace.map_panel import BranchList, DeviceCard, Pill
from inspector.records import replace
from inspector.session.screen import BranchRow
from tests.gui import fakes
from tests.gui.looking import button, shown

ROWS = fakes.ready_screen().device_map


MANY = tuple(replace(ROWS[0], device=f"cuda:{index}", note="") for index in range(16))


@pytest.fixture
def bar(qtbot, theme) -> DeviceMapBar:
    bar = DeviceMapBar(theme)
    qtbot.addWidget(bar)
    bar.resize(1256, MAP_HEIGHT)
    bar.show_rows(ROWS, fakes.COLOURS)
    bar.show()
    qtbot.waitExposed(bar)
    return bar


def pills(bar: DeviceMapBar) -> list[Pill]:
    return [pill for pill in bar.findChildren(Pill) if pill.isVisible()]


def test_each_device_has_a_pill_with_its_name_and_what_it_holds(bar):
    assert len(pills(bar)) == 3
    for pill, row in zip(pills(bar), ROWS, strict=True):
        assert row.device in shown(pill)
        assert row.summary in shown(pill)
        assert row.summary in pill.to.accessibleDescription()
    assert "kept: Adam's step and RNG state" in pills(bar)[2].toolTip()
    assert button(bar, "Details").accessibleName() == "Details of the device map"


def test_choosing_a_device_says_so_and_showing_one_does_not(bar, qtbot):
    combo = pills(bar)[0].to
    assert combo.currentText() == "cpu"
    with qtbot.waitSignal(bar.mapping_chosen) as chosen:
        combo.setCurrentText("mps")
    assert chosen.args == ["cuda:1", "mps"]
    with qtbot.assertNotEmitted(bar.mapping_chosen):
        bar.show_rows((replace(ROWS[0], to="cuda:0"), *ROWS[1:]), fakes.COLOURS)
    assert combo.currentText() == "cuda:0"


def test_a_pill_is_edited_with_the_keyboard_alone(bar, qtbot):
    combo = pills(bar)[0].to
    combo.setFocus()
    qtbot.waitUntil(combo.hasFocus)
    with qtbot.waitSignal(bar.mapping_chosen) as chosen:
        qtbot.keyClick(combo, Qt.Key.Key_Down)
    assert chosen.args == ["cuda:1", "cuda:0"]
    qtbot.keyClick(combo, Qt.Key.Key_Space)
    qtbot.waitUntil(combo.view().isVisible)
    assert combo.view().width() >= combo.view().sizeHintForColumn(0)
    combo.hidePopup()


def test_names_are_whole_at_every_width(bar, qtbot):
    bar.show_rows(MANY, {f"cuda:{index}": index for index in range(16)}, ())
    cut = []
    for width in range(770, 960, 3):
        bar.resize(width, bar.height())
        QCoreApplication.processEvents()
        names = [pill._name for pill in pills(bar)]
        cut += [width for name in names if name.width() < name.sizeHint().width()]
    assert cut == []


def test_sixteen_devices_stay_in_one_line_and_open_below_it(bar, qtbot):
    bar.show_rows(MANY, {}, branch_rows(2))
    assert bar.height() == MAP_HEIGHT
    seen = len(pills(bar))
    assert 4 <= seen < 16
    assert all(bar.rect().contains(pill.geometry()) for pill in pills(bar))
    assert bar.findChildren(Pill)[0]._summary.isHidden()
    more = button(bar, f"+{16 - seen} more, 2 rules")
    more.click()
    panel = bar._dropdown
    assert panel.isVisible()
    cards = panel.findChildren(DeviceCard)
    assert len(cards) == 16
    with qtbot.waitSignal(bar.mapping_chosen) as chosen:
        cards[15].to.setCurrentText("mps")
    assert chosen.args == ["cuda:15", "mps"]
    bar.show_rows((*MANY[:15], replace(MANY[15], to="mps")), {}, branch_rows(2))
    assert panel.isVisible()
    assert cards[15].to.currentText() == "mps"
    qtbot.keyClick(panel, Qt.Key.Key_Escape)
    assert not panel.isVisible()
    assert more.property("open") == "false"
    bar.resize(bar.minimumSizeHint())
    assert len(pills(bar)) == 1


def test_all_are_mapped_at_once(bar, qtbot):
    menu = button(bar, "Map all").menu()
    menu.show_choices(("cuda:0", "mps", "cpu"), "")
    said = [action.text().replace("&", "") for action in menu.actions() if action.text()]
    assert said == ["cuda:0", "mps", "cpu", "Where each was saved", "As suggested for the machine"]
    with qtbot.waitSignal(menu.all_chosen) as chosen:
        menu.actions()[1].trigger()
    assert chosen.args == ["mps"]
    for place, signal in ((4, menu.as_saved_wanted), (5, menu.suggested_wanted)):
        with qtbot.waitSignal(signal):
            menu.actions()[place].trigger()
    menu.show_choices((), "No devices are stored here.")
    (why,) = menu.actions()
    assert (why.text(), why.isEnabled()) == ("No devices are stored here.", False)


def test_a_device_that_the_machine_lacks_is_marked(bar):
    bar.show_rows((replace(ROWS[0], is_missing=True, note="the target has no cuda:1"), *ROWS[1:]), {})
    assert [pill._mark.isVisible() for pill in pills(bar)] == [True, False, False]
    assert "the target has no cuda:1" in pills(bar)[0].to.accessibleDescription()


def test_a_long_name_leaves_the_list_its_room(bar, qtbot):
    bar.show_rows((replace(ROWS[0], device="privateuseone:0" * 20), *ROWS[1:]), {})
    pill = pills(bar)[0]
    qtbot.waitUntil(lambda: pill.to.geometry().right() < pill.width())
    assert pill.width() < 420


def test_everything_has_a_name_for_the_ear(bar):
    assert pills(bar)[0].to.accessibleName() == "Where the tensors of cuda:1 go"


def test_the_wheel_changes_nothing_by_accident(bar):
    combo = pills(bar)[0].to
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
    branches.show_branches(branch_rows(21))
    assert len(branches.findChildren(QPushButton)) == 16
    assert "and 5 more" in [label.text() for label in branches.findChildren(QLabel)]


def test_without_a_map_there_is_no_bar(bar):
    bar.show_rows((), {})
    assert bar.isHidden()
    bar.show_rows(ROWS, fakes.COLOURS)
    assert (bar.isHidden(), len(pills(bar))) == (False, 3)

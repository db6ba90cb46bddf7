from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton

from inspector.gui.workspace.branch_list import BranchList
from inspector.session.screen import BranchRow


def rows(count: int) -> tuple[BranchRow, ...]:
    return tuple(BranchRow(pattern=f"m{i}/**", label=f"m{i}/**", to="cpu") for i in range(count))


def test_each_branch_can_be_removed(qtbot, theme):
    branches = BranchList(theme)
    qtbot.addWidget(branches)
    branches.show_branches(rows(2))
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
    branches.show_branches(rows(9))
    assert len(branches.findChildren(QPushButton)) == 4
    assert "and 5 more" in [label.text() for label in branches.findChildren(QLabel)]

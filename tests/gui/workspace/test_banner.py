from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QToolButton

from inspector.gui.widgets import controls
from inspector.gui.workspace.banner import BANNER_HEIGHT, BannerFrame
from inspector.records import replace
from tests.gui import fakes
from tests.gui.looking import button, shown

SCREEN = fakes.ready_screen()


@pytest.fixture
def banner(qtbot, theme) -> BannerFrame:
    banner = BannerFrame(theme)
    qtbot.addWidget(banner)
    banner.resize(1200, BANNER_HEIGHT)
    banner.show_banner(SCREEN.banner)
    banner.show_safety(SCREEN.safety)
    banner.show()
    return banner


def test_the_verdict_stands_in_one_line_and_the_rest_opens_below_it(banner, qtbot):
    assert banner.height() == BANNER_HEIGHT
    assert SCREEN.banner.verdict in shown(banner)
    button(banner, "Details").click()
    panel = banner._dropdown
    assert panel.isVisible()
    for text in (SCREEN.banner.headline, SCREEN.banner.advice, fakes.CUDA_ERROR):
        assert text in shown(panel)
    qtbot.keyClick(panel, Qt.Key.Key_Escape)
    assert not panel.isVisible()
    assert banner.property("tone") == "bad"
    assert banner.accessibleName() == f"Verdict, Problem: {SCREEN.banner.verdict}"
    assert banner.accessibleDescription().startswith("Saved on cuda:0")
    assert fakes.CUDA_ERROR in banner.accessibleDescription()


def test_another_machine_is_said_with_a_way_back(banner, qtbot):
    back = banner._here
    assert not back.isVisible()
    banner.show_banner(replace(SCREEN.banner, is_elsewhere=True, tone="warning"))
    assert back.isVisible()
    assert back.text() == "Not this machine: back"
    with qtbot.waitSignal(banner.this_machine_wanted):
        back.click()
    assert banner.height() == BANNER_HEIGHT


def test_the_export_stands_out_only_where_its_copy_loads(banner):
    for is_way_out in (True, False):
        banner.show_banner(replace(SCREEN.banner, is_way_out=is_way_out))
        assert banner._export.property("kind") == ("primary" if is_way_out else "")


def test_tab_reaches_the_verdict_and_return_opens_it(banner, qtbot):
    assert banner.focusPolicy() & Qt.FocusPolicy.TabFocus
    banner.setFocus()
    qtbot.keyClick(banner, Qt.Key.Key_A)
    assert not banner._dropdown.isVisible()
    qtbot.keyClick(banner, Qt.Key.Key_Return)
    assert banner._dropdown.isVisible()
    banner.show_banner(None)
    assert not banner._dropdown.isVisible()


def test_a_press_on_its_button_closes_the_panel_for_good(banner, qtbot):
    more = button(banner, "Details")
    more.click()
    panel = banner._dropdown
    for place, kept in ((more.mapToGlobal(QPoint(4, 4)), True), (banner.mapToGlobal(QPoint(4, 4)), False)):
        at = QPointF(panel.mapFromGlobal(place))
        left = Qt.MouseButton.LeftButton
        event = QMouseEvent(
            QEvent.Type.MouseButtonPress, at, QPointF(place), left, left, Qt.KeyboardModifier(0)
        )
        panel.mousePressEvent(event)
        assert panel.testAttribute(Qt.WidgetAttribute.WA_NoMouseReplay) is kept
    panel.open()
    more.click()
    assert not panel.isVisible()


def test_without_an_error_there_is_no_place_for_one(banner):
    banner.show_banner(replace(SCREEN.banner, tone="good", error_text=None, advice=""))
    banner.open_details()
    assert "torch.load says" not in shown(banner._dropdown)
    assert banner.property("tone") == "good"
    banner.show_banner(None)
    assert banner.isHidden()


@pytest.mark.parametrize(
    ("text", "signal"),
    [("Export", "export_wanted"), ("Copy loading", "copy_code_wanted"), ("Show the findings", "why_wanted")],
)
def test_each_button_says_what_is_wanted(banner, qtbot, text, signal):
    banner.open_details()
    with qtbot.waitSignal(getattr(banner, signal)):
        button(banner, text).click()


def test_a_narrow_line_keeps_the_verdict_whole(banner, qtbot):
    banner.resize(780, BANNER_HEIGHT)
    assert banner._aside.isHidden()
    assert (banner._copy.text(), banner._copy.accessibleDescription()) == ("", "Copy loading code")
    line = banner._verdict
    qtbot.waitUntil(lambda: line.width() >= line.fontMetrics().horizontalAdvance(line.text()))
    banner.resize(1200, BANNER_HEIGHT)
    assert (banner._copy.text(), banner._copy.accessibleDescription()) == ("Copy loading code", "")
    qtbot.waitUntil(lambda: SCREEN.banner.aside in shown(banner))


def test_the_chip_tells_more_and_leads_to_the_findings(banner, qtbot):
    chip = button(banner, "Weights only")
    assert "weights_only=True" in chip.toolTip()
    assert chip.property("tone") == "good"
    with qtbot.waitSignal(banner.why_wanted):
        chip.click()
    banner.show_safety(replace(SCREEN.safety, tone="bad", text="dangerous"))
    assert chip.property("icon_name") == "shield-alert"
    banner.show_safety(None)
    assert chip.isHidden()


def test_what_cannot_be_exported_cannot_be_asked_for(banner):
    banner.show_can_export(allowed=False)
    assert not button(banner, "Export").isEnabled()
    banner.show_can_export(allowed=True)
    assert button(banner, "Export").isEnabled()


def test_copying_says_so_for_a_moment(banner, qtbot, monkeypatch):
    monkeypatch.setattr(controls, "COPIED_MS", 30)
    copy = button(banner, "Copy loading")
    banner.confirm_code_copied()
    banner.confirm_code_copied()
    assert copy.text() == "Copied"
    qtbot.waitUntil(lambda: copy.text() == "Copy loading code")
    assert copy.property("icon_name") == "copy"


def test_the_error_is_copied_as_it_stands(banner):
    banner.open_details()
    banner._dropdown.findChild(QToolButton).click()
    assert QGuiApplication.clipboard().text() == fakes.CUDA_ERROR


def test_the_error_is_the_loaders(banner):
    banner.show_banner(replace(SCREEN.banner, speaker="torch.jit.load"))
    banner.open_details()
    assert "torch.jit.load says" in shown(banner._dropdown)

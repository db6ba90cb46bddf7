from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton

from inspector.gui.widgets import controls
from inspector.gui.workspace.banner import BannerFrame
from inspector.records import replace
from tests.gui import fakes
from tests.gui.looking import button, shown

SCREEN = fakes.ready_screen()


@pytest.fixture
def banner(qtbot, theme) -> BannerFrame:
    banner = BannerFrame(theme)
    qtbot.addWidget(banner)
    banner.resize(1200, 160)
    banner.show_banner(SCREEN.banner)
    banner.show_safety(SCREEN.safety)
    banner.show()
    return banner


def test_the_verdict_the_advice_and_the_exact_error_are_there(banner):
    for text in (SCREEN.banner.headline, SCREEN.banner.advice, fakes.CUDA_ERROR):
        assert text in shown(banner)
    assert banner.property("tone") == "bad"
    assert banner.accessibleDescription().startswith("Problem: Saved on cuda:0")


def test_without_an_error_there_is_no_place_for_one(banner):
    banner.show_banner(replace(SCREEN.banner, tone="good", error_text=None, advice=""))
    assert "torch.load says" not in shown(banner)
    assert banner.property("tone") == "good"
    banner.show_banner(None)
    assert banner.isHidden()


@pytest.mark.parametrize(
    ("text", "signal"),
    [("Export", "export_wanted"), ("Copy loading", "copy_code_wanted"), ("Why?", "why_wanted")],
)
def test_each_button_says_what_is_wanted(banner, qtbot, text, signal):
    with qtbot.waitSignal(getattr(banner, signal)):
        button(banner, text).click()


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
    banner.findChild(QToolButton).click()
    assert QGuiApplication.clipboard().text() == fakes.CUDA_ERROR


def test_the_error_is_the_loaders(banner):
    banner.show_banner(replace(SCREEN.banner, speaker="torch.jit.load"))
    assert "torch.jit.load says" in shown(banner)

from __future__ import annotations

from PySide6.QtWidgets import QToolButton

from inspector.gui.workspace.workspace import FactsStrip
from inspector.records import replace
from inspector.report.outline.strip import Strip
from tests.gui import fakes
from tests.gui.looking import shown


def test_the_facts_stay_in_sight_and_the_path_is_copied(qtbot, theme) -> None:
    strip = FactsStrip(theme)
    qtbot.addWidget(strip)
    strip.resize(720, strip.sizeHint().height())
    strip.show()
    (button,) = strip.findChildren(QToolButton)
    assert "Nothing selected" in shown(strip)
    assert not button.isEnabled()
    height = strip.height()
    facts = Strip(title="model/a.weight", facts=("cuda:0", "float32"), pattern="model/a.weight")
    strip.show_screen(replace(fakes.ready_screen(), strip=facts))
    assert "model/a.weight" in shown(strip)
    assert "cuda:0  \u00b7  float32" in shown(strip)
    assert strip.accessibleDescription() == "model/a.weight: cuda:0, float32"
    assert button.accessibleName()
    with qtbot.waitSignal(strip.copy_wanted) as copied:
        button.click()
    assert copied.args == ["model/a.weight"]
    strip.show_screen(replace(fakes.ready_screen(), strip=Strip(title="3 rows", facts=())))
    assert not button.isEnabled()
    assert strip.sizeHint().height() == height

from __future__ import annotations

import pytest
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QWidget

from inspector.gui.widgets.eliding import PathButton, cut_path

NAMES = [f"model.layers.{layer}.self_attn.{part}_proj.weight" for layer in (4, 5) for part in "qk"]
DEEP = [
    f"base_model.model / {layer}.attn / q_proj / lora_{part} / weight" for layer in (0, 1) for part in "AB"
]


@pytest.fixture
def metrics(qapp) -> QFontMetrics:
    return QFontMetrics(QFont())


@pytest.mark.parametrize("names", [NAMES, DEEP])
def test_names_that_differ_in_their_middle_differ_when_they_are_cut(metrics, names):
    room = 0.75 * metrics.horizontalAdvance(names[0])
    cut = [cut_path(name, metrics, room) for name in names]
    assert len(set(cut)) == len(names)
    for text, name in zip(cut, names, strict=True):
        assert text.startswith("\u2026")
        assert name.endswith(text[1:])
        assert not text.startswith("\u2026.")
        assert metrics.horizontalAdvance(text) <= room


def test_what_fits_is_not_cut_and_a_single_name_keeps_its_ends(metrics):
    assert cut_path(NAMES[0], metrics, metrics.horizontalAdvance(NAMES[0])) == NAMES[0]
    room = metrics.horizontalAdvance("exp_a\u2026_sq")
    cut = [cut_path(name, metrics, room) for name in ("exp_average", "exp_average_sq", "a.exp_average_sq")]
    assert cut[0] != cut[1]
    assert cut[1].startswith("e")
    assert cut[1].endswith("q")
    assert cut[2].endswith("sq")


def test_cutting_measures_few_texts_of_a_name_full_of_dots(metrics):
    class Counting:
        count = 0

        def horizontalAdvance(self, text: str) -> int:
            self.count += 1
            return metrics.horizontalAdvance(text)

    counting = Counting()
    assert cut_path("a." * 5_000, counting, 100).endswith("a.a.")
    assert counting.count < 20


def test_a_link_shows_as_much_of_a_path_as_there_is_room(qtbot):
    parent, asked = QWidget(), []
    qtbot.addWidget(parent)
    link = PathButton("a&b." + NAMES[0], lambda: asked.append(1))
    link.setParent(parent)
    whole = link.sizeHint()
    link.resize(whole)
    parent.show()
    assert link.text() == "a&&b." + NAMES[0]
    link.resize(whole.width() - 20, whole.height())
    assert link.text() == "\u2026" + NAMES[0]
    assert link.sizeHint().width() == whole.width()
    link.resize(whole.width() + 50, whole.height())
    assert link.text() == "a&&b." + NAMES[0]
    assert link.accessibleDescription() == "a&b." + NAMES[0]
    link.click()
    assert asked == [1]

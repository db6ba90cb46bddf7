from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QComboBox, QFrame, QLabel, QVBoxLayout, QWidget

from inspector.gui.widgets.labels import (
    ElidedLabel,
    PathButton,
    StatusLine,
    WrappedText,
    blocked,
    clear_layout,
    cut_path,
    named,
    plain_label,
    plain_tooltip,
    set_state,
)

MARK_UP = "<b>bold</b> & <img src='x'>"


def test_labels_never_read_mark_up(qtbot):
    label = plain_label(MARK_UP, "muted", wrap=True, selectable=True)
    qtbot.addWidget(label)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert label.text() == MARK_UP
    assert label.property("role") == "muted"


def test_tooltips_never_read_mark_up():
    text = plain_tooltip(MARK_UP)
    assert "<b>" not in text
    assert "<img" not in text
    assert "&lt;b&gt;bold&lt;/b&gt; &amp;" in text
    assert plain_tooltip("") == ""


def test_what_does_not_fit_is_whole_in_the_tooltip(qtbot):
    label = ElidedLabel("a rather long name " * 5)
    qtbot.addWidget(label)
    label.resize(2000, 20)
    label.show()
    assert label.toolTip() == ""
    label.resize(60, 20)
    assert "a rather long name" in label.toolTip()
    assert label.accessibleName().startswith("a rather long name")
    assert label.minimumSizeHint().width() < 60
    label.setText("short")
    assert label.toolTip() == ""
    label.grab()


@pytest.mark.parametrize("width", [120, 240])
def test_a_long_word_is_broken_and_copied_as_it_is(qtbot, width):
    holder = QWidget()
    qtbot.addWidget(holder)
    text = WrappedText("0123456789" * 10)
    column = QVBoxLayout(holder)
    column.addWidget(text)
    column.addStretch(1)
    holder.resize(width, 400)
    holder.show()
    assert text.height() / text.fontMetrics().lineSpacing() > 2
    assert text.height() >= text.document().size().height()
    text.selectAll()
    assert text.textCursor().selectedText() == "0123456789" * 10
    text.setText("short")
    qtbot.waitUntil(lambda: text.height() < 2 * text.fontMetrics().lineSpacing())


def test_blocked_signals_are_free_again_even_after_a_mistake(qtbot):
    combo = QComboBox()
    qtbot.addWidget(combo)
    combo.addItems(["one", "two"])
    with qtbot.assertNotEmitted(combo.currentIndexChanged), blocked(combo):
        combo.setCurrentIndex(1)
    with pytest.raises(ValueError, match="mistake"), blocked(combo):
        raise ValueError("mistake")
    with qtbot.waitSignal(combo.currentIndexChanged):
        combo.setCurrentIndex(0)


def test_a_state_is_set_once(qtbot, theme):
    frame = QFrame()
    qtbot.addWidget(frame)
    set_state(frame, "tone", "bad")
    set_state(frame, "tone", "bad")
    assert frame.property("tone") == "bad"


def test_names_for_the_sheet_and_for_the_ear(qtbot):
    widget = named(QWidget(), "inset", spoken="Error")
    qtbot.addWidget(widget)
    assert (widget.objectName(), widget.accessibleName()) == ("inset", "Error")


def test_a_cleared_layout_leaves_nothing_behind(qtbot):
    holder = QWidget()
    qtbot.addWidget(holder)
    column = QVBoxLayout(holder)
    column.addWidget(QLabel("one"))
    column.addStretch(1)
    clear_layout(column)
    assert column.count() == 0
    assert not holder.findChildren(QLabel)


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

        def horizontalAdvance(self, text: str) -> int:  # noqa: N802 - Qt's name
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
    while link.text().startswith("a"):
        link.resize(link.width() - 1, whole.height())
    assert link.text() == "\u2026" + NAMES[0]
    assert abs(link.sizeHint().width() - whole.width()) <= 1  # rounded
    link.resize(whole.width() + 50, whole.height())
    assert link.text() == "a&&b." + NAMES[0]
    assert link.accessibleDescription() == "a&b." + NAMES[0]
    link.click()
    assert asked == [1]


def test_a_status_never_stands_below_a_message(qtbot):
    line = StatusLine(lambda: None)
    qtbot.addWidget(line)
    line.show_status(("/runs/best.pth", "788 KB"))
    line.show()
    line.showMessage("Text at 150 %")
    line.show_status(("/runs/last.pth", "788 KB"))
    qtbot.waitUntil(lambda: not line._path.isVisible())
    line.clearMessage()
    assert line._path.isVisible()

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFrame, QLabel, QVBoxLayout, QWidget

from inspector.gui.widgets.labels import (
    ElidedLabel,
    WrappedText,
    blocked,
    clear_layout,
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

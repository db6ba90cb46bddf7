"""Chooses which two dimensions of a tensor are looked at, and where in the others."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QLabel, QSpinBox, QWidget

from inspector.gui.widgets.controls import CalmComboBox, number_field
from inspector.gui.widgets.flow import FlowLayout
from inspector.gui.widgets.labels import blocked, named, plain_label
from inspector.session.values.page import SliceChoice

_MOST_INDEX = (1 << 31) - 1
_MOST_DIMENSIONS = 16
_WAIT_MS = 150


class SliceBar(QFrame):
    """A drop-down list for each of the two dimensions, and a field for the index in each other."""

    choice_made = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._shape: tuple[int, ...] = ()
        self._choice = SliceChoice(row=None, column=None, index=())
        self._flow = FlowLayout(self)
        self._row = named(CalmComboBox(), spoken="Dimension of the rows")
        self._column = named(CalmComboBox(), spoken="Dimension of the columns")
        self._indices: list[tuple[QLabel, QSpinBox]] = []
        self._timer = QTimer(self, interval=_WAIT_MS, singleShot=True)
        self._timer.timeout.connect(lambda: self.choice_made.emit(self._choice))
        for text, box in (("Rows", self._row), ("Columns", self._column)):
            box.setSizeAdjustPolicy(
                CalmComboBox.SizeAdjustPolicy.AdjustToContents
            )  # another tensor's is longer
            label = plain_label(text, "muted")
            self._add(label, box)
        self._row.activated.connect(self._on_row)
        self._column.activated.connect(self._on_column)

    def show_choice(self, shape: tuple[int, ...], choice: SliceChoice | None) -> None:
        """Show the slice that is looked at."""
        self.setVisible(len(shape) > 1 and choice is not None)
        if choice is None or (shape, choice) == (self._shape, self._choice):
            return
        if shape != self._shape:
            self._build(shape)
        self._shape, self._choice = shape, choice
        with blocked(self._row, self._column):
            self._row.setCurrentIndex(-1 if choice.row is None else choice.row)
            self._column.setCurrentIndex(-1 if choice.column is None else choice.column)
        for axis, (label, box) in enumerate(self._indices):
            is_free = axis not in {choice.row, choice.column} and shape[axis] > 1
            label.setVisible(is_free)
            box.setVisible(is_free)
            with blocked(box):
                box.setValue(choice.index[axis])
        self._flow.invalidate()

    def _build(self, shape: tuple[int, ...]) -> None:
        with blocked(self._row, self._column):
            for box in (self._row, self._column):
                _fill(box, shape)
        for label, index in self._indices:
            for widget in (label, index):
                self._flow.removeWidget(widget)
                widget.deleteLater()
        self._indices = []
        for axis, size in enumerate(shape[:_MOST_DIMENSIONS]):
            spin = number_field(f"Index in dimension {axis}", 0, min(size - 1, _MOST_INDEX))
            spin.valueChanged.connect(self._on_index)
            label = plain_label(f"dim {axis} at", "muted")
            self._add(label, spin)
            self._indices.append((label, spin))

    def _add(self, label: QLabel, field: QWidget) -> None:
        """Add a field with its label, which stands in the middle of the line."""
        label.setBuddy(field)
        label.setMinimumHeight(field.sizeHint().height())
        self._flow.addWidget(label)
        self._flow.addWidget(field)

    def _on_row(self, axis: int) -> None:
        column = self._choice.row if axis == self._choice.column else self._choice.column
        self._choose(SliceChoice(row=axis, column=column, index=self._choice.index))

    def _on_column(self, axis: int) -> None:
        row = self._choice.column if axis == self._choice.row else self._choice.row
        self._choose(SliceChoice(row=row, column=axis, index=self._choice.index))

    def _on_index(self) -> None:
        index = tuple(box.value() for _, box in self._indices)
        index += self._choice.index[len(index) :]
        self._choice = SliceChoice(row=self._choice.row, column=self._choice.column, index=index)
        self._timer.start()

    def _choose(self, choice: SliceChoice) -> None:
        self.choice_made.emit(choice)


def _fill(box: QComboBox, shape: tuple[int, ...]) -> None:
    box.clear()
    box.addItems([f"dim {axis} ({size:,})" for axis, size in enumerate(shape[:_MOST_DIMENSIONS])])

"""The columns of the tree: how wide they are at first, and the menu that hides and shows them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QTreeView

from inspector.gui.tree.model import Column

WIDTHS = {
    Column.NAME: 220,
    Column.DEVICE: 156,
    Column.SHAPE: 124,
    Column.TYPE: 86,
    Column.SIZE: 82,
    Column.VALUE: 80,
}


def build_column_menu(view: QTreeView) -> QMenu:
    """Build the menu that hides and shows columns; the name stays. It goes when it is closed."""
    menu = QMenu(view)
    for column in list(Column)[1:]:
        action = menu.addAction(str(view.model().headerData(column, Qt.Orientation.Horizontal)))
        action.setCheckable(True)
        action.setChecked(not view.isColumnHidden(column))
        action.setData(int(column))
    menu.aboutToHide.connect(menu.deleteLater)
    return menu

"""What somebody hears who does not see the window: its accessible tree, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QWidget

Role = QAccessible.Role
NAMED_ROLES = {
    Role.Button,
    Role.ButtonMenu,
    Role.CheckBox,
    Role.ComboBox,
    Role.EditableText,
    Role.MenuItem,
    Role.PageTab,
    Role.RadioButton,
    Role.Slider,
    Role.SpinBox,
    Role.Table,
    Role.Tree,
}
MARKUP = re.compile(r"<p style|</p>|&(?:lt|gt|amp|nbsp);")
"""What this program's own markup looks like: the name of a file may have any."""


def heard(root: QWidget) -> Iterator[QAccessibleInterface]:
    """Yield what a screen reader reaches below a widget, as far as it is shown; not the rows of lists."""
    yield from _below(QAccessible.queryAccessibleInterface(root))


def name_of(each: QAccessibleInterface) -> str:
    """Return the name; that of a list of choices is its label's, which Linux asks for by its relation."""
    if each.role() == Role.ComboBox:
        labels = [label for label, _ in each.relations(QAccessible.RelationFlag.Label)]
        return " ".join(label.text(QAccessible.Text.Name) for label in labels)
    return each.text(QAccessible.Text.Name)


def complaints(root: QWidget) -> list[str]:
    """List the controls without a name, and the texts with markup in them."""
    found = []
    for each in heard(root):
        role, name = each.role(), name_of(each)
        place = f"{role.name} {name or _origin(each)!r}"
        if role in NAMED_ROLES and not name.strip():
            found.append(f"{place}: no name")
        kinds = (QAccessible.Text.Name, QAccessible.Text.Description, QAccessible.Text.Help)
        texts = map(each.text, kinds)
        found += [f"{place}: markup in {text[:80]!r}" for text in texts if MARKUP.search(text)]
    return found


def _below(each: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    if each.state().invisible:
        return
    yield each
    if each.role() in (Role.Tree, Role.Table, Role.List, Role.ComboBox, Role.ScrollBar):
        return
    for place in range(each.childCount()):
        child = each.child(place)
        if child is not None and child.isValid():
            yield from _below(child)


def _origin(each: QAccessibleInterface) -> str:
    thing = each.object()
    return (
        ""
        if thing is None
        else f"{type(thing).__name__} {thing.objectName()} in {type(thing.parent()).__name__}"
    )

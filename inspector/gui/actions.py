"""Everything that the window can do, as a table: the menus, the toolbar and the keys are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow

from inspector.gui.icons import set_icon
from inspector.gui.theme import Theme
from inspector.session.screen import Screen

Need = Literal["nothing", "file", "ready", "code", "export", "matches"]
MENUS = ("&File", "&Edit", "&View", "&Help")
_STANDARD = QKeySequence.StandardKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row of the table.

    Attributes:
        id: What the window's handlers call it.
        menu: The menu that it stands in.
        text: Its words, with the letter that selects it.
        keys: Its key sequences; the platform's own where Qt knows one.
        icon: The icon's name, or empty.
        needs: When it can be used.
        group: Commands of one menu with the same group stand together.
    """

    id: str
    menu: str
    text: str
    keys: tuple[str | QKeySequence.StandardKey, ...] = ()
    icon: str = ""
    needs: Need = "nothing"
    group: int = 0


_F, _E, _V, _H = MENUS
COMMANDS = (
    Command(id="open", menu=_F, text="&Open\u2026", keys=(_STANDARD.Open,), icon="open"),
    Command(id="demo", menu=_F, text="Open the &demo checkpoint", icon="spark"),
    Command(id="reload", menu=_F, text="&Reload", keys=("F5", "Ctrl+R"), icon="reload", needs="file", group=1),
    Command(
        id="export",
        menu=_F,
        text="&Export fixed copy\u2026",
        keys=("Ctrl+E",),
        icon="export",
        needs="export",
        group=2,
    ),
    Command(id="close", menu=_F, text="&Close", keys=("Ctrl+W",), group=3),
    Command(id="quit", menu=_F, text="&Quit", keys=("Ctrl+Q",), group=3),
    Command(id="copy_rows", menu=_E, text="&Copy rows", keys=(_STANDARD.Copy,), icon="copy", needs="ready"),
    Command(id="copy_path", menu=_E, text="Copy &path", needs="ready"),
    Command(id="copy_expression", menu=_E, text="Copy as Python e&xpression", needs="ready"),
    Command(id="copy_code", menu=_E, text="Copy &loading code", keys=("Ctrl+Shift+C",), icon="code", needs="code"),
    Command(
        id="find", menu=_E, text="&Find\u2026", keys=(_STANDARD.Find,), icon="search", needs="ready", group=1
    ),
    Command(id="find_next", menu=_E, text="Find &next", keys=("F3",), needs="matches", group=1),
    Command(id="find_previous", menu=_E, text="Find pre&vious", keys=("Shift+F3",), needs="matches", group=1),
    Command(
        id="expand", menu=_V, text="&Expand all below", keys=("Ctrl++", "Ctrl+="), needs="ready"
    ),
    Command(id="collapse", menu=_V, text="&Collapse all", keys=("Ctrl+-",), needs="ready"),
    Command(id="page_memory", menu=_V, text="&Memory", keys=("Ctrl+1",), icon="memory", needs="ready", group=1),
    Command(id="page_tensor", menu=_V, text="&Tensor", keys=("Ctrl+2",), icon="tensor", needs="ready", group=1),
    Command(
        id="page_findings", menu=_V, text="F&indings", keys=("Ctrl+3",), icon="findings", needs="ready", group=1
    ),
    Command(id="page_code", menu=_V, text="C&ode", keys=("Ctrl+4",), icon="code", needs="ready", group=1),
    Command(id="page_file", menu=_V, text="&File", keys=("Ctrl+5",), icon="file", needs="ready", group=1),
    Command(id="shortcuts", menu=_H, text="&Keys and hints", keys=("F1",), icon="help"),
    Command(id="about", menu=_H, text="&About Checkpoint Inspector"),
)


def is_usable(command: Command, screen: Screen) -> bool:
    """Tell whether a command can be used on a screen."""
    ready = screen.phase == "ready"
    return {
        "nothing": True,
        "file": ready or screen.phase == "failed",
        "ready": ready,
        "code": ready and screen.code is not None,
        "export": ready and screen.can_export,
        "matches": ready and bool(screen.matches),
    }[command.needs]


def key_text(command: Command) -> str:
    """Give a command's first key as this platform writes it."""
    sequences = _sequences(command)
    return sequences[0].toString(QKeySequence.SequenceFormat.NativeText) if sequences else ""


def build_actions(
    window: QMainWindow, theme: Theme, handlers: Mapping[str, Callable[[], None]]
) -> dict[str, QAction]:
    """Make the actions and the menus of a window.

    Raises:
        KeyError: A command has no handler.
    """
    actions: dict[str, QAction] = {}
    for title in MENUS:
        menu = window.menuBar().addMenu(title)
        group = 0
        for command in (command for command in COMMANDS if command.menu == title):
            if command.group != group:
                menu.addSeparator()
                group = command.group
            action = _build_action(window, theme, command)
            action.triggered.connect(handlers[command.id])
            menu.addAction(action)
            actions[command.id] = action
    return actions


def _build_action(window: QMainWindow, theme: Theme, command: Command) -> QAction:
    action = QAction(command.text, window, objectName=command.id)
    action.setShortcuts(_sequences(command))
    if command.icon:
        set_icon(action, command.icon, theme.tokens)
    return action


def _sequences(command: Command) -> list[QKeySequence]:
    sequences: list[QKeySequence] = []
    for key in command.keys:
        if isinstance(key, str):
            sequences.append(QKeySequence(key))
        else:
            sequences += QKeySequence.keyBindings(key)[:1]
    return sequences

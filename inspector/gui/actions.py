"""Everything that the window can do, as a table: the menus, the toolbar and the keys are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

from inspector.gui.theme.icons import draw_icons, name_icon
from inspector.gui.theme.theme import Theme
from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.session.screen import Screen

Need = Literal["nothing", "file", "ready", "code", "export", "undo", "search", "matches"]
MENUS = ("&File", "&Edit", "&View", "&Help")
_STANDARD = QKeySequence.StandardKey


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table, which reads best without the names of its columns.

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
    Command("open", _F, "&Open\u2026", (_STANDARD.Open,), "open"),
    Command("demo", _F, "Open the &demo checkpoint", icon="spark"),
    Command("reload", _F, "&Reload", ("F5", "Ctrl+R"), "reload", "file", 1),
    Command("check", _F, "Chec&k every byte", icon="shield", needs="ready", group=1),
    Command("export", _F, "&Export fixed copy\u2026", ("Ctrl+E",), "export", "export", 2),
    Command("undo", _F, "&Undo the change of this file", needs="undo", group=2),
    Command("machine", _F, "Load on another &machine\u2026", icon="machine", needs="ready", group=2),
    Command("close", _F, "&Close", ("Ctrl+W",), group=3),
    Command("quit", _F, "&Quit", ("Ctrl+Q",), group=3),
    Command("copy_rows", _E, "&Copy rows", (_STANDARD.Copy,), "copy", "ready"),
    Command("copy_path", _E, "Copy &path", needs="ready"),
    Command("copy_expression", _E, "Copy as Python e&xpression", needs="ready"),
    Command("copy_code", _E, "Copy &loading code", ("Ctrl+Shift+C",), "code", "code"),
    Command("paste_error", _E, "Explain an e&rror message\u2026", ("Ctrl+Shift+V",), "paste", "ready", 1),
    Command("find", _E, "&Find\u2026", (_STANDARD.Find,), "search", "ready", 2),
    Command("find_next", _E, "Find &next", ("F3",), "", "matches", 2),
    Command("find_previous", _E, "Find pre&vious", ("Shift+F3",), "", "matches", 2),
    Command("find_end", _E, "&End the search", ("Esc",), "", "search", 2),
    Command("expand", _V, "&Expand all below", ("Ctrl++", "Ctrl+="), "", "ready"),
    Command("collapse", _V, "&Collapse all", ("Ctrl+-",), "", "ready"),
    Command("page_memory", _V, "&Memory", ("Ctrl+1",), "memory", "ready", 1),
    Command("page_tensor", _V, "&Tensor", ("Ctrl+2",), "tensor", "ready", 1),
    Command("page_findings", _V, "F&indings", ("Ctrl+3",), "findings", "ready", 1),
    Command("page_code", _V, "C&ode", ("Ctrl+4",), "code", "ready", 1),
    Command("page_file", _V, "&File", ("Ctrl+5",), "file", "ready", 1),
    Command("shortcuts", _H, "&Keys and hints", ("F1",), "help"),
    Command("about", _H, "&About Checkpoint Inspector"),
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
        "undo": ready and screen.can_undo,
        "search": ready and screen.matches is not None,
        "matches": ready and bool(screen.matches),
    }[command.needs]


def key_text(command: Command) -> str:
    """Give a command's first key as this platform writes it."""
    sequences = _sequences(command)
    return sequences[0].toString(QKeySequence.SequenceFormat.NativeText) if sequences else ""


def build_menus(window: QMainWindow) -> dict[str, QMenu]:
    """Make the empty menus of a window."""
    return {title: window.menuBar().addMenu(title) for title in MENUS}


def build_actions(
    window: QMainWindow,
    menus: Mapping[str, QMenu],
    theme: Theme,
    handlers: Mapping[str, Callable[[], None]],
) -> dict[str, QAction]:
    """Make the actions of a window and put them into its menus.

    Raises:
        KeyError: A command has no handler.
    """
    actions: dict[str, QAction] = {}
    for title, menu in menus.items():
        menu.aboutToShow.connect(lambda menu=menu: draw_icons(menu.actions(), theme.tokens))
        group = 0
        for command in (command for command in COMMANDS if command.menu == title):
            if command.group != group:
                menu.addSeparator()
                group = command.group
            action = _build_action(window, command)
            action.triggered.connect(handlers[command.id])
            menu.addAction(action)
            actions[command.id] = action
    return actions


def _build_action(window: QMainWindow, command: Command) -> QAction:
    action = QAction(command.text, window)
    action.setObjectName(command.id)
    action.setShortcuts(_sequences(command))
    if command.icon:
        name_icon(action, command.icon)
    return action


def _sequences(command: Command) -> list[QKeySequence]:
    sequences: list[QKeySequence] = []
    for key in command.keys:
        if isinstance(key, str):
            sequences.append(QKeySequence(key))
        else:
            sequences += QKeySequence.keyBindings(key)[:1]
    return sequences

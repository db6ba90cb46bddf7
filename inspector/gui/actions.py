"""Everything that the window can do, in one table: its menus, toolbar, keys and help are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

from inspector.gui.commands import Commands
from inspector.gui.pages.registry import PAGES, Page, page_keys
from inspector.gui.theme.icons import draw_icons, name_icon
from inspector.gui.theme.theme import Theme
from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.session.screen import Screen

Need = Literal[
    "nothing",
    "file",
    "ready",
    "ask",
    "compare",
    "code",
    "export",
    "undo",
    "search",
    "matches",
    "back",
    "forward",
    "undo_map",
    "redo_map",
]
MENUS = ("&File", "&Edit", "&View", "&Help")
_STANDARD = QKeySequence.StandardKey


@dataclass(frozen=True, slots=True)
class Action:
    """One row of the table, which reads best without the names of its first columns.

    Attributes:
        id: The name of its `QAction`.
        keys: Its key sequences; the platform's own where Qt knows one.
        icon: The icon's name, or empty.
        group: Actions of one menu with the same group stand together.
        in_tree: Its place in the context menu of the tree; 0 leaves it out.
    """

    id: str
    menu: str
    text: str
    run: Callable[[Commands], None]
    keys: tuple[str | QKeySequence.StandardKey, ...] = ()
    icon: str = ""
    needs: Need = "nothing"
    group: int = 0
    on_toolbar: bool = False
    in_tree: int = 0

    @property
    def sequences(self) -> list[QKeySequence]:
        found: list[QKeySequence] = []
        for key in self.keys:
            found += [QKeySequence(key)] if isinstance(key, str) else QKeySequence.keyBindings(key)[:1]
        return found


_F, _E, _V, _H = MENUS
_C = Commands


def page_actions(pages: tuple[Page, ...]) -> tuple[Action, ...]:
    """Return the actions that turn to pages."""
    return tuple(
        Action(
            f"page_{page.id}",
            _V,
            page.text,
            partial(_C.on_page, page=page.id),
            tuple(filter(None, (key, *page.old_keys))),
            page.icon,
            "ready",
            2,
        )
        for page, key in zip(pages, page_keys(pages), strict=True)
    )


ACTIONS = (
    Action("open", _F, "&Open\u2026", _C.on_open, (_STANDARD.Open,), "open", on_toolbar=True),
    Action("open_folder", _F, "Open &folder\u2026", _C.on_open_folder, ("Ctrl+Shift+O",), "open"),
    Action("demo", _F, "Open the &demo checkpoint", _C.on_demo, icon="spark"),
    Action("reload", _F, "&Reload", _C.on_reload, ("F5", "Ctrl+R"), "reload", "file", 1, on_toolbar=True),
    Action("check", _F, "Chec&k every byte", _C.on_check, (), "shield", "ready", 1),
    Action("compare", _F, "Comp&are with\u2026", _C.on_compare, ("Ctrl+D",), "swap", "compare", 1),
    Action("series", _F, "Compare a &series of checkpoints\u2026", _C.on_series, group=1),
    Action("export", _F, "&Export fixed copy\u2026", _C.on_export, ("Ctrl+E",), "export", "export", 2),
    Action("undo", _F, "&Undo the change to this file", _C.on_undo, needs="undo", group=2),
    Action("machine", _F, "Load on another &machine\u2026", _C.on_machine, (), "machine", "ready", 2),
    Action("python", _F, "&Python of this machine\u2026", _C.on_python, (), "machine", "ready", 2),
    Action("close", _F, "&Close", _C.on_close, ("Ctrl+W",), group=3),
    Action("quit", _F, "&Quit", _C.on_quit, ("Ctrl+Q",), group=3),
    Action("undo_map", _E, "&Undo", _C.on_undo_map, (_STANDARD.Undo,), needs="undo_map", group=-1),
    Action("redo_map", _E, "Re&do", _C.on_redo_map, ("Ctrl+Shift+Z",), needs="redo_map", group=-1),
    Action("copy_rows", _E, "&Copy rows", _C.on_copy_rows, (_STANDARD.Copy,), "copy", "ready", in_tree=3),
    Action("copy_path", _E, "Copy &path", _C.on_copy_path, needs="ready", in_tree=1),
    Action(
        "copy_expression", _E, "Copy as Python e&xpression", _C.on_copy_expression, needs="ready", in_tree=2
    ),
    Action("copy_code", _E, "Copy &loading code", _C.on_copy_code, ("Ctrl+Shift+C",), "code", "code"),
    Action("copy_command", _E, "Copy the map as a co&mmand", _C.on_copy_command, needs="export"),
    Action(
        "paste_error",
        _E,
        "Explain an e&rror message\u2026",
        _C.on_paste_error,
        ("Ctrl+Shift+V",),
        "paste",
        "ask",
        1,
    ),
    Action("check_script", _E, "Check a &script\u2026", _C.on_check_script, (), "code", "ready", 1),
    Action("find", _E, "&Find\u2026", _C.on_find, (_STANDARD.Find,), "search", "ready", 2),
    Action("find_next", _E, "Find &next", _C.on_find_next, ("F3",), "", "matches", 2),
    Action("find_previous", _E, "Find pre&vious", _C.on_find_previous, ("Shift+F3",), "", "matches", 2),
    Action("find_end", _E, "&End the search", _C.on_find_end, ("Esc",), "", "search", 2),
    Action("expand", _V, "&Expand all below", _C.on_expand, ("Ctrl++", "Ctrl+="), "", "ready", in_tree=4),
    Action("collapse", _V, "Co&llapse all", _C.on_collapse, ("Ctrl+-",), "", "ready", in_tree=5),
    Action("flat", _V, "As &a list or a tree", _C.on_flat, ("Ctrl+L",), needs="ready"),
    Action("back", _V, "Bac&k to the last row", _C.on_back, ("Alt+Left",), needs="back", group=1),
    Action("forward", _V, "For&ward again", _C.on_forward, ("Alt+Right",), needs="forward", group=1),
    *page_actions(PAGES),
    Action("larger", _V, "Lar&ger text", _C.on_larger, ("Ctrl+Alt+=", "Ctrl+Alt++"), group=3),
    Action("smaller", _V, "&Smaller text", _C.on_smaller, ("Ctrl+Alt+-",), group=3),
    Action("normal_text", _V, "&Normal size of text", _C.on_normal_text, ("Ctrl+0",), group=3),
    Action("palette", _H, "&Find an action\u2026", _C.on_palette, ("Ctrl+Shift+P",), "search"),
    Action("shortcuts", _H, "&Keyboard shortcuts and search", _C.on_shortcuts, ("F1",), "help"),
    Action("log", _H, "&Log\u2026", _C.on_log),
    Action("diagnostics", _H, "&Copy diagnostics", _C.on_diagnostics, (), "copy"),
    Action("about", _H, "&About Checkpoint Inspector", _C.on_about),
)


def is_usable(action: Action, screen: Screen) -> bool:
    ready = screen.phase == "ready"
    return {
        "nothing": True,
        "file": screen.phase in {"ready", "checkpoints", "failed"},
        "ready": ready,
        "ask": ready or screen.phase == "empty",
        "compare": ready or screen.phase == "checkpoints",
        "code": ready and screen.code is not None,
        "export": ready and screen.can_export,
        "undo": ready and screen.can_undo,
        "search": ready and screen.matches is not None,
        "matches": ready and bool(screen.matches),
        "undo_map": ready and bool(screen.edits[0]),
        "redo_map": ready and bool(screen.edits[1]),
        "back": ready and screen.can_go[0],
        "forward": ready and screen.can_go[1],
    }[action.needs]


def say_edits(made: Mapping[str, QAction], screen: Screen) -> None:
    for id_, verb, edit in zip(("undo_map", "redo_map"), ("&Undo", "Re&do"), screen.edits, strict=True):
        made[id_].setText(f"{verb} {edit.replace('&', '&&')}".rstrip())


def build_menus(window: QMainWindow) -> dict[str, QMenu]:
    return {title: window.menuBar().addMenu(title) for title in MENUS}


def build_actions(
    window: QMainWindow, menus: Mapping[str, QMenu], theme: Theme, commands: Commands
) -> dict[str, QAction]:
    """Make the actions of a window and put them into its menus; return them by their ids."""
    made: dict[str, QAction] = {}
    for title, menu in menus.items():
        menu.aboutToShow.connect(lambda menu=menu: draw_icons(menu.actions(), theme.tokens))
        group = 0
        for action in (action for action in ACTIONS if action.menu == title):
            if action.group != group:
                menu.addSeparator()
                group = action.group
            made[action.id] = _build_action(window, action, commands)
            menu.addAction(made[action.id])
    return made


def toolbar_actions(made: Mapping[str, QAction]) -> list[QAction]:
    return [made[action.id] for action in ACTIONS if action.on_toolbar]


def _build_action(window: QMainWindow, action: Action, commands: Commands) -> QAction:
    made = QAction(action.text, window)
    made.setObjectName(action.id)
    made.setShortcuts(action.sequences)
    if action.icon:
        name_icon(made, action.icon)
    made.triggered.connect(lambda: action.run(commands))
    return made

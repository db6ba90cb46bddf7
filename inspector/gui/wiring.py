"""Which wish of which widget goes to which command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.gui.workspace.workspace import Workspace


def connect_workspace(space: Workspace, commands: Commands) -> None:
    """Connect the parts of a workspace; the tree's menu is the window's own."""
    space.tree.node_chosen.connect(commands.on_node_chosen)
    space.tree.node_activated.connect(commands.on_node_activated)
    space.banner.export_wanted.connect(commands.on_export)
    space.banner.copy_code_wanted.connect(commands.on_copy_code)
    space.banner.why_wanted.connect(commands.on_page_findings)
    space.device_map.mapping_chosen.connect(commands.on_mapping_chosen)
    space.device_map.branch_removed.connect(commands.on_branch_removed)
    space.changed.reload_wanted.connect(commands.on_reload)
    space.pages.node_wanted.connect(commands.on_node_wanted)
    space.pages.fix_wanted.connect(commands.on_fix_wanted)
    space.pages.error_pasted.connect(commands.on_error_pasted)
    space.pages.check_wanted.connect(commands.on_check)
    space.pages.check_cancelled.connect(commands.on_check_cancelled)
    space.pages.loading_chosen.connect(commands.on_loading_chosen)
    space.pages.style_chosen.connect(commands.on_style_chosen)
    space.pages.copy_code_wanted.connect(commands.on_copy_code)

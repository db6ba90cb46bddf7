"""What the window asks of the session: one method for each thing that a person can want."""

from __future__ import annotations

from typing import Protocol

from inspector.session.screen import ExportWish, Fix, Loading, Screen


class Intentions(Protocol):
    """The controller as the window sees it; each call ends in `View.show_screen`."""

    @property
    def screen(self) -> Screen:
        """The screen that was shown last."""

    def open(self, path: str) -> None:
        """Open a file in place of the present one."""

    def open_demo(self) -> None:
        """Open the demo checkpoint that ships with the program."""

    def reload(self) -> None:
        """Read the file again."""

    def close(self) -> None:
        """Let go of the file and go back to the empty window."""

    def set_target(self, target: str) -> None:
        """Choose the machine that the file shall load on."""

    def set_mapping(self, device: str, to: str) -> None:
        """Choose where the tensors of one original device go."""

    def use_machine(self, path: str) -> None:
        """Choose the machine that a file describes."""

    def remove_branch(self, pattern: str) -> None:
        """Let a part of the tree go where its devices go."""

    def apply_fix(self, fix: Fix) -> None:
        """Do what mends a finding."""

    def set_loading(self, loading: Loading) -> None:
        """Choose how many processes load the file, and whether they map it."""

    def explain_error(self, text: str) -> None:
        """Say what an error message means for this file."""

    def select(self, node: int | None) -> None:
        """Show the facts of a tree node."""

    def search(self, query: str) -> None:
        """Look for tree nodes; an empty query ends the search."""

    def set_code_style(self, style: str) -> None:
        """Choose the style of the loading snippet."""

    def start_job(self, kind: str) -> None:
        """Answer a question about the file that takes long, such as whether all its bytes are intact."""

    def stop_job(self, kind: str) -> None:
        """Stop looking for the answer."""

    def begin_export(self) -> None:
        """Ask for the export dialog."""

    def change_export(self, wish: ExportWish) -> None:
        """Ask for something else to be written."""

    def undo_export(self) -> None:
        """Restore the file as it was before it was changed in place."""

    def save_receipt(self, destination: str) -> None:
        """Write what was done to a copy into a small file."""

    def export(self, destination: str, *, overwrite: bool = False) -> None:
        """Write the fixed copy."""

    def cancel_export(self) -> None:
        """Stop the running export."""

    def resume_export(self) -> None:
        """Go back to the draft of an export that failed."""

    def end_export(self) -> None:
        """Leave the export."""

    def cancel_opening(self) -> None:
        """Stop reading the file."""

    def dispose(self) -> None:
        """Let go of everything: the window is closed."""

    def node_path(self, node: int) -> str:
        """Give the path of a node as the command line writes it."""

    def node_expression(self, node: int) -> str:
        """Give a Python expression that reaches a node from the loaded checkpoint."""

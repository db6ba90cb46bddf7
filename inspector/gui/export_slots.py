"""What the export dialog asks of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from inspector.gui.commands import Frame
    from inspector.gui.dialogs.export.dialog import ExportDialog
    from inspector.session.screen import ExportWish


class ExportSlots(QObject):
    """The slots behind the export dialog of one window."""

    def __init__(self, window: Frame) -> None:
        super().__init__(window)
        self._window = window

    def connect_dialog(self, dialog: ExportDialog) -> None:
        """Connect a dialog."""
        dialog.export_wanted.connect(self.on_export_to)
        dialog.wish_changed.connect(self.on_changed)
        dialog.undo_wanted.connect(self.on_undone)
        dialog.receipt_wanted.connect(self.on_receipt)
        dialog.cancel_wanted.connect(self.on_cancel)
        dialog.back_wanted.connect(self.on_back)
        dialog.ended.connect(self.on_ended)

    def on_export_to(self, destination: str, overwrite: bool) -> None:  # noqa: FBT001  # a signal's argument
        """Write the fixed copy."""
        if self._window.session:
            self._window.session.export(destination, overwrite=overwrite)

    def on_changed(self, wish: ExportWish) -> None:
        """Propose something else to be written."""
        if self._window.session:
            self._window.session.change_export(wish)

    def on_undone(self) -> None:
        """Restore the file as it was before it was changed in place."""
        if self._window.session:
            self._window.session.undo_export()

    def on_receipt(self, destination: str) -> None:
        """Write the receipt of the last copy."""
        if self._window.session:
            self._window.session.save_receipt(destination)

    def on_cancel(self) -> None:
        """Stop the running export."""
        if self._window.session:
            self._window.session.cancel_export()

    def on_back(self) -> None:
        """Go back to the draft."""
        if self._window.session:
            self._window.session.resume_export()

    def on_ended(self) -> None:
        """Leave the export."""
        if self._window.session:
            self._window.session.end_export()

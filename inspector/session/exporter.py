"""The exports of one window, one at a time: proposed, carried out by a worker, undone, receipted."""

from __future__ import annotations

from collections.abc import Callable

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.session.export_kinds import first_wish
from inspector.session.export_work import Order, Outcome, carry_out, save_receipt, undo
from inspector.session.exporting import draft_of
from inspector.session.exports import ExportDraft, ExportResult, ExportWish
from inspector.session.failing import failure_page
from inspector.session.mapping import DeviceMap
from inspector.session.screen import TaskRunner, View

_NO_COPY = "No copy was written"
_NOT_UNDONE = "The change was not undone"
_NO_RECEIPT = "The receipt was not written"


class Exporter:
    """Holds what was asked for last, and what came of it."""

    def __init__(self, view: View, runner: TaskRunner, reload: Callable[[], None]) -> None:
        """Prepare.

        Args:
            view: The window.
            runner: Runs work away from the main thread.
            reload: Reads the window's file again, after it was changed itself.
        """
        self._view = view
        self._runner = runner
        self._reload = reload
        self._wish = ExportWish()
        self._work: Progress | None = None
        self._outcome: Outcome | None = None

    def propose(self, device_map: DeviceMap | None, wish: ExportWish | None = None) -> None:
        """Ask the view for the destination of what is wished for, or of what the file needs."""
        if device_map is not None and self._can_be_carried_out(device_map):
            wished = self._wish = wish or first_wish(device_map.checkpoint)
            progress = Progress("looking at what it would hold")
            self._runner.run(
                lambda _: draft_of(device_map, wished),
                progress,
                self._on_drafted,
                lambda error: self._on_failed(progress, error),
            )

    def write(self, device_map: DeviceMap | None, destination: str, *, overwrite: bool) -> None:
        """Write it, unless work is under way."""
        if device_map is None or self._work is not None or not self._can_be_carried_out(device_map):
            return
        order = Order(device_map=device_map, wish=self._wish, destination=destination, overwrite=overwrite)
        progress = self._work = Progress("copying")
        self._view.show_export_running(progress)
        self._runner.run(
            lambda running: carry_out(order, running),
            progress,
            lambda outcome: self._on_done(progress, outcome),
            lambda error: self._on_failed(progress, error),
        )

    def take_back(self, path: str) -> None:
        """Undo a change of the file itself."""
        self._runner.run(
            lambda _: undo(path),
            Progress("restoring"),
            self._on_restored,
            lambda error: self._view.show_notice(failure_page(error, _NOT_UNDONE)),
        )

    def save_receipt(self, destination: str) -> None:
        """Write the receipt of the last copy."""
        outcome = self._outcome
        if outcome is not None:
            self._runner.run(
                lambda running: save_receipt(outcome, destination, running),
                Progress("writing the receipt"),
                lambda _: None,
                lambda error: self._view.show_notice(failure_page(error, _NO_RECEIPT)),
            )

    def cancel(self) -> None:
        """Stop the running export, if any."""
        if self._work is not None:
            self._work.cancel()
            self._work = None

    def _can_be_carried_out(self, device_map: DeviceMap) -> bool:
        """Say whether the map can be carried out; the view says why not."""
        if device_map.refusal is not None:
            self._view.show_export_failed(failure_page(device_map.refusal, _NO_COPY), cancelled=False)
        return device_map.refusal is None

    def _on_drafted(self, draft: ExportDraft) -> None:
        """Show a draft, unless something else is wished for by now."""
        if draft.wish == self._wish:
            self._view.show_export(draft)

    def _on_done(self, progress: Progress, outcome: Outcome) -> None:
        self._end(progress)
        self._outcome = outcome
        self._view.show_export_done(outcome.result)
        if outcome.result.can_undo:
            self._reload()

    def _on_failed(self, progress: Progress, error: Exception) -> None:
        self._end(progress)
        cancelled = isinstance(error, CancelledError)
        self._view.show_export_failed(failure_page(error, _NO_COPY), cancelled=cancelled)

    def _on_restored(self, result: ExportResult) -> None:
        self._view.show_export_done(result)
        self._reload()

    def _end(self, progress: Progress) -> None:
        """Forget a piece of work, but not another that was begun after it was cancelled."""
        if self._work is progress:
            self._work = None

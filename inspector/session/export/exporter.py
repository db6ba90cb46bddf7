"""The exports of one window, one at a time: proposed, carried out by a worker, undone, receipted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.device_map import DeviceMap
from inspector.session.export.kinds import IN_PLACE, first_wish
from inspector.session.export.page import ExportDraft, ExportResult, ExportWish
from inspector.session.export.proposal import draft_of
from inspector.session.export.work import Order, Outcome, carry_out, save_receipt, undo
from inspector.session.failing import failure_page
from inspector.session.screen import ExportPage, TaskRunner

Ask = Callable[[], DeviceMap]
"""Works the device map out, in the worker: with many tensors that takes a while."""
T = TypeVar("T")

_COPYING, _CHANGING = "Writing the copy", "Changing the file"
_UNDOING, _RECEIPT = "Undoing the change", "Writing the receipt"
_NO_COPY = "No copy was written"
_NOT_CHANGED = "The file was not changed"
_NOT_UNDONE = "The change was not undone"
_NO_RECEIPT, _SAVED = "The receipt was not written", "The receipt is saved."


class Exporter:
    """Takes one export through its stages; the answer of a worker that nobody waits for is dropped."""

    def __init__(
        self, runner: TaskRunner, show: Callable[[ExportPage | None], None], reload: Callable[[], None]
    ) -> None:
        """Prepare.

        Args:
            runner: Runs work away from the main thread.
            show: Called with each new stage, and with None when there is no export any more.
            reload: Reads the window's file again, after it was changed itself.
        """
        self._runner = runner
        self._show = show
        self._reload = reload
        self._page: ExportPage | None = None
        self._draft: ExportDraft | None = None
        self._work: Progress | None = None
        self._outcome: Outcome | None = None

    def propose(self, ask: Ask, wish: ExportWish | None = None) -> None:
        """Work out the draft of what is wished for, or of what the file needs."""
        if self._is_running():
            return
        if wish is None:
            self._draft = None
        # The last draft stays in sight until the next one is there.
        draft = replace(self._draft, wish=wish) if self._draft is not None and wish is not None else None
        self._run(
            ExportPage(stage="looking", draft=draft),
            "looking at what it would hold",
            lambda _: _draft(ask, wish),
            self._on_drafted,
            partial(self._on_failed, _NO_COPY),
        )

    def write(self, ask: Ask, destination: str, *, overwrite: bool) -> None:
        """Write what the draft says, if there is one to be carried out."""
        draft = self._draft
        if draft is None or draft.refusal or self._page is None or self._page.stage != "draft":
            return
        in_place = draft.wish.kind == IN_PLACE
        self._run(
            ExportPage(stage="running", draft=draft, title=_CHANGING if in_place else _COPYING),
            "copying",
            lambda running: _carry_out(ask, draft.wish, destination, overwrite, running),
            self._on_written,
            partial(self._on_failed, _NOT_CHANGED if in_place else _NO_COPY),
        )

    def take_back(self, path: str) -> None:
        """Undo a change of the file itself."""
        if self._is_running():
            return
        self._draft = None
        self._run(
            ExportPage(stage="running", title=_UNDOING),
            "restoring",
            lambda _: undo(path),
            partial(self._tell, changed=True),
            partial(self._on_failed, _NOT_UNDONE),
        )

    def save_receipt(self, destination: str) -> None:
        """Write the receipt of the last copy; the copy stands, whatever comes of that."""
        page, outcome = self._page, self._outcome
        if page is None or page.result is None or outcome is None:
            return
        self._run(
            replace(page, stage="running", title=_RECEIPT, result=None),
            "writing the receipt",
            lambda running: save_receipt(outcome, destination, running),
            lambda _: self._turn_to(_with_line(page, _SAVED)),
            partial(self._on_no_receipt, page),
        )

    def cancel(self) -> None:
        """Ask the running work to stop; how it ended is shown when it has."""
        if self._page is not None and self._page.stage == "running" and self._work is not None:
            self._work.cancel()
            self._turn_to(replace(self._page, stopping=True))

    def resume(self) -> None:
        """Go back to the draft of an export that failed."""
        if self._page is not None and self._page.stage == "failed" and self._draft is not None:
            self._turn_to(ExportPage(stage="draft", draft=self._draft))

    def end(self) -> None:
        """Let go of the export, whatever it is at; nothing more is shown of it."""
        if self._work is not None:
            self._work.cancel()
        self._work = self._outcome = self._draft = None
        if self._page is not None:
            self._turn_to(None)

    def _is_running(self) -> bool:
        return self._page is not None and self._page.stage == "running"

    def _turn_to(self, page: ExportPage | None) -> None:
        self._page = page
        self._show(page)

    def _run(
        self,
        page: ExportPage,
        label: str,
        work: Callable[[Progress], T],
        on_done: Callable[[T], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Show a page while work runs; its answer goes to one of two callbacks, unless other work began."""
        if self._work is not None:
            self._work.cancel()  # a draft that is no longer wished for
        progress = self._work = Progress(label)
        self._turn_to(replace(page, progress=progress))
        self._runner.run(
            work,
            progress,
            partial(self._settle, progress, on_done),
            partial(self._settle, progress, on_failed),
        )

    def _settle(self, progress: Progress, tell: Callable[[T], None], answer: T) -> None:
        if self._work is progress:
            self._work = None
            tell(answer)

    def _on_drafted(self, draft: ExportDraft) -> None:
        self._draft = draft
        self._turn_to(ExportPage(stage="draft", draft=draft))

    def _on_written(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._tell(outcome.result, changed=outcome.result.can_undo)

    def _tell(self, result: ExportResult, *, changed: bool) -> None:
        """Show what was done; a file that was changed itself is read again below that."""
        self._turn_to(ExportPage(stage="done", draft=self._draft, result=result))
        if changed:
            self._reload()

    def _on_failed(self, title: str, error: Exception) -> None:
        failure, cancelled = failure_page(error, title), isinstance(error, CancelledError)
        self._turn_to(ExportPage(stage="failed", draft=self._draft, failure=failure, cancelled=cancelled))

    def _on_no_receipt(self, page: ExportPage, error: Exception) -> None:
        said = failure_page(error, _NO_RECEIPT)
        line = f"{said.title}: {said.what}."
        self._turn_to(page if isinstance(error, CancelledError) else _with_line(page, line, is_bad=True))


def _draft(ask: Ask, wish: ExportWish | None) -> ExportDraft:
    device_map = _feasible(ask)
    return draft_of(device_map, wish or first_wish(device_map.checkpoint))


def _carry_out(ask: Ask, wish: ExportWish, destination: str, overwrite: bool, progress: Progress) -> Outcome:  # noqa: FBT001 - within the module
    order = Order(device_map=_feasible(ask), wish=wish, destination=destination, overwrite=overwrite)
    return carry_out(order, progress)


def _feasible(ask: Ask) -> DeviceMap:
    """Return the device map.

    Raises:
        PlanError: It cannot be carried out.
    """
    device_map = ask()
    if device_map.refusal is not None:
        raise device_map.refusal
    return device_map


def _with_line(page: ExportPage, line: str, *, is_bad: bool = False) -> ExportPage:
    """Return a page of the same result with one more line, or one more warning."""
    result = page.result
    if result is None:
        return page
    lines, warnings = (
        tuple(said for said in known if said != line) for known in (result.lines, result.warnings)
    )
    if is_bad:
        return replace(page, result=replace(result, lines=lines, warnings=(*warnings, line)))
    return replace(page, result=replace(result, lines=(*lines, line), warnings=warnings))

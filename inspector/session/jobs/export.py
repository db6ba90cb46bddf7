"""Exports, one at a time: the draft, the copy or the change in place, its undo, and the receipt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.jobs.open import Files
from inspector.session.present.failure import failure_page
from inspector.session.state import EXPORT, THIS, ExportState
from inspector.session.targets import target_of

if TYPE_CHECKING:
    from inspector.remap.torch_check import TorchCheck
    from inspector.session.export.looking import Wanted
    from inspector.session.export.page import Destination, ExportDraft, ExportResult, ExportWish
    from inspector.session.export.work import Outcome

T = TypeVar("T")

_LOOK, _FIND, _TRY = "destination", "export-search", "try"
_NO_COPY = "No copy was written"
_NOT_CHANGED = "The file was not changed"
_NOT_UNDONE = "The change was not undone"
_NO_RECEIPT, _SAVED = "The receipt was not written", "The receipt is saved."


class Exports(Files):
    """The intentions about the export; all that is known of it is in the state."""

    def begin_export(self) -> None:
        """Open the export dialog with a draft."""
        self._propose(ExportState(step="draft"))

    def begin_export_without(self, nodes: tuple[int, ...]) -> None:
        """Open the export dialog with a draft that leaves some rows of the tree out."""
        self._propose(ExportState(step="draft", picks=((nodes, False),)))

    def change_export(self, wish: ExportWish) -> None:
        """Ask for a draft of something else; the last one stays on the screen until that is ready."""
        self._propose(replace(_draft_again(self._export), wish=wish))

    def look_at_destination(self, path: str) -> None:
        """Look up what exists at a path that was typed as the destination."""
        from inspector.session.export import steps  # noqa: PLC0415 - most windows export nothing

        if self._state.export is not None:
            wanted = self._wanted
            look_at = steps.look_at
            self._run(_LOOK, "looking at a folder", lambda _: look_at(path, wanted), self._on_looked_at)

    def choose_rows(self, nodes: tuple[int, ...], written: bool) -> None:  # noqa: FBT001 - a signal's argument
        """Have some rows of the tree written, or left out; each stands for all below it."""
        if self._export.draft is not None:
            self._propose(replace(_draft_again(self._export), picks=(*self._export.picks, (nodes, written))))

    def search_export(self, query: str) -> None:
        """Look for rows of the file among those that can be left out; an empty query ends that."""
        if self._state.export is None or self._ready is None:
            return
        from inspector.session.present.compose import ask  # noqa: PLC0415 - after the tree

        begun = replace(self._state, export=replace(self._export, query=query))
        sought = replace(self._state, query=query)
        self._run(_FIND, "searching", lambda _: ask(sought, "matches"), self._on_found, state=begun)

    def export(self, destination: str, overwrite: bool = False) -> None:  # noqa: FBT001, FBT002 - a signal's argument
        """Write what the draft shows, unless another draft is under way or it is written already."""
        from inspector.session.export import steps  # noqa: PLC0415 - as above

        draft = self._export.offered
        if self._may_work and draft is not None and not self._is_busy:
            title = _NOT_CHANGED if draft.in_place else _NO_COPY
            place = steps.absolute(destination, self._state.path)
            write = partial(steps.carry_out, self._state, draft.wish, place, overwrite=overwrite)
            self._work(replace(self._export, step="write"), "copying", write, self._on_written, title)

    def undo_export(self) -> None:
        """Restore the file as it was before it was changed in place."""
        from inspector.session.export import steps  # noqa: PLC0415 - as above

        if self._may_work:
            restore = partial(steps.undo, self._state.path, target_of(self._state))
            self._work(ExportState(step="undo"), "restoring", restore, self._on_written, _NOT_UNDONE)

    def save_receipt(self, destination: str) -> None:
        """Write what was done to a copy, and how it was checked, into a small file."""
        from inspector.session.export import steps  # noqa: PLC0415 - as above

        outcome = self._export.outcome
        if outcome is None or outcome.copied is None or self._is_busy:
            return
        self._run(
            EXPORT,
            "writing the receipt",
            partial(steps.save_receipt, outcome.copied, destination),
            lambda _: self._on_receipt(None),
            self._on_receipt,
            state=replace(self._state, export=replace(self._export, step="receipt")),
        )

    def cancel_export(self) -> None:
        """Ask the running export to stop; how it ended is shown when it has."""
        job = self._state.job(EXPORT)
        if job is not None and self._export.step != "draft":
            job.progress.cancel()
            self._show(self._state)

    def resume_export(self) -> None:
        """Go back to the draft of an export that failed."""
        if self._export.failure is not None and self._export.draft is not None:
            self._show(replace(self._state, export=_draft_again(self._export)))

    def end_export(self) -> None:
        """Leave the export at any stage; a running one is cancelled, and its result dropped."""
        if self._state.export is not None:
            state = self._state
            for kind in (EXPORT, _LOOK, _FIND, _TRY):
                state = state.without_job(kind)
            self._show(replace(state, export=None))

    # --- how it stands --------------------------------------------------------------------------------------

    @property
    def _export(self) -> ExportState:
        return self._state.export or ExportState(step="draft")

    @property
    def _is_busy(self) -> bool:
        return self._state.job(EXPORT) is not None

    @property
    def _may_work(self) -> bool:
        """Whether there is a file, and nothing is being written."""
        return self._ready is not None and not (self._is_busy and self._export.step != "draft")

    @property
    def _wanted(self) -> Wanted:
        """What is about to be written, as far as a destination must fit it."""
        from inspector.session.export.looking import Wanted, wanted_by  # noqa: PLC0415 - as above

        document, draft = self._ready, self._export.draft
        if document is None or draft is None:
            return Wanted(source=self._state.path)
        return wanted_by(document.checkpoint, draft)

    # --- work -----------------------------------------------------------------------------------------------

    def _propose(self, export: ExportState) -> None:
        if self._may_work:
            from inspector.session.export import steps  # noqa: PLC0415 - as above

            work = partial(steps.propose, self._state, export)
            self._work(export, "preparing the export", work, self._on_drafted, _NO_COPY)

    def _work(
        self,
        export: ExportState,
        label: str,
        work: Callable[[Progress], T],
        on_done: Callable[[T], None],
        title: str,
    ) -> None:
        """Run a step of the export; `title` is that of the page if it fails."""
        state = replace(self._state.without_job(_TRY), export=export)
        self._run(EXPORT, label, work, on_done, partial(self._on_failed, title), state=state)

    def _turn_to(self, export: ExportState) -> None:
        self._show(replace(self._state, export=export))

    def _on_drafted(self, drafted: tuple[ExportDraft, Destination]) -> None:
        draft, found = drafted
        last, typed = self._export.draft, self._export.destination
        self._turn_to(replace(self._export, draft=draft, wish=draft.wish, picks=(), destination=found))
        if last is not None and typed is not None and typed.path not in {last.destination, found.path}:
            self.look_at_destination(typed.path)  # it was typed meanwhile

    def _on_looked_at(self, found: Destination) -> None:
        self._turn_to(replace(self._export, destination=found))

    def _on_found(self, matches: tuple[int, ...] | None) -> None:
        self._turn_to(replace(self._export, matches=matches))

    def _on_written(self, outcome: Outcome) -> None:
        self._turn_to(replace(self._export, outcome=outcome))
        if outcome.can_be_tried and self._state.target == THIS:
            from inspector.session.export.steps import try_with_torch  # noqa: PLC0415 - as above

            path, python = outcome.result.destination, self._state.python or None
            trial = partial(try_with_torch, path, python=python)
            self._run(_TRY, "asking torch to load it", trial, self._on_tried, _ignore, is_about_file=False)
        if outcome.changed:
            self._read(self._state)  # the result stays on the screen meanwhile

    def _on_tried(self, found: TorchCheck) -> None:
        from inspector.session.export.work import tried_result  # noqa: PLC0415 - as above

        outcome = self._export.outcome
        if outcome is not None:
            outcome = replace(outcome, result=tried_result(outcome.result, found))
            self._turn_to(replace(self._export, outcome=outcome))

    def _on_receipt(self, error: Exception | None) -> None:
        """Add what became of the receipt to the result; the copy stays either way."""
        outcome = self._export.outcome
        if outcome is not None and not isinstance(error, CancelledError):
            outcome = replace(outcome, result=_with_receipt(outcome.result, error))
        self._turn_to(replace(self._export, outcome=outcome))

    def _on_failed(self, title: str, error: Exception) -> None:
        failure, cancelled = failure_page(error, title), isinstance(error, CancelledError)
        self._turn_to(replace(self._export, failure=failure, cancelled=cancelled))


def _ignore(_: Exception) -> None:
    """Leave it at the judgment where torch cannot be asked."""


def _draft_again(last: ExportState) -> ExportState:
    return replace(last, step="draft", outcome=None, failure=None, cancelled=False)


def _with_receipt(result: ExportResult, error: Exception | None) -> ExportResult:
    """Return a result that ends with what became of the receipt, once."""
    failure = failure_page(error, _NO_RECEIPT) if error is not None else None
    line = _SAVED if failure is None else f"{failure.title}: {failure.what}."
    lines = tuple(said for said in result.lines if said != line)
    warnings = tuple(said for said in result.warnings if said != line)
    if failure is None:
        return replace(result, lines=(*lines, line), warnings=warnings)
    return replace(result, lines=lines, warnings=(*warnings, line))

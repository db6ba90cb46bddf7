"""What the session knows, as one frozen value; a screen is computed from nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inspector.records import dataclass, replace
from inspector.report.colors import device_name
from inspector.session.screen import Loading, Phase
from inspector.target.profile import Profile

if TYPE_CHECKING:
    from inspector.containers.source import Stamp
    from inspector.remap.rules import Rule
    from inspector.report.charts.areas import Property
    from inspector.report.outline.flat import Order
    from inspector.session.document import Document
    from inspector.session.export.page import Destination, ExportDraft, ExportWish
    from inspector.session.export.work import Outcome
    from inspector.session.folder import FolderState
    from inspector.session.history import MapEdit
    from inspector.session.log import LogLine
    from inspector.session.operations import Job
    from inspector.session.screen import FailurePage
    from inspector.session.values.page import SliceChoice
    from inspector.values.statistics import Scan

THIS = "this"
Picks = tuple[tuple[tuple[int, ...], bool], ...]
OPEN, FOLDER, PROBE, EXPORT, SEARCH, ASK = "open", "folder", "probe", "export", "search", "ask"
"""Kinds of jobs that decide what is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportState:
    """An export, as far as it got; its job shows whether a step of it runs.

    Attributes:
        wish: What to write; None for what suits the file.
        picks: Rows whose boxes were clicked since the last draft, and whether they are to be written.
        matches: The rows that were found; None without a search.
        cancelled: Whether it failed because it was cancelled.
    """

    step: Literal["draft", "write", "undo", "receipt"]
    wish: ExportWish | None = None
    draft: ExportDraft | None = None
    picks: Picks = ()
    query: str = ""
    matches: tuple[int, ...] | None = None
    destination: Destination | None = None
    outcome: Outcome | None = None
    failure: FailurePage | None = None
    cancelled: bool = False

    @property
    def offered(self) -> ExportDraft | None:
        """The draft that can be exported now, or None."""
        is_open = self.step == "draft" and self.failure is None
        return self.draft if is_open and self.draft is not None and not self.draft.refusal else None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The session's state.

    Attributes:
        page: The page that was turned to for this file; empty for the one that suits its verdict.
        on_disk: What the file looked like when it was looked at last; None when it was gone.
        beside: When the folder that it is in was seen to change last, 0 for never, and how often since the
            file was read: names that were free there may be taken.
        failure: Why it could not be opened.
        jobs: The jobs that run, and the results of those that ended.
        wanted: The device that is wanted there; empty for none, and ignored where there is no such device.
        python: What names the Python whose torch stands for this machine; empty for the one that counts.
        this_machine: What the probe found, or None as long as it has not (or there is none).
        machines: Other machines that were chosen in this window, the last one first.
        profiles: What names machines that were used before: a word for one, or the file of a profile.
        branches: Rules that the user chose for parts of the tree.
        picked: The selected tree nodes where there are several; else empty.
        visited: The nodes that were selected one after the other, and the place of the current one.
        flat: How a list in place of the tree is sorted; None for the tree.
        error_text: The message, or the script, that was pasted or dropped.
        script_name: The name of the script, where that is one and has a name.
        waiting: The (name, text) of a script that was dropped before its file; or None.
        export: How far an export is; None without one.
        style: The chosen style of code; empty for the one that fits the file best.
        edits: Changes of the map that can be undone, the last one last.
        looks_at_map: Whether the map of modules was looked at.
        map_by: What it is colored by; None for what tells most of a file.
        watches_values: Whether the values of the selected tensor are looked at.
        slice: The slice of it that was chosen; None for the first.
        sampled: What is odd about tensors that were read one by one; None where nothing is.
    """

    phase: Phase = "empty"
    path: str = ""
    page: str = ""
    document: Document | None = None
    folder: FolderState | None = None
    on_disk: Stamp | None = None
    beside: tuple[int, int] = (0, 0)
    failure: FailurePage | None = None
    jobs: tuple[Job, ...] = ()
    target: str = THIS
    wanted: str = ""
    python: str = ""
    this_machine: Profile | None = None
    machines: tuple[Profile, ...] = ()
    chosen: tuple[tuple[str, str], ...] = ()
    branches: tuple[Rule, ...] = ()
    selected: int | None = None
    picked: tuple[int, ...] = ()
    visited: tuple[tuple[int, ...], int] = ((), -1)
    flat: Order | None = None
    query: str = ""
    error_text: str = ""
    script_name: str = ""
    waiting: tuple[str, str] | None = None
    loading: Loading = Loading()
    export: ExportState | None = None
    style: str = ""
    recent: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    edits: tuple[MapEdit, ...] = ()
    undone: tuple[MapEdit, ...] = ()
    log: tuple[LogLine, ...] = ()
    looks_at_map: bool = False
    map_by: Property | None = None
    map_root: int = 0
    watches_values: bool = False
    slice: SliceChoice | None = None
    sampled: Scan | None = None

    @property
    def machine(self) -> Profile:
        """What is known of this machine; without a probe's answer it counts as having no GPU, and says so."""
        if self.this_machine is not None:
            return self.this_machine
        known = "taken as CPU only" if self.job(PROBE) is None else "looking for GPUs \u2026"
        return Profile(id=THIS, label=f"this machine ({known})")

    @property
    def ready(self) -> Document | None:
        """The document, if one is open and shown."""
        return self.document if self.phase == "ready" else None

    # --- jobs -----------------------------------------------------------------------------------------------

    def job(self, kind: str) -> Job | None:
        """Return the job of a kind, or None while that kind is idle."""
        return next((job for job in self.jobs if job.kind == kind), None)

    def has(self, job: Job) -> bool:
        """Return whether a job is here, running or ended."""
        return any(known.progress is job.progress for known in self.jobs)

    def with_job(self, job: Job) -> State:
        """Return a state with a job in place of the last one of its kind."""
        return replace(self, jobs=(*self.without_job(job.kind).jobs, job))

    def without_job(self, kind: str) -> State:
        """Return a state without the job of a kind."""
        return replace(self, jobs=tuple(job for job in self.jobs if job.kind != kind))

    # --- choices --------------------------------------------------------------------------------------------

    def without_file(self) -> State:
        """Return the state of the empty window with the same choices, without the jobs about the file."""
        return replace(
            self,
            phase="empty",
            path="",
            page="",
            document=None,
            folder=None,
            on_disk=None,
            beside=(0, 0),
            failure=None,
            jobs=tuple(job for job in self.jobs if job.about is None),
            chosen=(),
            branches=(),
            selected=None,
            picked=(),
            visited=((), -1),
            slice=None,
            sampled=None,
            query="",
            error_text="",
            script_name="",
            export=None,
            edits=(),
            undone=(),
            map_root=0,
        )

    def with_choice(self, device: str, to: str) -> State:
        """Send the tensors of one original device elsewhere."""
        return replace(self, chosen=tuple({**dict(self.chosen), device: to}.items()))

    def with_all(self, document: Document, to: str = "") -> State:
        """Send all that has data to one device, or without one, leave each device where it was saved."""
        names = (device_name(row.device) for row in document.totals if row.device != "meta")
        return replace(self, chosen=tuple((name, to or name) for name in names))

    def with_rule(self, rule: Rule, document: Document) -> State:
        """Add a rule to the map: for a part of the tree, or for each device of the file that it names."""
        if rule.path is not None:
            others = [known for known in self.branches if known.path != rule.path]
            return replace(self, branches=(rule, *others))
        going = {device_name(row.device): rule.to for row in document.totals if rule.matches(row.device, ())}
        return replace(self, chosen=tuple({**dict(self.chosen), **going}.items()))

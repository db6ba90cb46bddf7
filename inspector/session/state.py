"""What the session knows, as one frozen value; a screen is computed from nothing else."""

from __future__ import annotations

from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.rules import Rule
from inspector.session.checker import Check
from inspector.session.document import Document
from inspector.session.screen import ExportPage, FailurePage, Loading, Phase
from inspector.target.machine.profile import Profile

THIS = "this"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The session's state.

    Attributes:
        phase: What the window is about.
        path: The file, as it was asked for.
        document: The opened file.
        failure: Why it could not be opened.
        progress: The running work of opening.
        target: Id of the chosen target.
        this_machine: What the probe found, or None while it has not answered (or does not run).
        machines: Machines that files describe.
        probing: Whether a probe runs.
        chosen: Destinations that the person chose, by device.
        branches: Rules that the person chose for parts of the tree.
        selected: The selected tree node.
        query: The search.
        error_text: The message that was pasted.
        check: What is known of the file's bytes.
        export: How far an export is; None while nobody exports.
        loading: How the file shall be loaded, for the forecast of memory.
        style: The chosen style of code; empty for the one that fits the file best.
        recent: Files opened before, newest first.
    """

    phase: Phase = "empty"
    path: str = ""
    document: Document | None = None
    failure: FailurePage | None = None
    progress: Progress | None = None
    target: str = THIS
    this_machine: Profile | None = None
    machines: tuple[Profile, ...] = ()
    probing: bool = False
    chosen: tuple[tuple[str, str], ...] = ()
    branches: tuple[Rule, ...] = ()
    selected: int | None = None
    query: str = ""
    error_text: str = ""
    loading: Loading = Loading()
    check: Check = Check()
    export: ExportPage | None = None
    style: str = ""
    recent: tuple[str, ...] = ()

    @property
    def machine(self) -> Profile:
        """What is known of this machine; without a probe's answer it counts as having no GPU, and says so."""
        if self.this_machine is not None:
            return self.this_machine
        known = "looking for GPUs \u2026" if self.probing else "taken as CPU only"
        return Profile(id=THIS, label=f"this machine ({known})")

    def without_file(self) -> State:
        """Give the state of the empty window with the same choices."""
        return replace(
            self,
            phase="empty",
            path="",
            document=None,
            failure=None,
            progress=None,
            chosen=(),
            branches=(),
            selected=None,
            query="",
            error_text="",
            check=Check(),
        )

"""The session: one method for each thing that a user can do, each ending in a new screen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.history import redone, undone
from inspector.session.jobs.check import FILE_JOBS
from inspector.session.jobs.job import Job
from inspector.session.jobs.machines import Probe
from inspector.session.jobs.running import start, stop
from inspector.session.pasted import may_be_script
from inspector.session.present.presenter import Presenter
from inspector.session.screen import Loading
from inspector.session.state import THIS, State
from inspector.session.targets import targets_of
from inspector.session.values.intentions import Values

if TYPE_CHECKING:
    from inspector.model.findings import Fix
    from inspector.report.charts.areas import Property
    from inspector.session.view import TaskRunner, View

_MOST_ERROR_CHARS = 1 << 20


class Session(Values):
    """All intentions of one window, over one state; those about files, exports, rows and so on are inherited.

    Long work runs on the `TaskRunner` as jobs, each with its own progress and stopped on its own, see
    `jobs.running`. An intention about the file needs an open one: if it comes late, it is not about the next.
    """

    def __init__(  # noqa: PLR0913 - what it works with, and what was remembered
        self,
        view: View,
        runner: TaskRunner,
        recent: tuple[str, ...] = (),
        probe: Probe | None = None,
        target: str = THIS,
        *,
        wanted: str = "",
        python: str = "",
        profiles: tuple[str, ...] = (),
    ) -> None:
        """Start empty.

        Args:
            probe: Probes this machine; None to leave it unknown.
            target: The machine to begin with; ignored if it is not known.
            python: What names the Python whose torch stands for this machine; empty for the one that counts.
        """
        first = State(recent=recent, python=python, profiles=profiles)
        if any(choice.id == target for choice in targets_of(first)):
            first = replace(first, target=target, wanted=wanted)
        super().__init__(Presenter(view, runner, first), probe)

    def dispose(self) -> None:
        """Release the file and the window, which is closed; nothing may be called afterwards.

        Nothing is left that refers to itself in a circle: the collector never sees what was made before a
        large file was read.
        """
        self._end_readers()
        self._desk.dispose()

    # --- choices --------------------------------------------------------------------------------------------

    def set_mapping(self, device: str, to: str) -> None:
        """Choose where the tensors of one original device go."""
        if self._ready is not None:
            self._show(self._state.with_choice(device, to))

    def map_all(self, to: str) -> None:
        """Send the tensors of every original device to one."""
        if self._ready is not None:
            self._show(self._state.with_all(self._ready, to))

    def map_as_saved(self) -> None:
        """Leave the tensors of every original device where they were saved."""
        if self._ready is not None:
            self._show(self._state.with_all(self._ready))

    def map_as_suggested(self) -> None:
        """Forget what was chosen for the devices: they go where the file loads on the target."""
        if self._ready is not None:
            self._show(replace(self._state, chosen=()))

    def remove_branch(self, pattern: str) -> None:
        """Remove the rule for a part of the tree."""
        if self._ready is not None:
            branches = tuple(rule for rule in self._state.branches if rule.path != pattern)
            self._show(replace(self._state, branches=branches))

    def undo_map(self) -> None:
        """Undo the last change of the device map."""
        self._desk.show(undone(self._state))

    def redo_map(self) -> None:
        """Do again what was undone last."""
        self._desk.show(redone(self._state))

    def apply_fix(self, fix: Fix) -> None:
        """Apply the fix of a finding: change the map, or show the code."""
        document = self._ready
        if document is None:
            return
        if fix.rule:
            from inspector.remap.rules import parse_rule  # noqa: PLC0415 - findings come after the tree

            self._show(self._state.with_rule(parse_rule(fix.rule), document))
        else:
            self._show(replace(self._state, style=fix.style or self._state.style))
            self._desk.view.show_page("code")

    def set_loading(self, loading: Loading) -> None:
        """Choose how many processes load the file, and whether they map it."""
        self._show(replace(self._state, loading=loading))

    def explain_error(self, text: str) -> None:
        """Explain what an error message means for this file, or follow a script; an empty text ends that."""
        if self._ready is not None:
            name = self._state.script_name if may_be_script(text) else ""
            self._show(replace(self._state, error_text=text[:_MOST_ERROR_CHARS], script_name=name))

    def show_map(self, root: int) -> None:
        """Show the map of modules of one tree node and what is below it."""
        document = self._ready
        if document is not None and 0 <= root < len(document.tree.nodes):
            self._show(replace(self._state, map_root=root))

    def color_map(self, by: Property) -> None:
        """Show the map of modules, colored by a property of tensors; for files that are opened later too."""
        if self._state.map_by != by:
            self._show(replace(self._state, map_by=by))

    def set_code_style(self, style: str) -> None:
        """Choose the style of the loading snippet."""
        self._show(replace(self._state, style=style))

    # --- jobs about the file --------------------------------------------------------------------------------

    def start_job(self, kind: str) -> None:
        """Run one of `FILE_JOBS` on the open file, again if it has a result already."""
        if self._ready is not None:
            asked, path = FILE_JOBS[kind], self._state.path
            start(
                self._desk,
                Job(kind=kind, about=path, progress=Progress(asked.label)),
                partial(asked.work, path),
            )

    def stop_job(self, kind: str) -> None:
        """Stop it."""
        stop(self._desk, kind)

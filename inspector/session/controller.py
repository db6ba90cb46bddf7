"""The controller: one method for each thing a person can want, each ending in a new screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from inspector.errors import CancelledError, CheckpointError
from inspector.model.findings import Fix
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.rules import parse_rule
from inspector.resources import demo_path
from inspector.session.checker import Check, Checker
from inspector.session.document import Document, open_document
from inspector.session.export.exporter import Ask, Exporter
from inspector.session.export.page import ExportWish
from inspector.session.failing import failure_page, open_failure_page
from inspector.session.fixing import with_choice, with_rule
from inspector.session.nodes import expression_of_node, path_of_node
from inspector.session.present.compose import compose, device_map_of, target_of, targets_of
from inspector.session.present.presenter import Presenter
from inspector.session.screen import ExportPage, FailurePage, Loading, Screen, TaskRunner, View
from inspector.session.state import THIS, State
from inspector.target.machine.profile import Profile
from inspector.target.machine.profile_file import is_profile, read_profile

Probe = Callable[[Progress], Profile]
_MOST_RECENT = 8
_CANNOT_OPEN = "This file cannot be opened"
_NO_MACHINE = "This is no description of a machine"
_MOST_MACHINES = 8
_MOST_ERROR_CHARS = 1 << 20


class Session:
    """Holds the state of one window and computes its screens.

    Work runs on the `TaskRunner`; an answer to a question that is no longer asked is dropped. Each kind of
    work (opening, the check of all bytes, the export, the probe, working out a screen) has its own progress,
    and is canceled alone.
    """

    def __init__(
        self,
        view: View,
        runner: TaskRunner,
        recent: tuple[str, ...] = (),
        probe: Probe | None = None,
        target: str = THIS,
    ) -> None:
        """Start empty.

        Args:
            view: The window.
            runner: Runs work away from the main thread.
            recent: Files opened before, newest first.
            probe: Finds out about this machine; None where nobody waits for it.
            target: The machine that was chosen last; one that is no longer known is not chosen again.
        """
        self._view = view
        self._runner = runner
        self._probe = probe
        first = State(recent=recent)
        if any(choice.id == target for choice in targets_of(first)):
            first = replace(first, target=target)
        self._presenter = Presenter(view, runner, first)
        self._generation = 0
        self._work: Progress | None = None
        self._checker = Checker(runner, self._on_checked)
        self._exporter = Exporter(runner, self._on_exported, self._reread)

    @property
    def screen(self) -> Screen:
        """The screen that was shown last."""
        return self._presenter.screen

    def dispose(self) -> None:
        """Let go of the file and of the window, which is closed; nothing may be asked afterwards.

        Nothing is left that refers to itself in a circle: the collector never sees what was made before a
        large file was read.
        """
        self._stop_opening()
        self._checker.cancel()
        self._exporter.end()
        self._presenter.dispose()
        del self._checker, self._exporter

    # --- files ----------------------------------------------------------------------------------------------

    def open(self, path: str) -> None:
        """Open a file in place of the present one; what describes a machine says where that is to load."""
        if self._ready() is not None and path.endswith(".json"):
            self._open_json(path)
        else:
            self._open_file(path)

    def _open_json(self, path: str) -> None:
        """Find out whether a file describes a machine, and open it if it does not."""
        generation = self._generation

        def take(answer: object) -> None:  # an error is no yes
            if generation == self._generation:
                (self.use_machine if answer is True else self._open_file)(path)

        self._runner.run(lambda _: is_profile(path), Progress("looking at a file"), take, take)

    def _open_file(self, path: str) -> None:
        self._exporter.end()
        self._open(replace(self._state, path=path, chosen=(), branches=(), query=""))

    def open_demo(self) -> None:
        """Open the demo checkpoint that ships with the program."""
        self.open(str(demo_path()))

    def reload(self) -> None:
        """Read the file again; the target, the map and the search stay."""
        self._exporter.end()
        self._reread()

    def _reread(self) -> None:
        """Read the file again below what an export says."""
        if self._state.path:
            self._open(self._state)

    def close(self) -> None:
        """Let go of the file and go back to the empty window."""
        self._exporter.end()
        self._checker.cancel()
        self._stop_opening()
        self._show(self._state.without_file())

    def cancel_opening(self) -> None:
        """Stop reading the file; without it the window is empty."""
        if self._work is not None:
            self.close()

    def _stop_opening(self) -> None:
        """Wait for no answer any more."""
        self._generation += 1
        if self._work is not None:
            self._work.cancel()
            self._work = None

    def _open(self, state: State) -> None:
        self._checker.cancel()
        self._stop_opening()
        generation = self._generation
        progress = self._work = Progress("opening")
        path = state.path
        opening = replace(state.without_file(), phase="opening", path=path, progress=progress)
        self._show(replace(opening, chosen=state.chosen, branches=state.branches, query=state.query))
        asked = self._state
        self._runner.run(
            lambda running: _read(asked, path, running),
            progress,
            lambda found: self._on_read(generation, asked, found),
            lambda error: self._on_read(generation, asked, _Unread(page=failure_page(error, _CANNOT_OPEN))),
        )

    def _on_read(self, generation: int, asked: State, found: Document | _Unread) -> None:
        if generation != self._generation:
            return
        self._work = None
        if isinstance(found, _Unread):
            recent = tuple(
                known for known in self._state.recent if not found.gone or known != self._state.path
            )
            failed = replace(self._state, phase="failed", failure=found.page, progress=None, recent=recent)
            self._show(failed)
        else:
            self._presenter.note_worked_out(_opened(asked, found))
            self._on_opened(found)

    def _on_opened(self, document: Document) -> None:
        path = str(Path(self._state.path).absolute())
        recent = (path, *(known for known in self._state.recent if known != path))[:_MOST_RECENT]
        self._show(replace(_opened(self._state, document), recent=recent))
        self._start_probe()

    # --- this machine ---------------------------------------------------------------------------------------

    def _start_probe(self) -> None:
        """Ask once about this machine, after the first file stands on the screen."""
        if self._probe is None or self._state.probing or self._state.this_machine is not None:
            return
        self._show(replace(self._state, probing=True))
        self._runner.run(self._probe, Progress("looking for GPUs"), self._on_probed, self._on_probe_failed)

    def _on_probed(self, profile: Profile) -> None:
        self._show(replace(self._state, probing=False, this_machine=profile))

    def _on_probe_failed(self, _error: Exception) -> None:
        # Without an answer this machine counts as having no GPU, which is what its label says.
        self._show(replace(self._state, probing=False))

    # --- choices --------------------------------------------------------------------------------------------
    # What is about a file is asked of an open one only: a wish that comes late is not one about the next.

    def set_target(self, target: str) -> None:
        """Choose the machine that the file shall load on; the map follows it again."""
        self._show(replace(self._state, target=target, chosen=(), branches=()))

    def use_machine(self, path: str) -> None:
        """Choose the machine that a file describes."""
        self._runner.run(
            lambda _: read_profile(path),
            Progress("reading a machine profile"),
            self._on_machine_read,
            lambda error: self._view.show_notice(failure_page(error, _NO_MACHINE)),
        )

    def _on_machine_read(self, machine: Profile) -> None:
        others = [known for known in self._state.machines if known.id != machine.id]
        machines = (machine, *others)[:_MOST_MACHINES]
        self._show(replace(self._state, machines=machines, target=machine.id, chosen=(), branches=()))

    def set_mapping(self, device: str, to: str) -> None:
        """Choose where the tensors of one original device go."""
        if self._ready() is not None:
            self._show(with_choice(self._state, device, to))

    def remove_branch(self, pattern: str) -> None:
        """Let a part of the tree go where its devices go."""
        if self._ready() is not None:
            branches = tuple(rule for rule in self._state.branches if rule.path != pattern)
            self._show(replace(self._state, branches=branches))

    def apply_fix(self, fix: Fix) -> None:
        """Do what mends a finding: change the map, or show the code."""
        document = self._ready()
        if document is None:
            return
        if fix.rule:
            self._show(with_rule(self._state, parse_rule(fix.rule), document))
        else:
            self._show(replace(self._state, style=fix.style or self._state.style))
            self._view.show_page("code")

    def set_loading(self, loading: Loading) -> None:
        """Choose how many processes load the file, and whether they map it."""
        self._show(replace(self._state, loading=loading))

    def explain_error(self, text: str) -> None:
        """Say what an error message means for this file; an empty one ends that."""
        if self._ready() is not None:
            self._show(replace(self._state, error_text=text[:_MOST_ERROR_CHARS]))

    def select(self, node: int | None) -> None:
        """Show the facts of a tree node."""
        if self._ready() is not None:
            self._show(replace(self._state, selected=node))

    def search(self, query: str) -> None:
        """Look for tree nodes; an empty query ends the search."""
        if self._ready() is not None:
            self._show(replace(self._state, query=query))

    def set_code_style(self, style: str) -> None:
        """Choose the style of the loading snippet."""
        self._show(replace(self._state, style=style))

    # --- the file's bytes -----------------------------------------------------------------------------------

    def check_file(self) -> None:
        """Read all of the file, to see whether its bytes are those that were saved."""
        if self._ready() is not None:
            self._checker.start(self._state.path)

    def cancel_check(self) -> None:
        """Stop reading all of the file."""
        self._checker.cancel()
        self._on_checked(Check())

    def _on_checked(self, check: Check) -> None:
        self._show(replace(self._state, check=check))

    # --- export ---------------------------------------------------------------------------------------------

    def begin_export(self) -> None:
        """Ask what is to be written, and where to."""
        ask = self._asked_map()
        if ask is not None:
            self._exporter.propose(ask)

    def change_export(self, wish: ExportWish) -> None:
        """Ask for something else to be written."""
        ask = self._asked_map()
        if ask is not None:
            self._exporter.propose(ask, wish)

    def export(self, destination: str, overwrite: bool = False) -> None:  # noqa: FBT001, FBT002 - the view's contract
        """Write what the draft says, unless it is being worked out or work is under way."""
        ask = self._asked_map()
        if ask is not None:
            self._exporter.write(ask, destination, overwrite=overwrite)

    def cancel_export(self) -> None:
        """Stop the running export."""
        self._exporter.cancel()

    def resume_export(self) -> None:
        """Go back to the draft of an export that failed."""
        self._exporter.resume()

    def end_export(self) -> None:
        """Leave the export; a running one is stopped."""
        self._exporter.end()

    def undo_export(self) -> None:
        """Restore the file as it was before it was changed in place."""
        if self._ready() is not None:
            self._exporter.take_back(self._state.path)

    def save_receipt(self, destination: str) -> None:
        """Write what was done to a copy, and how it was checked, into a small file."""
        self._exporter.save_receipt(destination)

    def _on_exported(self, page: ExportPage | None) -> None:
        self._show(replace(self._state, export=page))

    def _asked_map(self) -> Ask | None:
        """Return what works the device map out; None without a file."""
        document = self._ready()
        if document is None:
            return None
        return partial(
            device_map_of, document, target_of(self._state), self._state.chosen, self._state.branches
        )

    # --- questions of the view ------------------------------------------------------------------------------

    def node_path(self, node: int) -> str:
        """Give the path of a tree node as the command line writes it; a group's is its name in the tree."""
        document = self._ready()
        return "" if document is None else path_of_node(document, node)

    def node_expression(self, node: int) -> str:
        """Give a Python expression that reaches a tensor in the loaded checkpoint; empty for other nodes."""
        document = self._ready()
        return "" if document is None else expression_of_node(document, node)

    # --- the one way to a new screen ------------------------------------------------------------------------

    def _ready(self) -> Document | None:
        return self._state.document if self._state.phase == "ready" else None

    @property
    def _state(self) -> State:
        return self._presenter.state

    def _show(self, state: State) -> None:
        self._presenter.show(state)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unread:
    """Why a file could not be opened, and whether it is no longer there."""

    page: FailurePage
    gone: bool = False


def _read(asked: State, path: str, progress: Progress) -> Document | _Unread:
    """Open a file, or explain why not, with all that has to be looked at for it.

    The first screen is composed here too: the main thread then finds all its parts remembered.

    Raises:
        CancelledError: The work was cancelled.
    """
    try:
        document = open_document(path, progress)
    except CancelledError:
        raise
    except CheckpointError as error:
        page = open_failure_page(error, path, target_of(asked))
        return _Unread(page=page, gone=not os.path.lexists(path))
    compose(_opened(asked, document))
    return document


def _opened(state: State, document: Document) -> State:
    return replace(state, phase="ready", document=document, progress=None)

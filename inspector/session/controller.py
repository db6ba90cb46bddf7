"""The controller: one method for each thing a person can want, each ending in a new screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inspector.errors import CancelledError
from inspector.model.findings import Fix
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.rules import parse_rule
from inspector.resources import demo_path
from inspector.session.checker import Check, Checker
from inspector.session.compose import compose, device_map_of, target_of
from inspector.session.document import Document, open_document
from inspector.session.exporter import Exporter
from inspector.session.exports import ExportWish
from inspector.session.failing import failure_page, open_failure_page
from inspector.session.fixing import with_choice, with_rule
from inspector.session.mapping import DeviceMap
from inspector.session.nodes import expression_of_node, path_of_node
from inspector.session.screen import Loading, Screen, TaskRunner, View
from inspector.session.state import State
from inspector.target.profile import Profile
from inspector.target.profile_file import read_profile

Probe = Callable[[Progress], Profile]
_MOST_RECENT = 8
_NO_MACHINE = "This is no description of a machine"
_MOST_MACHINES = 8
_MOST_ERROR_CHARS = 1 << 20
_MANY_TENSORS = 5000


class Session:
    """Holds the state of one window and computes its screens.

    Work runs on the `TaskRunner`; an answer to a question that is no longer asked is dropped.
    """

    def __init__(
        self, view: View, runner: TaskRunner, recent: tuple[str, ...] = (), probe: Probe | None = None
    ) -> None:
        """Start empty.

        Args:
            view: The window.
            runner: Runs work away from the main thread.
            recent: Files opened before, newest first.
            probe: Finds out about this machine; None where nobody waits for it.
        """
        self._view = view
        self._runner = runner
        self._probe = probe
        self._state = State(recent=recent)
        self._generation = 0
        self._work: Progress | None = None
        self._composing: Progress | None = None
        self._checker = Checker(runner, lambda check: self._show(replace(self._state, check=check)))
        self._exporter = Exporter(view, runner, self.reload)
        self._screen = compose(self._state)

    @property
    def screen(self) -> Screen:
        """The screen that was shown last."""
        return self._screen

    # --- files ----------------------------------------------------------------------------------------------

    def open(self, path: str) -> None:
        """Open a file in place of the present one; what describes a machine says where that shall load."""
        if self._ready() is not None and path.endswith(".json") and not path.endswith(".index.json"):
            self.use_machine(path)
            return
        self._open(replace(self._state, path=path, chosen=(), branches=(), query=""))

    def open_demo(self) -> None:
        """Open the demo checkpoint that ships with the program."""
        self.open(str(demo_path()))

    def reload(self) -> None:
        """Read the file again; the target, the map and the search stay."""
        if self._state.path:
            self._open(self._state)

    def close(self) -> None:
        """Let go of the file and go back to the empty window."""
        self.cancel()
        self._generation += 1
        self._composing = None
        self._show(self._state.without_file())

    def _open(self, state: State) -> None:
        self.cancel()
        self._generation += 1
        self._composing = None
        generation = self._generation
        progress = self._work = Progress("opening")
        path = state.path
        opening = replace(state.without_file(), phase="opening", path=path, progress=progress)
        self._show(replace(opening, chosen=state.chosen, branches=state.branches, query=state.query))
        asked = self._state
        self._runner.run(
            lambda running: _prepare(asked, open_document(path, running)),
            progress,
            lambda document: self._on_opened(generation, document),
            lambda error: self._on_open_failed(generation, error),
        )

    def _on_opened(self, generation: int, document: Document) -> None:
        if generation != self._generation:
            return
        self._work = None
        path = str(Path(self._state.path).absolute())
        recent = (path, *(known for known in self._state.recent if known != path))[:_MOST_RECENT]
        self._show(replace(self._state, phase="ready", document=document, progress=None, recent=recent))
        self._start_probe()

    def _on_open_failed(self, generation: int, error: Exception) -> None:
        if generation != self._generation:
            return
        self._work = None
        if isinstance(error, CancelledError):
            self._show(self._state.without_file())
        else:
            page = open_failure_page(error, self._state.path, target_of(self._state))
            self._show(replace(self._state, phase="failed", failure=page, progress=None))

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

    def set_target(self, target: str) -> None:
        """Choose the machine that the file shall load on; the map follows it again."""
        self._show_soon(replace(self._state, target=target, chosen=(), branches=()))

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
        self._show_soon(replace(self._state, machines=machines, target=machine.id, chosen=(), branches=()))

    def set_mapping(self, device: str, to: str) -> None:
        """Choose where the tensors of one original device go."""
        self._show_soon(with_choice(self._state, device, to))

    def remove_branch(self, pattern: str) -> None:
        """Let a part of the tree go where its devices go."""
        branches = tuple(rule for rule in self._state.branches if rule.path != pattern)
        self._show_soon(replace(self._state, branches=branches))

    def apply_fix(self, fix: Fix) -> None:
        """Do what mends a finding: change the map, or show the code."""
        document = self._ready()
        if document is None:
            return
        if fix.rule:
            self._show_soon(with_rule(self._state, parse_rule(fix.rule), document))
        else:
            self._show(replace(self._state, style=fix.style or self._state.style))
            self._view.show_page("code")

    def set_loading(self, loading: Loading) -> None:
        """Choose how many processes load the file, and whether they map it."""
        self._show_soon(replace(self._state, loading=loading))

    def explain_error(self, text: str) -> None:
        """Say what an error message means for this file; an empty one ends that."""
        self._show_soon(replace(self._state, error_text=text[:_MOST_ERROR_CHARS]))

    def select(self, node: int | None) -> None:
        """Show the facts of a tree node."""
        self._show(replace(self._state, selected=node))

    def search(self, query: str) -> None:
        """Look for tree nodes; an empty query ends the search."""
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
        """Stop that."""
        self._checker.cancel()
        self._show(replace(self._state, check=Check()))

    # --- export ---------------------------------------------------------------------------------------------

    def begin_export(self) -> None:
        """Ask the view what shall be written, and where to."""
        self._exporter.propose(self._asked_map())

    def change_export(self, wish: ExportWish) -> None:
        """Ask for something else to be written."""
        self._exporter.propose(self._asked_map(), wish)

    def export(self, destination: str, overwrite: bool = False) -> None:  # noqa: FBT001, FBT002 - the view's contract
        """Write what was asked for, unless work is under way."""
        self._exporter.write(self._asked_map(), destination, overwrite=overwrite)

    def undo_export(self) -> None:
        """Give the file back as it was before it was changed in place."""
        self._exporter.take_back(self._state.path)

    def save_receipt(self, destination: str) -> None:
        """Write what was done to a copy, and how it was checked, into a small file."""
        self._exporter.save_receipt(destination)

    def _asked_map(self) -> DeviceMap | None:
        document = self._ready()
        if document is None:
            return None
        return device_map_of(document, target_of(self._state), self._state.chosen, self._state.branches)

    def cancel(self) -> None:
        """Stop the running work, if any."""
        self._exporter.cancel()
        self._checker.cancel()
        if self._work is not None:
            self._work.cancel()
            self._work = None

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

    def _show(self, state: State) -> None:
        if self._composing:  # or the main thread would do the same work once more
            self._show_soon(state)
            return
        self._state = state
        self._screen = compose(state)
        self._view.show_screen(self._screen)

    def _show_soon(self, state: State) -> None:
        """Show a state for which much has to be worked out anew: with many tensors, in a worker."""
        self._state = state
        document = self._ready()
        if document is None or len(document.checkpoint.tensors) < _MANY_TENSORS:
            self._composing = None
            self._show(state)
            return
        composing = self._composing = Progress("thinking")
        self._screen = replace(self._screen, target=state.target)
        self._view.show_screen(self._screen)
        self._runner.run(lambda _: compose(state), composing, lambda _: self._on_composed(composing), _raise)

    def _on_composed(self, composing: Progress) -> None:
        """Show what a worker has worked out, which is remembered; a later question makes it void."""
        if self._composing is composing:
            self._composing = None
            self._show(self._state)


def _prepare(asked: State, document: Document) -> Document:
    """Compose the first screen away from the main thread, which then finds all its parts remembered."""
    compose(replace(asked, phase="ready", document=document))
    return document


def _raise(error: Exception) -> None:
    """Let a mistake of the program's own be seen as one."""
    raise error

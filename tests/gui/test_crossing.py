"""The real session behind the real window, with jobs that end in any order: what is shown is never stale.

After each step the window is compared with a fresh one that is brought to the same state at once, and the
screen with the one that is composed of the file as if it had just been opened.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import ClassVar
from unittest.mock import create_autospec

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from PySide6.QtWidgets import QMessageBox

from inspector.containers.source import stamp_of
from inspector.gui.main_window import MainWindow
from inspector.gui.settings import Settings
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.torch_check import TorchCheck
from inspector.session.controller import Session
from inspector.session.document import open_document
from inspector.session.export.page import ExportWish
from inspector.session.present import presenter
from inspector.session.present.compose import compose
from inspector.session.screen import Loading, Screen
from inspector.target.profile import Profile
from tests.gui.crossing import Crossroads, delete_what_is_to_go, picture_of, write_files, zip_file
from tests.machines import probed
from tests.sweep import tries

NOBODY = create_autospec(Session, instance=True)
FILES = ("one.pth", "two.pth", "old.pth", "cut.pth", "page.pth", "node7.json", "config.json", "gone.pth")
OFTEN = (*FILES, "one.pth", "two.pth", "one.pth", "two.pth")
PAGES = ("memory", "tensor", "findings", "code", "file")
KINDS = ("copy", "in-place", "weights", "safetensors", "recover", "compact")
GPUS = Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),))
ERROR = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."
)
MOSTLY = st.sampled_from([True, True, False])
STEPS = int(os.environ.get("CROSSING_STEPS", tries(16, 25)))
EXAMPLES = int(os.environ.get("CROSSING_EXAMPLES", "5"))
STARTS = ("busy", "changed", "written", "links", "plain")
"""What each example begins with, in turn: steps that seldom come in this order by chance."""


def comparable(screen: Screen) -> Screen:
    """Return a screen without its tree and where that goes, and without lines that name free paths."""
    findings = tuple(replace(row, lines=()) for row in screen.findings)
    answer = screen.explanation and replace(screen.explanation, lines=())
    return replace(screen, tree=None, landing=None, findings=findings, explanation=answer)


def try_with_torch(path: str, _progress: Progress, python: str | None = None) -> TorchCheck:
    return TorchCheck(verdict="loads" if Path(path).exists() else "failed", torch="2.13.0")


MEMORIES = (8, 16, 32, 64, 128, 256)
TARGETS = ("this", "cpu", *(f"cpu@{size}gb" for size in MEMORIES), "cuda", "cuda@8gb")


class Crossing(RuleBasedStateMachine):
    """Drives one window."""

    theme = None
    folder = Path()
    probe: ClassVar[dict[str, object]] = {}
    monkeypatch = None
    steps = 0
    starts: ClassVar[dict[int, str]] = {}
    seen: ClassVar[Counter[str]] = Counter()

    @initialize(
        large=st.booleans(),
        chosen=st.sampled_from(["", "mps", "cuda:2"]),
        first=st.sampled_from(OFTEN),
        number=st.integers(0, 1 << 30),
    )
    def begin(self, large: bool, chosen: str, first: str, number: int) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.files = write_files(self.folder, self.probe)
        self.written = 0
        self.trips = False
        self.opened = self.checked = None
        self.monkeypatch.setattr(presenter, "_MANY_TENSORS", 1 if large else 5000)
        self.monkeypatch.setattr(presenter, "compose", self.compose_or_trip)
        self.runner = Crossroads()
        self.settings = Settings(fresh=True)
        self.window = MainWindow(self.theme, self.settings)
        self.session = Session(self.window, self.runner, ("/old.pth",), lambda _, __: GPUS)
        self.monkeypatch.setattr("inspector.session.export.steps.try_with_torch", try_with_torch)
        self.window.when_shown = lambda act: act()  # nobody paints between two steps
        self.window.attach(self.session)
        self.window.show_screen(self.session.screen)
        self.session.set_target(chosen or "this")
        turn = self.starts.setdefault(number, STARTS[len(self.starts) % len(STARTS)])  # again when replayed
        start = os.environ.get("CROSSING_START", turn)
        self.open(first if start == "plain" else "one.pth", read=False, at_once=True)
        getattr(self, f"start_{start}")()

    def start_plain(self) -> None:
        """Begin with whatever file it is."""

    def start_busy(self) -> None:
        """Ask an export to stop while it and a check of all bytes run."""
        self.tell_all()
        self.check(cancels=False)
        self.begin_export(at_once=True)
        self.write(overwrite=False, at_once=False)
        self.leave_export(back=False, read=False)

    def start_written(self) -> None:
        """Write a copy, and ask for its receipt."""
        self.begin_export(at_once=True)
        self.write(overwrite=False, at_once=True)
        self.save_receipt("receipt.json", at_once=False)

    def start_changed(self) -> None:
        """Change the file itself, and read it again, so that the change can be undone."""
        self.choose_target(1, trips=False)
        self.tell_all()
        self.begin_export(at_once=True)
        self.change_export("in-place", "", at_once=True)
        self.write(overwrite=False, at_once=False)
        self.tell_all()
        self.leave_export(back=False, read=False)

    def start_links(self) -> None:
        """Look at the findings of a file after those of one that has the same, about other tensors."""
        self.turn("findings")
        self.open("two.pth", read=False, at_once=True)

    def compose_or_trip(self, state):
        if self.trips and state.phase == "ready":
            self.trips = False
            raise ZeroDivisionError("by hand")
        return compose(state)

    def teardown(self) -> None:
        window = getattr(self, "window", None)
        if window is not None:
            window.close()
            window.detach()
            window.deleteLater()
            delete_what_is_to_go()

    @property
    def screen(self) -> Screen:
        return self.session.screen

    @property
    def is_ready(self) -> bool:
        return self.screen.phase == "ready"

    @property
    def stage(self) -> str:
        return "" if self.screen.export is None else self.screen.export.stage

    @property
    def can_undo_here(self) -> bool:
        """Whether the end of an export offers to undo it."""
        return self.stage == "done" and self.screen.export.result.can_undo

    def carry_out_all(self) -> None:
        """Threads have done all their work, and nobody was told yet."""
        for job in self.runner.jobs:
            if job.answer is None:
                job.carry_out()

    def tell_last(self) -> None:
        if self.runner.jobs:
            self.runner.tell(-1)

    # --- files

    @rule(name=st.sampled_from(OFTEN), read=st.booleans(), at_once=MOSTLY)
    def open(self, name: str, read: bool, at_once: bool) -> None:
        if read:
            self.carry_out_all()
        self.window.open_paths([str(self.files[name])])
        if at_once:
            self.tell_last()
            if self.screen.is_checking:
                self.tell_last()

    @precondition(lambda self: self.screen.phase != "empty")
    @rule(way=st.sampled_from(["reload", "reload", "close", "cancel"]), read=st.booleans())
    def leave(self, way: str, read: bool) -> None:
        if read:
            self.carry_out_all()
        if way != "cancel":
            self.window.actions_by_name[way].trigger()
        elif self.screen.phase == "opening":
            self.window.centralWidget().cancel_wanted.emit()

    @precondition(lambda self: self.screen.path)
    @rule(same=st.booleans(), read=st.booleans())
    def rewrite(self, same: bool, read: bool) -> None:
        """Somebody writes the file anew, perhaps between its being read and its being shown."""
        if read:
            self.carry_out_all()
        self.written += 1
        devices = ("cuda:0", "cuda:1") if same else ("mps",)
        Path(self.screen.path).write_bytes(zip_file(f"anew{self.written}", *devices))
        if self.is_ready:
            self.window.workspace.changed.touched.emit()  # as its watcher does, a moment later

    # --- choices

    @precondition(lambda self: self.is_ready)
    @rule(page=st.sampled_from(PAGES))
    def turn(self, page: str) -> None:
        self.window.actions_by_name[f"page_{page}"].trigger()

    @rule(place=st.integers(0, 9), trips=st.booleans())
    def choose_target(self, place: int, trips: bool) -> None:
        """Choose one that may fail to be composed."""
        self.trips = trips
        if self.is_ready:
            self.window.top_bar.target_chosen.emit(TARGETS[place])

    @precondition(lambda self: self.is_ready and self.screen.devices)
    @rule(place=st.integers(0, 8))
    def choose_device(self, place: int) -> None:
        """Choose one that is wanted, or none."""
        if place < len(self.screen.devices):
            self.window.top_bar._devices.activated.emit(place)

    @precondition(lambda self: self.is_ready)
    @rule(row=st.integers(0, 1), to=st.integers(0, 3), node=st.integers(0, 4))
    def choose(self, row: int, to: int, node: int) -> None:
        rows = self.screen.device_map
        if row < len(rows) and to < len(rows[row].choices):
            chosen = rows[row].choices[to]
            self.window.workspace.device_map.mapping_chosen.emit(rows[row].device, chosen)
        if self.is_ready and 0 < node < len(self.screen.tree.nodes):
            self.window.workspace.tree.node_chosen.emit(node)

    @rule(query=st.sampled_from(["", "alpha", "0", "device:cuda:1", "nothing"]), toggles=st.booleans())
    def search(self, query: str, toggles: bool) -> None:
        self.window.top_bar.search._line.setText(query)
        self.window.top_bar.search.flush()
        if toggles:
            self.window.top_bar.search._only.toggle()

    @precondition(lambda self: self.is_ready)
    @rule(ranks=st.integers(1, 3), mmap=st.booleans(), text=st.sampled_from(["", ERROR]))
    def ask(self, ranks: int, mmap: bool, text: str) -> None:
        self.window.session.set_loading(Loading(ranks=ranks, mmap=mmap))
        self.window.session.explain_error(text)

    # --- work

    @precondition(lambda self: self.is_ready)
    @rule(cancels=st.booleans())
    def check(self, cancels: bool) -> None:
        if cancels and self.screen.check.progress is not None:
            self.window.session.stop_job("check")
        else:
            self.window.actions_by_name["check"].trigger()
            self.checked = self.session._state.document

    @precondition(lambda self: self.is_ready and self.stage in {"", "looking"})
    @rule(at_once=MOSTLY)
    def begin_export(self, at_once: bool) -> None:
        self.window.actions_by_name["export"].trigger()
        if at_once:
            self.tell_last()

    @precondition(lambda self: self.stage in {"draft", "looking"} and self.screen.export.draft is not None)
    @rule(kind=st.sampled_from(KINDS), exclude=st.sampled_from(["", "", "*.0"]), at_once=MOSTLY)
    def change_export(self, kind: str, exclude: str, at_once: bool) -> None:
        self.window.export_dialog.wish_changed.emit(ExportWish(kind=kind, exclude=exclude))
        if at_once:
            self.tell_last()

    @precondition(lambda self: self.stage == "draft")
    @rule(overwrite=st.booleans(), at_once=MOSTLY)
    def write(self, overwrite: bool, at_once: bool) -> None:
        self.window.export_dialog.export_wanted.emit(self.screen.export.draft.destination, overwrite)
        if at_once:
            self.tell_last()

    @precondition(lambda self: self.stage not in {"", "looking"})
    @rule(back=st.booleans(), read=st.booleans())
    def leave_export(self, back: bool, read: bool) -> None:
        """Leave what is at its end, go back from it, or ask what runs to stop."""
        if read:
            self.carry_out_all()
        dialog = self.window.export_dialog
        dialog.back_wanted.emit() if back else dialog.reject()

    @precondition(lambda self: self.stage == "done")
    @rule(name=st.sampled_from(["receipt.json", "receipt.json", "no/receipt.json"]), at_once=MOSTLY)
    def save_receipt(self, name: str, at_once: bool) -> None:
        self.window.export_dialog.receipt_wanted.emit(str(self.folder / name))
        if at_once:
            self.tell_last()

    @precondition(lambda self: self.window.actions_by_name["undo"].isEnabled() or self.can_undo_here)
    @rule(at_once=MOSTLY)
    def undo(self, at_once: bool) -> None:
        if self.can_undo_here:
            self.window.export_dialog.undo_wanted.emit()
        else:
            self.window.actions_by_name["undo"].trigger()
        if at_once:
            self.tell_last()

    @precondition(lambda self: self.runner.jobs)
    @rule(place=st.integers(0, 20))
    def tell(self, place: int) -> None:
        self.runner.tell(place % len(self.runner.jobs))

    @precondition(lambda self: self.runner.jobs)
    @rule()
    def tell_all(self) -> None:
        for _ in range(20):  # answers ask new questions
            if self.runner.jobs:
                self.runner.tell(0)

    # --- what holds after each step

    @invariant()
    def no_window_is_left(self) -> None:
        type(self).steps += 1
        busy = "check" if self.screen.check.progress is not None else ""
        doing = self.screen.export.title if self.stage == "running" else self.stage
        type(self).seen[f"{self.screen.phase} {doing} {busy}"] += 1
        for box in self.window.findChildren(QMessageBox):
            box.close()
        delete_what_is_to_go()

    @invariant()
    def the_window_shows_what_a_fresh_one_would(self) -> None:
        space = self.window.centralWidget().built_workspace
        fresh = MainWindow(self.theme, self.settings)
        try:
            fresh.attach(NOBODY)
            fresh.top_bar.search._only.setChecked(self.window.top_bar.search.only)
            if space is not None:
                fresh.workspace.pages.open_page(space.pages.current_id)
            fresh.show_screen(self.screen)
            for window in (
                fresh,
                self.window,
            ):  # the moment before it is said has passed
                window.centralWidget()._say_opening()
            assert picture_of(self.window) == picture_of(fresh)
        finally:
            fresh.detach()
            fresh.deleteLater()
            delete_what_is_to_go()

    @invariant()
    def the_screen_is_that_of_the_file(self) -> None:
        state = self.session._state
        if state.job("compose") is not None:
            return
        document = state.document
        assert document is None or document.checkpoint.path == state.path
        if document is not None and Path(state.path).exists():
            if stamp_of(Path(state.path).stat()) != document.checkpoint.stamp:
                return
            again = open_document(state.path, Progress())
            document = replace(again, open_seconds=document.open_seconds)
        wanted = compose(replace(state, document=document))
        assert comparable(self.screen) == comparable(wanted)
        assert (self.screen.tree is None) == (wanted.tree is None)
        assert self.screen.tree is None or tuple(self.screen.tree.nodes) == tuple(wanted.tree.nodes)

    @invariant()
    def whatever_is_busy_has_a_job(self) -> None:
        waited_for = self.runner.alive()
        all_jobs = [job.progress for job in self.runner.jobs]
        screen, export = self.screen, self.screen.export
        if screen.phase == "opening":
            assert screen.progress in waited_for
        if screen.check.progress is not None:
            assert screen.check.progress in waited_for
        if export is not None and export.stage in {"looking", "running"}:
            assert export.progress in (all_jobs if export.stopping else waited_for)
        for job in self.session._state.jobs:
            if job.status == "running" and job.kind != "export":
                assert job.progress in waited_for

    @invariant()
    def nothing_is_shown_of_a_closed_file(self) -> None:
        screen, state = self.screen, self.session._state
        if screen.phase == "empty":
            assert (screen.path, screen.export, screen.tree, screen.query) == ("", None, None, "")
        if screen.phase != "ready":
            assert (screen.check.lines, screen.check.progress, screen.findings) == ((), None, ())
        if state.job("check") is not None:
            assert self.checked is state.document
        assert {job.about for job in state.jobs} <= {None, screen.path}
        if screen.export is not None and screen.export.draft is not None and screen.export.draft.destination:
            stem = Path(screen.path).name.partition(".")[0]
            assert Path(screen.export.draft.destination).name.startswith(stem)
        dialog = self.window._export
        assert dialog is None or dialog.isHidden() or screen.export is not None


@pytest.mark.wide
def test_jobs_that_cross_leave_nothing_stale(qapp, qtbot, theme, tmp_path, monkeypatch):
    """`CROSSING_EXAMPLES=200 CROSSING_STEPS=50` drives it long, and finds what is rare."""
    Crossing.theme, Crossing.folder = theme, tmp_path / "files"
    Crossing.probe, Crossing.monkeypatch = json.loads(probed()), monkeypatch
    Crossing.steps, Crossing.starts = 0, {}
    qapp.setStyleSheet("")  # no word depends on it, and it takes half the time
    run_state_machine_as_test(
        Crossing,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=EXAMPLES < 50,
            deadline=None,
            database=None,
            phases=(Phase.generate, *([Phase.shrink] if "CROSSING_SHRINK" in os.environ else [])),
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{Crossing.steps} steps: {Crossing.seen.most_common()}")  # noqa: T201 - shown by -s
    assert Crossing.steps > EXAMPLES

"""The machine to load a file on: this one, which is probed, or one that a profile describes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.document import Document
from inspector.session.history import with_history
from inspector.session.jobs.pythons import PYTHONS, look_for_pythons
from inspector.session.operations import Job, Work, start
from inspector.session.present.failure import failure_page
from inspector.session.present.presenter import Presenter
from inspector.session.screen import Screen
from inspector.session.state import PROBE, THIS, State
from inspector.session.targets import target_of
from inspector.target.profile import Profile

# What the parts of the session share: the state of one window.


class Part:
    """Some of the intentions of a session; `Session` has them all."""

    def __init__(self, desk: Presenter) -> None:
        """Work on the state of a presenter."""
        self._desk = desk

    @property
    def screen(self) -> Screen:
        """The screen that was shown last."""
        return self._desk.screen

    @property
    def _state(self) -> State:
        return self._desk.state

    @property
    def _ready(self) -> Document | None:
        return self._desk.state.ready

    def _show(self, state: State) -> None:
        self._desk.show(with_history(self._desk.state, state))

    def _run(  # noqa: PLR0913 - work, what becomes of it, and where it begins
        self,
        kind: str,
        label: str,
        work: Work[T],
        on_done: Callable[[T], None] | None = None,
        on_failed: Callable[[Exception], None] | None = None,
        *,
        state: State | None = None,
        is_about_file: bool = True,
    ) -> None:
        """Run work as a job, see `operations.start`; what is about the file is left behind with it."""
        about = (state or self._state).path if is_about_file else None
        start(
            self._desk,
            Job(kind=kind, about=about, progress=Progress(label)),
            work,
            on_done,
            on_failed,
            state=state,
        )


Probe = Callable[[Progress, str | None], Profile]
"""Describes this machine, by the Python that a text names, or None for the one that counts."""
T = TypeVar("T")
_NO_PYTHON = "This Python cannot be used"
_NO_MACHINE = "This file does not describe a machine"
_MOST_MACHINES = 8


class Machines(Part):
    """The intentions about the machine."""

    def __init__(self, desk: Presenter, probe: Probe | None) -> None:
        """Take the probe of this machine, if there is one."""
        super().__init__(desk)
        self._probe = probe

    def set_target(self, target: str = THIS) -> None:
        """Choose the machine to load the file on, by its id, its word or its file; the map follows again."""
        state = replace(self._state, target=target, wanted="", chosen=(), branches=())
        machine = target_of(state)
        if machine.id != target:  # it was used in an earlier window, and is to be read
            self.use_machine(target)
        elif machine is state.machine or machine in state.machines:
            self._show(state)
        else:
            self._on_machine(target, machine)

    def set_wanted(self, device: str) -> None:
        """Choose the device that is wanted there, empty for none; the device map follows it again."""
        self._show(replace(self._state, wanted=device, chosen=(), branches=()))

    def look_for_pythons(self) -> None:
        """Find the Pythons to choose from, and what each has."""
        self._run(PYTHONS, "", look_for_pythons, is_about_file=False)

    def end_pythons(self) -> None:
        """End the choice of a Python."""
        self._show(self._state.without_job(PYTHONS))

    def use_python(self, named: str) -> None:
        """Choose the Python whose torch stands for this machine, and this machine; the device map follows."""
        state = self._state.without_job(PROBE)
        self._show(
            replace(state, python=named, this_machine=None, target=THIS, wanted="", chosen=(), branches=())
        )
        self._start_probe()

    def use_machine(self, path: str) -> None:
        """Read the profile of a machine and choose that."""
        from inspector.target.profile_file import read_profile  # noqa: PLC0415 - few windows are given one

        # Each path is a kind of its own: of two profiles dropped on the window both are read.
        kind, label = f"machine {path}", "reading a machine profile"
        taken, refused = partial(self._on_machine, path), partial(self._on_no_machine, path)
        self._run(kind, label, lambda _: read_profile(path), taken, refused, is_about_file=False)

    def choose_machine(self, machine: Profile) -> None:
        """Choose a machine that is known in full, and the device that is wanted there."""
        wanted, bare = machine.wanted or "", replace(machine, wanted=None, is_fewest=False)
        state = replace(self._state, target=machine.id, wanted=wanted, chosen=(), branches=())
        if machine.id == THIS:
            state = replace(state, this_machine=bare)
        else:
            others = [known for known in state.machines if known.id != machine.id]
            state = replace(state, machines=(bare, *others)[:_MOST_MACHINES])
        self._show(state)

    def _on_machine(self, named: str, machine: Profile) -> None:
        with self._desk.together():
            self.choose_machine(machine)
            self._show(replace(self._state, profiles=(named, *self._profiles_but(named))[:_MOST_MACHINES]))

    def _on_no_machine(self, path: str, error: Exception) -> None:
        self._show(replace(self._state, profiles=self._profiles_but(path)))
        self._desk.view.show_notice(failure_page(error, _NO_MACHINE))

    def _profiles_but(self, path: str) -> tuple[str, ...]:
        return tuple(known for known in self._state.profiles if known != path)

    def _start_probe(self) -> None:
        """Probe this machine once, after the first file is shown."""
        if self._probe is None or self._state.job(PROBE) is not None or self._state.this_machine is not None:
            return
        probe, named = self._probe, self._state.python or None
        self._run(
            PROBE,
            "looking for GPUs",
            lambda progress: probe(progress, named),
            self._on_probed,
            self._on_not_probed,
            is_about_file=False,
        )

    def _on_probed(self, profile: Profile) -> None:
        self._show(replace(self._state, this_machine=profile))

    def _on_not_probed(self, error: Exception) -> None:
        # Without a profile this machine counts as having no GPU, which is what its label says.
        was_named = bool(self._state.python)
        self._show(replace(self._state, python=""))
        if was_named:
            self._desk.view.show_notice(failure_page(error, _NO_PYTHON))

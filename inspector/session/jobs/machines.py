"""The machine to load a file on: this one, which is probed, or one that a profile describes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.jobs.job import Job
from inspector.session.jobs.part import Part
from inspector.session.jobs.pythons import PYTHONS, look_for_pythons
from inspector.session.jobs.running import start
from inspector.session.present.failure import failure_page
from inspector.session.present.presenter import Presenter
from inspector.session.state import PROBE, THIS
from inspector.target.profile import Profile, presets

Probe = Callable[[Progress, str | None], Profile]
"""Describes this machine, by the Python that a text names, or None for the one that counts."""
_NO_PYTHON = "This Python cannot be used"
_NO_MACHINE = "This file does not describe a machine"
_MOST_MACHINES = 8


class Machines(Part):
    """The intentions about the machine."""

    def __init__(self, desk: Presenter, probe: Probe | None) -> None:
        """Take the probe of this machine, if there is one."""
        super().__init__(desk)
        self._probe = probe

    def set_target(self, target: str) -> None:
        """Choose the machine to load the file on; the device map follows it again."""
        self._show(replace(self._state, target=target, wanted="", chosen=(), branches=()))

    def set_wanted(self, device: str) -> None:
        """Choose the device that is wanted there, empty for none; the device map follows it again."""
        self._show(replace(self._state, wanted=device, chosen=(), branches=()))

    def look_for_pythons(self) -> None:
        """Find the Pythons to choose from, and what each has."""
        looking = Job(kind=PYTHONS, about=None, progress=Progress())
        start(self._desk, looking, look_for_pythons)

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
        reading = Job(kind=f"machine {path}", about=None, progress=Progress("reading a machine profile"))
        taken, refused = partial(self._on_machine, path), partial(self._on_no_machine, path)
        start(self._desk, reading, lambda _: read_profile(path), taken, refused)

    def choose_machine(self, machine: Profile) -> None:
        """Choose a machine that is known in full, and the device that is wanted there."""
        wanted, bare = machine.wanted or "", replace(machine, wanted=None, is_fewest=False)
        state = replace(self._state, target=machine.id, wanted=wanted, chosen=(), branches=())
        if machine.id == THIS:
            state = replace(state, this_machine=bare)
        elif bare not in presets():
            others = [known for known in state.machines if known.id != machine.id]
            state = replace(state, machines=(bare, *others)[:_MOST_MACHINES])
        self._show(state)

    def _on_machine(self, path: str, machine: Profile) -> None:
        self.choose_machine(machine)
        self._show(replace(self._state, profiles=(path, *self._profiles_but(path))[:_MOST_MACHINES]))

    def _on_no_machine(self, path: str, error: Exception) -> None:
        self._show(replace(self._state, profiles=self._profiles_but(path)))
        self._desk.view.show_notice(failure_page(error, _NO_MACHINE))

    def _profiles_but(self, path: str) -> tuple[str, ...]:
        return tuple(known for known in self._state.profiles if known != path)

    def _start_probe(self) -> None:
        """Probe this machine once, after the first file is shown."""
        if self._probe is None or self._state.job(PROBE) is not None or self._state.this_machine is not None:
            return
        probing = Job(kind=PROBE, about=None, progress=Progress("looking for GPUs"))
        probe, named = self._probe, self._state.python or None
        start(
            self._desk, probing, lambda progress: probe(progress, named), self._on_probed, self._on_not_probed
        )

    def _on_probed(self, profile: Profile) -> None:
        self._show(replace(self._state, this_machine=profile))

    def _on_not_probed(self, error: Exception) -> None:
        # Without a profile this machine counts as having no GPU, which is what its label says.
        was_named = bool(self._state.python)
        self._show(replace(self._state, python=""))
        if was_named:
            self._desk.view.show_notice(failure_page(error, _NO_PYTHON))

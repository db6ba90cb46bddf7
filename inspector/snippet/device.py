"""The device that code computes on: fixed where the machine is known, else chosen when the code runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inspector.model.roles.devices import DEVICE_TYPES, DeviceType, device_type
from inspector.records import dataclass
from inspector.snippet.literals import literal
from inspector.target.profile import Profile
from inspector.target.versions import HAS_WEIGHTS_ONLY, release_of

RUN_TIME = "this"
"""The id of the target that is known only when the code runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as code.

    Attributes:
        choice: Lines that set `device`; none where it is known.
    """

    choice: tuple[str, ...]
    code: str

    @property
    def is_cpu(self) -> bool:
        """Whether it is the CPU for certain, so that nothing has to move."""
        return self.code == '"cpu"'

    def move(self, variable: str) -> tuple[str, ...]:
        """Return the line that moves a module there; none to the CPU, where it is already."""
        return () if self.is_cpu else (f"{variable}.to({self.code})",)


def choose_device(target: Profile, dtypes: Collection[str] = ()) -> Device:
    """Return the device of a machine that is wanted, else the best one."""
    if target.id == RUN_TIME and target.wanted is None:
        return Device(choice=choice_lines(target, dtypes), code="device")
    return fixed_device(best_device(target, dtypes))


def fixed_device(name: str) -> Device:
    """Return a device that is known."""
    return Device(choice=(), code=literal(name))


def best_device(target: Profile, dtypes: Collection[str]) -> str:
    """Return the wanted device of a machine, else its best one, of those that have all these dtypes."""
    devices = (target.destination, *target.devices)
    return next(name for name in devices if device_type(name.partition(":")[0]).lacks.isdisjoint(dtypes))


def choice_lines(target: Profile, dtypes: Collection[str]) -> tuple[str, ...]:
    """Return the lines that choose a device with all these dtypes when the code runs."""
    lines: list[str] = []
    for row, question in questions(target):
        if row.lacks.isdisjoint(dtypes):
            lines += [f"{'elif' if lines else 'if'} {question}:", f'    device = "{row.best}"']
    return (*lines, "else:", '    device = "cpu"')


def questions(target: Profile) -> Iterator[tuple[DeviceType, str]]:
    """Yield the types of devices that code can ask torch for, each with the expression that asks.

    What a known torch has not heard of is left out, and an unknown one is asked whether it has.
    """
    for row in DEVICE_TYPES.values():
        if not row.available:
            continue
        question = row.available
        if row.askable is not None and target.torch_version is None and row.askable > HAS_WEIGHTS_ONLY:
            owner, _, module = question.rpartition(".")[0].rpartition(".")
            question = f'hasattr({owner}, "{module}") and {question}'
        if row.askable is None or release_of(target.torch_version) >= row.askable:
            yield row, question

"""The device that code computes on: fixed where the machine is known, else chosen when the code runs."""

from __future__ import annotations

from inspector.records import dataclass
from inspector.snippet.literals import literal
from inspector.target.machine.profile import Profile

RUN_TIME = "this"
"""The id of the target that is known only when the code runs."""

_CHOICE = """\
if torch.cuda.is_available():
    device = "cuda:0"
elif torch.backends.mps.is_available():
    device = "mps"
elif torch.xpu.is_available():
    device = "xpu:0"
else:
    device = "cpu"\
"""
_MPS_CHOICE = """\
elif torch.backends.mps.is_available():
    device = "mps"
"""
NOT_ON_MPS = frozenset({"float64", "complex128"})
"""What Apple's GPU has no numbers for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as code.

    Attributes:
        choice: Lines that set `device`; none where it is known.
        code: The expression that stands for it.
    """

    choice: tuple[str, ...]
    code: str

    @property
    def is_cpu(self) -> bool:
        """Whether it is the CPU for certain, so that nothing has to move."""
        return self.code == '"cpu"'

    def move(self, variable: str) -> tuple[str, ...]:
        """Give the line that moves a module there; none to the CPU, where it is already."""
        return () if self.is_cpu else (f"{variable}.to({self.code})",)


def choose_device(target: Profile, *, fits_mps: bool = True) -> Device:
    """Give the best device of a machine.

    Args:
        target: The machine.
        fits_mps: Whether what goes there can live on Apple's GPU.
    """
    if target.id == RUN_TIME:
        return Device(choice=choice_lines(fits_mps=fits_mps), code="device")
    return fixed_device(best_device(target, fits_mps=fits_mps))


def fixed_device(name: str) -> Device:
    """Give a device that is known."""
    return Device(choice=(), code=literal(name))


def best_device(target: Profile, *, fits_mps: bool) -> str:
    """Give the name of a machine's best device."""
    return next(device for device in target.devices if fits_mps or device != "mps")


def choice_lines(*, fits_mps: bool) -> tuple[str, ...]:
    """Give the lines that choose a device when the code runs."""
    choice = _CHOICE if fits_mps else _CHOICE.replace(_MPS_CHOICE, "")
    return tuple(choice.splitlines())

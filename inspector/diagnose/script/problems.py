"""What is wrong with a script: the line, torch's message, why, and what would mend it."""

from __future__ import annotations

from inspector.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of the text of a script: what stands from `start` to `end` is replaced."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that goes wrong.

    Attributes:
        kind: Its stable id, such as `device-mix`.
        line: The line, counted from 1.
        message: What torch or Python says; empty where nothing is said.
        why: Why, in one or two sentences.
        advice: What to do, where that is more than the patch.
        edits: What mends it; empty where nothing in the script does, or it takes a decision.
    """

    kind: str
    line: int
    message: str
    why: str
    advice: str = ""
    edits: tuple[Edit, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether nothing is raised."""
        return not self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """From where on a script cannot be followed, and why."""

    line: int
    why: str


class Raised(Exception):  # noqa: N818 - it is what the script raises, not an error of this program
    """The script raises here."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


_ABOVE = {
    "KeyError": ("LookupError",),
    "IndexError": ("LookupError",),
    "NotImplementedError": ("RuntimeError",),
    "AcceleratorError": ("RuntimeError",),
    "OutOfMemoryError": ("RuntimeError",),
    "ModuleNotFoundError": ("ImportError",),
    "UnpicklingError": ("PickleError",),
}


def catches(handled: str, message: str) -> bool:
    """Return whether `except handled` catches what a message names.

    Args:
        handled: The name of the class, without its module; empty for a bare `except`.
        message: torch's text, which begins with the class.
    """
    raised = message.partition(":")[0].rpartition(".")[2]
    return handled in {"", "Exception", "BaseException", raised, *_ABOVE.get(raised, ())}

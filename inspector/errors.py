"""The one error tree: every failure says what happened, where, and what to do.

A program that reads files nobody vouches for must not leak a traceback. Whatever a reader, planner or
writer cannot do leaves as a `CheckpointError`; callers show `what`, `where` and `remedy` as they stand.
"""

from __future__ import annotations

from inspector.overriding import override


class CheckpointError(Exception):
    """Something about a checkpoint could not be done.

    Attributes:
        where: The place: a record, an opcode, a byte offset or a path; None when it is the whole file.
        remedy: What the reader of the message can do; None when nothing is known to help.
        programs: What loading the file would run all the same, as far as it was read: the programs of
            `containers.programs`.
    """

    kind = "checkpoint"
    finding: str | None = None
    """The id of the finding that says the same, for those who list findings; None where none does."""

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy
        self.programs: tuple[object, ...] = ()

    @override
    def __str__(self) -> str:
        """One line: `WHAT: WHERE (REMEDY)`, without the parts that are not known."""
        text = self.what if self.where is None else f"{self.what}: {self.where}"
        return text if self.remedy is None else f"{text} ({self.remedy})"


class ContainerError(CheckpointError):
    """The bytes of the file are not a container that can be read: short, damaged or of another kind."""

    kind = "container"


class MissingFileError(ContainerError, FileNotFoundError):
    """There is no file of this name; `filename` and `errno` are set as Python's own error has them."""


class ForbiddenFileError(ContainerError, PermissionError):
    """The file may not be read; with the same attributes."""


class DamagedError(ContainerError):
    """The file was a checkpoint once: it is cut off, or bytes of it were lost."""

    kind = "damaged"
    finding = "truncated"


class TooLargeError(ContainerError):
    """The file holds more than is read of it, so that nothing is known of what is behind."""

    kind = "too-large"


class NotACheckpointError(ContainerError):
    """The file is healthy as far as one can see, but it is something other than a checkpoint.

    Attributes:
        form: What it is instead, as a stable word (`html`, `git-lfs`, `gguf`); None where nobody knows.
    """

    kind = "not-a-checkpoint"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        form: str | None = None,
        finding: str = "not-a-checkpoint",
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.form = form
        self.finding = finding


class UnsupportedFormatError(ContainerError):
    """The file is a known checkpoint format that this version does not read.

    Attributes:
        form: The format, in the words of `show --json`; None where it has no such word.
    """

    kind = "unsupported-format"

    def __init__(
        self, what: str, *, where: str | None = None, remedy: str | None = None, form: str | None = None
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.form = form
        self.devices: tuple[str, ...] = ()


class PickleError(CheckpointError):
    """A pickle stream breaks off, breaks its own rules, or asks for more than the limits allow."""

    kind = "pickle"


class BrokenOffError(PickleError):
    """A pickle stream has no end: its bytes are over before its STOP. Every unpickler stops there."""


class InvalidPickleError(PickleError):
    """A pickle stream asks for what no unpickler has: an instruction, a value of the stack, a memo slot.

    Every unpickler stops there.
    """


class ModelError(CheckpointError):
    """The values of a pickle do not add up to a checkpoint."""

    kind = "model"


class ValuesError(CheckpointError):
    """There are no numbers to be had of a tensor: its bytes are not there, or nobody knows what they mean."""

    kind = "values"


class PlanError(CheckpointError):
    """A remap cannot be done as asked: a bad rule, a refused target, or rules that contradict each other."""

    kind = "plan"


class ExportError(CheckpointError):
    """The output could not be written. Nothing half-written is left behind."""

    kind = "export"


class WorkerError(CheckpointError):
    """A child process did not answer a request; what asked says what could not be done without it.

    Attributes:
        missing: The module that its Python has not, if that is why.
    """

    kind = "worker"
    missing = ""


class CancelledError(CheckpointError):
    """The user asked to stop. Raised inside `Progress.advance` and by nothing else."""

    kind = "cancelled"

    def __init__(self) -> None:
        super().__init__("cancelled")


class QueryError(CheckpointError):
    """A word of a search can find nothing in any file: a field or a unit is mistyped."""

    kind = "query"

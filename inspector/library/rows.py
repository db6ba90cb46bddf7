"""Rows of a checkpoint besides its tensors, with the words of `show --json`."""

from __future__ import annotations

from inspector.records import dataclass
from inspector.safety.names import GlobalVerdict
from inspector.safety.verdict import FileVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A run of bytes that tensors view.

    Attributes:
        key: Its key in the file.
        device: The device that it was saved on.
        dtype: torch's name of its element type, without `torch.`.
        nbytes: What the file stores, in bytes.
        file_offset: Where the bytes begin in their file; None where they are absent, compressed or in pieces.
    """

    key: str
    device: str
    dtype: str
    nbytes: int
    file_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A leaf that is no tensor: a number, a str, an object that stays closed.

    Attributes:
        path: Where it stands.
        type: Python's name of its type, or its dotted class.
        text: Its short text, at most 200 characters.
    """

    path: str
    type: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """A name that loading the file would import.

    Attributes:
        name: The dotted name.
        count: How often the pickles ask for it.
        verdict: `tensor`, `allowed`, `unknown` or `dangerous`.
    """

    name: str
    count: int
    verdict: GlobalVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Safety:
    """What loading the file needs, and what it could do.

    Attributes:
        verdict: `weights-only`, `needs-allow-list`, `runs-code`, `unknown` or `dangerous`.
        weights_only: Whether `torch.load(weights_only=True)` is expected to take the pickles.
        globals_to_allow: Classes to put on torch's list for that, where that is all it takes.
        reasons: Why, one sentence each.
    """

    verdict: FileVerdict
    weights_only: bool
    globals_to_allow: tuple[str, ...]
    reasons: tuple[str, ...]

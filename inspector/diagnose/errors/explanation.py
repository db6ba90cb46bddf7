"""What a pasted error message means for one file, as frozen data; and one row of the table of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from inspector.diagnose.errors.paste import Pasted, Scene
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import MOST_PATHS, Finding, Fix
from inspector.records import dataclass, field
from inspector.safety.verdict import SafetyVerdict
from inspector.target.profile import Profile
from inspector.units import cut_text, escape_text

Fit = Literal["yes", "no", "unknown"]
"""Whether the message fits the file: `no` when it must come from another file or from the user's own code."""

MOST_QUOTED = 300
"""Characters of a text that an explanation quotes at once."""
UNRECOGNIZED = "unrecognised"
"""The id of the explanation of a text that no row of the table knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer to a pasted error. All texts are plain, escaped, and safe to be shown as they are.

    Attributes:
        id: The kind of message, such as `device-unavailable`; `unrecognised` when no row knows the text.
        finding: The id of the finding that speaks of the same trouble; empty where there is none.
        quoted: The part of the text that was recognized; empty for an unrecognized one.
        cause: Why torch says that, for someone who knows no more than `torch.load`.
        where: The user's line that led to it, where the text shows one; else empty.
        here: What in this file causes it, or why it cannot come from this file.
        paths: The tensors that cause it, `MOST_PATHS` at most.
        fix: What the window can do about it, or None.
        also: Titles of what else was recognized in the text, for instance in an error before the last.
    """

    id: str
    finding: str
    title: str
    quoted: str
    cause: str
    where: str = ""
    here: str
    fits: Fit
    paths: tuple[str, ...] = ()
    count: int = 0
    advice: str
    fix: Fix | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a text alone tells.

    Attributes:
        groups: The parts of the message that the row's pattern names, as they stand in the text.
        text: The error in which the row was found, in one line.
    """

    groups: Mapping[str, str]
    text: str
    pasted: Pasted
    scene: Scene


Facts = Callable[[Told], Mapping[str, str]]
"""What Python code finds in a text, by name, for the conditions and sentences of a row; ready to be shown."""
Condition = Mapping[str, str]
"""Patterns by the name of a fact; all have to be found, but those of names with `not_` before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """What a row says of texts on which a condition holds, where it is more than of any."""

    conditions: tuple[Condition, ...] = ({},)
    title: str = ""
    cause: str = ""
    advice: str = ""
    finding: str = ""
    tie: Tie | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that a row may look at to tie a message to a file."""

    groups: Mapping[str, str]
    text: str
    pasted: Pasted
    scene: Scene
    checkpoint: Checkpoint
    safety: SafetyVerdict
    target: Profile | None
    findings: Mapping[str, Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tied:
    """What a message has to do with a file, as in `Explanation`; what is empty is as the row says."""

    fits: Fit
    here: str
    paths: Sequence[str] = ()
    count: int = 0
    fix: Fix | None = None
    advice: str = ""
    finding: str = ""


Tie = Callable[[Context], Tied]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorKind:
    """One row of the table: a message of torch, of Python or of a framework, through all its wordings.

    Attributes:
        pattern: Matches the message in a text whose white space is single spaces and whose quotes are plain.
            Letters stand for large and small ones, so no class in capitals is used; a space may be missing
            in the text, see `tracebacks`. Repetitions are bounded, so that no text can make it slow.
        tie: Finds the cause in a file; None where nothing in a file decides it.
        finding: The id of the finding that speaks of the same; empty where there is none.
        findings: By the text of the group `kind` in lower case, where it decides the finding.
        fix: What helps with any file, or None.
        needs: What the whole text has to match as well, in the letters as they stand; empty for nothing.
        never: What contradicts the row wherever it stands in the text, whatever the pattern matches.
        facts: What more is to be known of a text; None where its words and frames are enough.
        when: The row speaks of a text that its pattern matches only if one of these holds.
        say: What it says of one text: the first whose condition holds counts.
        is_wrapper: Whether the message says only that another one, before it in the text, was raised.
    """

    id: str
    title: str
    pattern: str
    cause: str
    advice: str
    tie: Tie | None = None
    finding: str = ""
    findings: Mapping[str, str] = field(default_factory=dict)
    fix: Fix | None = None
    needs: str = ""
    never: str = ""
    facts: Facts | None = None
    when: tuple[Condition, ...] = ()
    say: tuple[Saying, ...] = ()
    is_wrapper: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognized:
    """A row that knows a text, and what it says of it; the texts are those of `Explanation`."""

    kind: ErrorKind
    quoted: str
    told: Told
    title: str
    cause: str
    advice: str
    finding: str
    tie: Tie | None


def first_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Return as many paths as an explanation names."""
    return tuple(paths[:MOST_PATHS])


def read_where(scene: Scene) -> str:
    """Return the user's line that led to the error, with its file and function."""
    frame = scene.yours
    if frame is None:
        return ""
    name = frame.path.replace("\\", "/").rpartition("/")[2]
    line = f", line {frame.line}" if frame.line else ""
    function = f", in {frame.function}" if frame.function and not frame.function.startswith("<") else ""
    code = f": {frame.code}" if frame.code else ""
    return escape_text(cut_text(f"{name}{line}{function}{code}", MOST_QUOTED))

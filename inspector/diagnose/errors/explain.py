"""What a pasted traceback or error message means, and what in this file causes it.

A table of messages, one row for each through all its wordings since torch 1.0, is asked about each error in
the text, from the last to the first: the last ended the program, unless it only says that another was raised.
Notebooks print the source around each error, and with it messages that were not raised; so the whole text is
asked only if no error in it is known. What a terminal broke in the middle of a word is found without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from string import ascii_lowercase, ascii_uppercase

from inspector.diagnose.accepting import accepted_fix
from inspector.diagnose.errors.agreeing import agree
from inspector.diagnose.errors.explanation import (
    MOST_QUOTED,
    Context,
    ErrorKind,
    Explanation,
    Recognized,
    Said,
    Tied,
    Told,
    first_paths,
    read_where,
)
from inspector.diagnose.errors.paste import Pasted, Raised, Scene, read_pasted, read_scene, squeeze
from inspector.diagnose.errors.table import read_table
from inspector.diagnose.errors.unknown import unrecognized
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Fix
from inspector.target.profile import Profile
from inspector.target.simulate import judge_for
from inspector.units import cut_text, escape_text

__all__ = ["ERROR_KINDS", "explain_error"]

ERROR_KINDS = read_table()
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
_MOST_ERRORS = 50
_MOST_OF_ERROR = 16 * 1024
_MOST_HEAD = 16 * 1024
_MOST_TAIL = 48 * 1024
_MOST_ALSO = 4
_MOST_LAST = 120
_NOTHING = Tied(fits="unknown", here="Nothing in this file decides that; it is about the code that loads it.")
_ENDINGS = ("SystemExit", "KeyboardInterrupt")
"""What only ends a program, after an error or without one."""
_NO_FILE = "No file is open. Open the file that the error is about to see which of its tensors cause it."


def explain_error(
    text: str,
    checkpoint: Checkpoint | None,
    target: Profile | None = None,
    *,
    unread: CheckpointError | None = None,
) -> Explanation:
    """Explain a pasted traceback or message.

    Args:
        text: The text, of any length and with any noise around; nothing in it is trusted.
        checkpoint: The file that it is about; None if none is open.
        target: The machine that the file is to be loaded on, if one is chosen.
        unread: Why the file that was given cannot be read, where `checkpoint` is None for that.

    Returns:
        What it means, tied to the file. An unknown text is answered with `UNRECOGNIZED`, in at most 60 words.
    """
    pasted = read_pasted(text)
    found = _recognize(pasted)
    if not found:
        worst = None
        if checkpoint is not None:
            worst = next(iter(diagnose(checkpoint, judge_for(checkpoint, target), target)), None)
        return unrecognized(pasted, checkpoint, worst, _without(unread, "").here)
    recognized, *others = found
    kind, told = recognized.kind, recognized.told
    said = Said() if kind.say is None else kind.say(told)
    tied, context = _without(unread, _finding(recognized)), None
    if checkpoint is not None:
        context = _context(told, checkpoint, target)
        tied = _NOTHING if kind.tie is None else kind.tie(context)
    also = dict.fromkeys(other.kind.title for other in others if other.kind is not kind)
    last = _unknown_last(pasted, found)
    explanation = Explanation(
        id=kind.id,
        finding=tied.finding or _finding(recognized),
        title=said.title or kind.title,
        quoted=escape_text(cut_text(recognized.quoted, MOST_QUOTED)),
        cause=said.cause or kind.cause,
        where=read_where(told.scene),
        here=tied.here,
        fits=tied.fits,
        paths=first_paths(tied.paths),
        count=max(tied.count, len(tied.paths)),
        advice=tied.advice or said.advice or kind.advice,
        # A fix for a file that is not to blame would not help.
        fix=_fix(None if tied.fits == "no" else tied.fix or kind.fix, checkpoint, target),
        also=(*last, *also)[:_MOST_ALSO],
    )
    return explanation if context is None else agree(explanation, context)


def _without(unread: CheckpointError | None, finding: str) -> Tied:
    """Tie a message to no file, or to one that cannot be read: it fits if the message is about that."""
    if unread is None:
        return Tied(fits="unknown", here=_NO_FILE)
    is_it = finding and unread.finding == finding
    here = f"The given file cannot be read: {escape_text(cut_text(unread.what, MOST_QUOTED)).rstrip('.')}."
    return Tied(fits="yes" if is_it else "unknown", here=here)


def _unknown_last(pasted: Pasted, found: list[Recognized]) -> tuple[str, ...]:
    """Return the error that ended the program where only earlier ones are known."""
    last = pasted.errors[:1]
    if (
        not last
        or last[0].startswith(_ENDINGS)
        or any(match.told.text in {last[0], last[0][:_MOST_OF_ERROR]} for match in found)
    ):
        return ()
    if all(match.told.text not in pasted.errors for match in found):
        return ()
    return (f"last of all, and not recognized: {escape_text(cut_text(last[0], _MOST_LAST))}",)


def _fix(fix: Fix | None, checkpoint: Checkpoint | None, target: Profile | None) -> Fix | None:
    """Return a fix that can be carried out; without a file nobody knows."""
    return fix if checkpoint is None else accepted_fix(fix, checkpoint, target)


def _finding(recognized: Recognized) -> str:
    """Return the finding that speaks of the same trouble, as far as the text alone tells."""
    kind, groups = recognized.kind, recognized.told.groups
    if kind.finding_of is not None:
        return kind.finding_of(recognized.told.pasted)
    key = (groups.get("kind") or groups.get("key", "")).lower()
    return kind.findings.get(key, kind.finding)


def _context(told: Told, checkpoint: Checkpoint, target: Profile | None) -> Context:
    safety = judge_for(checkpoint, target)
    findings: dict[str, Finding] = {}
    for finding in diagnose(checkpoint, safety, target):
        findings.setdefault(finding.id, finding)
    return Context(
        groups=told.groups,
        text=told.text,
        pasted=told.pasted,
        scene=told.scene,
        checkpoint=checkpoint,
        safety=safety,
        target=target,
        findings=findings,
    )


# --- which row ----------------------------------------------------------------------------------------------


def _recognize(pasted: Pasted) -> list[Recognized]:
    """Return what is recognized in a text, the error that counts first."""
    found = [
        match
        for error in _weighed(pasted.raised)
        if (match := _first_match(error.text[:_MOST_OF_ERROR], pasted, error)) is not None
    ]
    found.sort(key=lambda match: match.kind.is_wrapper)
    if not found or found[0].kind.is_wrapper:
        anywhere = _first_match(_both_ends(pasted.flat), pasted, None)
        found = [*found, anywhere] if found and anywhere else found or ([anywhere] if anywhere else [])
        found.sort(key=lambda match: match.kind.is_wrapper)
    return found


def _weighed(errors: Sequence[Raised]) -> Iterator[Raised]:
    """Yield the errors that are compared, the last first: as much of them as of a text is looked through."""
    room = _MOST_HEAD + _MOST_TAIL
    for error in errors[:_MOST_ERRORS]:
        if room <= 0:
            return
        room -= min(len(error.text), _MOST_OF_ERROR)
        yield error


def _both_ends(text: str) -> str:
    """Return the beginning and the end of a long text: a message stands at either."""
    if len(text) <= _MOST_HEAD + _MOST_TAIL:
        return text
    return f"{text[:_MOST_HEAD]} {text[-_MOST_TAIL:]}"


def _first_match(text: str, pasted: Pasted, raised: Raised | None) -> Recognized | None:
    """Return the first row that knows a text, as it stands or as if lines were broken within words."""
    squeezed = squeeze(text)
    small, small_squeezed = text.translate(_SMALL), squeezed.translate(_SMALL)
    scene: Scene | None = None
    for kind in ERROR_KINDS:
        spaced_pattern, squeezed_pattern = _compile(kind.pattern)
        match, shown = spaced_pattern.search(small), text
        if match is None:
            match, shown = squeezed_pattern.search(small_squeezed), squeezed
        if match is None:
            continue
        scene = scene or read_scene(pasted, raised)
        told = Told(groups=_groups(match, shown), text=text, pasted=pasted, scene=scene)
        if _is_supported(kind, pasted.flat) and (kind.when is None or kind.when(told)):
            return Recognized(kind=kind, quoted=shown[slice(*match.span())], told=told)
    return None


def _is_supported(kind: ErrorKind, flat: str) -> bool:
    """Return whether a text has what a row needs, and nothing that contradicts it."""
    has_needs = not kind.needs or re.search(kind.needs, flat) is not None
    return has_needs and (not kind.never or re.search(kind.never, flat) is None)


def _groups(match: re.Match[str], text: str) -> dict[str, str]:
    """Return the parts of a match as they stand in the text, with their capital letters."""
    names = match.re.groupindex
    return {name: text[slice(*match.span(name))] if match[name] is not None else "" for name in names}


@cache
def _compile(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile a row's pattern when it is first asked: a window opens without it.

    Small letters in both are ten times as fast as a search that ignores the case.
    """
    pattern = pattern.translate(_SMALL).replace("(?p<", "(?P<")
    return re.compile(pattern), re.compile(squeeze(pattern))

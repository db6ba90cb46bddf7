"""What a pasted traceback or error message means, and what in this file causes it.

A table of messages, one row for each through all its wordings since torch 1.0, is asked about each error in
the text, from the last to the first: the last ended the program, unless it only says that another was raised.
Notebooks print the source around each error, and with it messages that were not raised; so the whole text is
asked only if no error in it is known. What a terminal broke in the middle of a word is found without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from string import ascii_lowercase, ascii_uppercase

from inspector.containers.formats import format_of
from inspector.diagnose.accepting import accepted_fix
from inspector.diagnose.errors.explanation import (
    MOST_QUOTED,
    UNRECOGNIZED,
    Condition,
    Context,
    ErrorKind,
    Explanation,
    Recognized,
    Saying,
    Tied,
    Told,
    first_paths,
    read_where,
)
from inspector.diagnose.errors.paste import Pasted, Raised, Scene, Step, read_pasted, read_scene, squeeze
from inspector.diagnose.errors.table import LOOKUPS, read_table
from inspector.diagnose.listing import plain
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.agents import loader_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Fix
from inspector.records import dataclass, replace
from inspector.target.opening import can_map
from inspector.target.profile import Profile
from inspector.target.simulate import judge_for
from inspector.target.versions import release_of
from inspector.units import cut_text, escape_text

# One voice: what an explanation advises is dropped where it contradicts what is known of the file.
#
# A row speaks of a message, for any file; the verdict and the findings speak of this one, and know better.

_SENTENCE = re.compile(r"(?<=[.!?)])\s+(?=[A-Z(\"'])|(?<=[.!?])\s+(?=\w+[.(=])")
_NEGATED = re.compile(r"\b(?:do not|never|not help|does not|no map_location|needs a)\b", re.IGNORECASE)
_OF_TORCH = ("torch.load", "torch.jit.", "torch.package.")
_OTHER = re.compile(r"\b(?:another|other) (?:file|copy|object|path)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """What may not be said of some files.

    Attributes:
        said: Matches a sentence that may not be said of them, but where it is negated.
        instead: What is said once in the place of all of them.
        always: Whether it also counts for an answer that is about another file.
    """

    of: Callable[[Context], bool]
    said: re.Pattern[str]
    instead: Callable[[Context], str]
    always: bool = False


def _is_found(*ids: str) -> Callable[[Context], bool]:
    return lambda context: not context.findings.keys().isdisjoint(ids)


def _torch_loads(context: Context) -> bool:
    return format_of(context.checkpoint.format).torch_loads


def _torch(context: Context) -> str | None:
    return None if context.target is None else context.target.torch_version


def _takes_map_location(context: Context) -> bool:
    """Return whether what loads a file can be told where to: torch's own, and those of folders."""
    form = format_of(context.checkpoint.format)
    return form.torch_loads or form.loader_maps or form.loader.startswith(_OF_TORCH)


def _loader(context: Context) -> str:
    return f"This file is loaded by {loader_of(context.checkpoint)}, as the printed code does."


CONTRADICTIONS = (
    Contradiction(
        of=lambda context: context.safety.may_harm,
        said=re.compile(r"weights_only=False|pickle\.load|joblib\.load|add_safe_globals|allow_pickle=True"),
        instead=lambda _: "Do not load this file with anything that runs what is in it.",
        always=True,
    ),
    Contradiction(
        of=_is_found("missing-part"),
        said=re.compile(r"assign=True|strict=False"),
        instead=lambda _: "Fetch the missing files first, and put them beside the others.",
    ),
    Contradiction(
        of=lambda context: "nested-pickle" in context.findings and not _torch_loads(context),
        said=re.compile(r"map_location ?=|\bwith map_location"),
        instead=lambda _: "No map_location reaches this pickle: load it with the printed code.",
    ),
    Contradiction(
        of=lambda context: not _torch_loads(context),
        said=re.compile(r"torch\.load\("),
        instead=_loader,
    ),
    Contradiction(
        of=lambda context: not _takes_map_location(context),
        said=re.compile(r"map_location ?="),
        instead=_loader,
    ),
    Contradiction(
        of=lambda context: not can_map(context.checkpoint, release_of(_torch(context))),
        said=re.compile(r"mmap=True"),
        instead=lambda _: "This file cannot be mapped (mmap=True): save it again with torch.save first.",
    ),
    Contradiction(
        of=_is_found("whole-module"),
        said=re.compile(r"load_state_dict\(torch\.load\("),
        instead=lambda _: "torch.load returns the model itself for this file.",
    ),
)


def agree(found: Explanation, context: Context) -> Explanation:
    """Return an explanation without what the file's verdict and findings contradict."""
    advice, here, instead = found.advice, found.here, []
    is_other = found.fits == "no" and _OTHER.search(found.here) is not None
    for one in CONTRADICTIONS:
        if (is_other and not one.always) or not one.of(context):
            continue
        shorter = _distributed_without(one, advice)
        if shorter != advice:
            instead.append(one.instead(context))
        advice = shorter
        here = here if one.always else _distributed_without(one, here) or here
    return replace(found, advice=" ".join(filter(None, [*instead[:1], advice])), here=here)


def _distributed_without(one: Contradiction, text: str) -> str:
    """Return a text without the sentences that say what may not be said."""
    parts = _SENTENCE.split(text)
    kept = [part for part in parts if one.said.search(part) is None or _NEGATED.search(part)]
    return text if len(kept) == len(parts) else " ".join(kept)


# What is said of a text that no row knows, in at most 60 words: what was seen, and the file's part in it.

_TYPE = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}(?P<name>[A-Za-z_]\w{0,60})(?= ?:| in |$)")
_MOST_NAME = 60
_MOST_TITLE = 80
_MOST_WHERE = 50
_DOING: dict[Step, str] = {
    "load": "while a file was loaded",
    "nested-load": "while a file was loaded",
    "script-load": "while a TorchScript file was loaded",
    "save": "while a file was saved",
    "load-weights": "in load_state_dict",
    "load-optimizer": "while optimizer state was loaded",
    "load-scheduler": "while scheduler state was loaded",
    "optimizer": "in an optimizer's step",
    "scheduler": "in a scheduler's step",
    "scaler": "in the gradient scaler",
    "clip": "while gradients were clipped",
    "loss": "in a loss function",
    "forward": "in the forward pass",
    "script": "in TorchScript code",
    "backward": "in the backward pass",
    "data": "while data was read",
    "pin": "while data was pinned",
    "move": "while something was moved or cast",
    "parallel": "in DataParallel",
    "distributed": "in torch.distributed",
    "wrap": "while the model was wrapped",
}
_OF_LOADING = frozenset({"", "load", "nested-load", "script-load"})
_OF_STATE = frozenset({"load-optimizer", "load-scheduler", "optimizer", "scheduler"})
_OF_WEIGHTS = "Of this file only names, shapes, dtypes and devices of its tensors can play a part."
_UNTOUCHED = "This step reads no checkpoint, so the file has probably no part in it."


def unrecognized(
    pasted: Pasted, checkpoint: Checkpoint | None, worst: Finding | None, without: str
) -> Explanation:
    """Return the answer to a text that no row knows: what was seen in it, and the part of the file."""
    raised = pasted.raised[0] if pasted.raised else None
    scene = read_scene(pasted, raised)
    if checkpoint is None or scene.step not in _OF_LOADING:
        worst = None
    return Explanation(
        id=UNRECOGNIZED,
        finding="" if worst is None else worst.id,
        title="This message is not recognized" if pasted.lines else "There is no text",
        quoted="",
        cause=_seen(pasted, scene),
        where=cut_text(read_where(scene), _MOST_WHERE),
        here=without if checkpoint is None else _here(checkpoint, scene.step, worst),
        fits="unknown",
        advice=_wanted(pasted, scene),
        paths=() if worst is None else worst.paths,
        count=0 if worst is None else worst.count,
        fix=None if worst is None else worst.fix,
    )


def _seen(pasted: Pasted, scene: Scene) -> str:
    """Name the error, whose code raised it, and during which step."""
    if not pasted.raised:
        return "No error stands in it."
    raised = pasted.raised[0]
    match = _TYPE.match(raised.text)
    name = escape_text(cut_text(match["name"], _MOST_NAME)) if match is not None else "An error"
    inner = raised.frames[-1] if raised.frames else None
    place = "" if inner is None else f" by {cut_text(inner.package, _MOST_NAME) or 'your code'}"
    doing = _DOING.get(scene.step, "")
    tail = f"{escape_text(place)}{f' {doing}' if doing else ''}"
    return f"Recognized: {name}{f', raised{tail}' if tail else ''}."


def _here(checkpoint: Checkpoint, step: Step, worst: Finding | None) -> str:
    """Return what the file can have to do with an error of a step, and what not."""
    if step in _OF_LOADING:
        if worst is None:
            return "Nothing is known to be wrong with this file."
        return f"Known about this file: {cut_text(worst.title, _MOST_TITLE)}."
    if step in _OF_STATE and not checkpoint.optimizers:
        return "This file holds no optimizer state that could cause it."
    if step in {"save", "data", "pin", "distributed", "wrap"}:
        return _UNTOUCHED
    return "Of this file only its optimizer state can play a part." if step in _OF_STATE else _OF_WEIGHTS


def _wanted(pasted: Pasted, scene: Scene) -> str:
    """Name the lines that are missing from a text."""
    if not pasted.raised:
        return "Paste the whole text, from the first 'Traceback' to the last line, in English."
    if not scene.has_frames:
        return "Paste what stands above it as well, from 'Traceback' on."
    return "Paste what stands above as well: an earlier error is often the cause."


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
    tied, context = _without(unread, recognized.finding), None
    if checkpoint is not None:
        context = _context(told, checkpoint, target)
        tied = _NOTHING if recognized.tie is None else recognized.tie(context)
    also = dict.fromkeys(other.kind.title for other in others if other.kind is not kind)
    last = _unknown_last(pasted, found)
    explanation = Explanation(
        id=kind.id,
        finding=tied.finding or recognized.finding,
        title=recognized.title,
        quoted=escape_text(cut_text(recognized.quoted, MOST_QUOTED)),
        cause=recognized.cause,
        where=read_where(told.scene),
        here=tied.here,
        fits=tied.fits,
        paths=first_paths(tied.paths),
        count=max(tied.count, len(tied.paths)),
        advice=tied.advice or recognized.advice,
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
        if _is_supported(kind, pasted.flat):
            found = _recognized(kind, shown[slice(*match.span())], told)
            if found is not None:
                return found
    return None


def _recognized(kind: ErrorKind, quoted: str, told: Told) -> Recognized | None:
    """Return what a row says of a text; None where its conditions do not hold."""
    facts: dict[str, str] = {}
    shown: dict[str, str] = {}
    say = Saying()
    if kind.facts is not None or kind.when or kind.say:
        shown = {"cause": kind.cause, **({} if kind.facts is None else kind.facts(told))}
        facts = {**_facts(told), **shown}
        if kind.when and all(_captured(one, facts) is None for one in kind.when):
            return None
        for one in kind.say:
            groups = next((got for row in one.conditions if (got := _captured(row, facts)) is not None), None)
            if groups is not None:
                say, facts = one, {**facts, **groups}
                break
    key = (told.groups.get("kind") or told.groups.get("key", "")).lower()
    return Recognized(
        kind=kind,
        quoted=quoted,
        told=told,
        title=_filled(say.title, facts, shown) or kind.title,
        cause=_filled(say.cause, facts, shown) or kind.cause,
        advice=_filled(say.advice, facts, shown) or kind.advice,
        finding=_filled(say.finding, facts, shown) or kind.findings.get(key, kind.finding),
        tie=say.tie or kind.tie,
    )


def _facts(told: Told) -> dict[str, str]:
    """Return what conditions are asked about, but for what a row computes itself."""
    scene, frames = told.scene, told.pasted.frames
    inner = frames[-1] if frames else None
    return {
        "text": told.text,
        "flat": told.pasted.flat,
        "step": scene.step,
        "layer": scene.layer,
        "code": scene.code,
        "framework": scene.package,
        "frames": "yes" if scene.has_frames else "",
        "places": "\n".join(frame.place for frame in frames),
        "codes": "\n".join(frame.code for frame in frames),
        "inner": "" if inner is None else inner.place,
        "inner_path": "" if inner is None else inner.path,
        **told.groups,
    }


def _captured(condition: Condition, facts: Mapping[str, str]) -> dict[str, str] | None:
    """Return the groups of a condition that holds; what one pattern names, those behind it may ask about."""
    groups: dict[str, str] = {}
    for name, pattern in condition.items():
        asked = name.removeprefix("not_")
        match = re.search(pattern, _value(asked, {**facts, **groups}), re.IGNORECASE)
        if (match is None) == (asked == name):
            return None
        if match is not None:
            groups |= match.groupdict("")
    return _merged(groups)


def _value(name: str, facts: Mapping[str, str]) -> str:
    """Return a fact; `table:fact` is what a table has for it, `one|other` the first that there is."""
    for one in name.split("|"):
        table, _, fact = one.rpartition(":")
        value = facts.get(fact, "")
        if table:
            value = LOOKUPS[table].get(value) or LOOKUPS[table].get(value.lower(), "")
        if value:
            return value
    return ""


def _filled(text: str, facts: Mapping[str, str], shown: Mapping[str, str]) -> str:
    """Put facts into a sentence; what stands in the text is escaped and cut."""
    return _FACT.sub(lambda match: shown.get(match[1]) or plain(_value(match[1], facts)), text)


_FACT = re.compile(r"<<([\w:|]+)>>")


def _is_supported(kind: ErrorKind, flat: str) -> bool:
    """Return whether a text has what a row needs, and nothing that contradicts it."""
    has_needs = not kind.needs or re.search(kind.needs, flat) is not None
    return has_needs and (not kind.never or re.search(kind.never, flat) is None)


def _groups(match: re.Match[str], text: str) -> dict[str, str]:
    """Return the parts of a match as they stand in the text, with their capital letters."""
    names = match.re.groupindex
    return _merged(
        {name: text[slice(*match.span(name))] if match[name] is not None else "" for name in names}
    )


def _merged(groups: dict[str, str]) -> dict[str, str]:
    """Let `name` stand for the first of `name`, `name2` and so on that is there."""
    for name, text in list(groups.items()):
        first = name.rstrip("0123456789")
        groups[first] = groups.get(first) or text
    return groups


@cache
def _compile(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile a row's pattern when it is first asked: a window opens without it.

    Small letters in both are ten times as fast as a search that ignores the case.
    """
    pattern = pattern.translate(_SMALL).replace("(?p<", "(?P<")
    return re.compile(pattern), re.compile(squeeze(pattern))

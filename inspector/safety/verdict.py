"""The verdict on a checkpoint's pickle: what it imports, and how `torch.load` would take that.

A verdict is never better than the truth: whatever is not known to be harmless counts as running code.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Literal

from inspector.containers.formats import format_of
from inspector.model.agents import loader_of
from inspector.model.checkpoint import Checkpoint, Verb
from inspector.model.obstacles import is_ambiguous
from inspector.pickles.oddities import OddityKind
from inspector.pickles.values import present_name
from inspector.records import dataclass, replace
from inspector.safety.allowlist import AllowList, allow_list
from inspector.safety.answer import AMBIGUOUS, Answer, answer_for
from inspector.safety.archives import Archive, ArchiveVerdict, judge_archive
from inspector.safety.calls import CallRow, call_rows
from inspector.safety.names import GlobalVerdict, judge_global, listed
from inspector.safety.offers import offers_for, withheld_reason
from inspector.safety.weights_only import refusals

__all__ = ["FileVerdict", "GlobalVerdict", "SafetyVerdict", "judge", "judge_global"]

FileVerdict = Literal["weights-only", "needs-allow-list", "runs-code", "unknown", "dangerous"]
"""The best first. `unknown`: loading would unpickle something that could not be read whole."""

_DANGER = "loading it can run commands"
_GETATTR = "builtins.getattr"
_MOST_NAMED = 8
_MOST_UNREAD = 4
_NOT_TORCH_S = "It was not written by torch.save."
# What rebuilds arrays and their types, which is on no list of torch's by default.
_ARRAYS = frozenset(
    {
        *(
            f"numpy.{core}.multiarray.{name}"
            for core in ("core", "_core")
            for name in ("_reconstruct", "scalar")
        ),
        *(f"numpy.{core}.numeric._frombuffer" for core in ("core", "_core")),
        *("numpy.ndarray", "numpy.dtype"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyVerdict:
    """What loading would need.

    Attributes:
        verdict: In one word. `judge` alone says that nothing was left unread.
        weights_only: Whether `torch.load(weights_only=True)` is expected to take the pickle. Whether torch
            can read the file around it is another matter, see `model.obstacles`.
        to_allow: Classes to put on torch's list for that, when that is all it takes, see `offers`.
        loader: What loads the file, where `torch.load` does not; it checks nothing.
        packages: Packages that those are from and that nothing is known of: they must be the reader's own, or
            trusted.
        reasons: Why, one sentence each.
        globals: The verdict on each name, in the order of the checkpoint's globals.
        torch_version: The torch whose list was asked.
        answer: What `torch.load(weights_only=True)` of that version will do with the whole file.
        calls: What `weights_only=False` would call besides what makes plain data, the worst first.
        has_pickles: Whether loading runs any pickle at all.
        is_unrestricted: Whether a loader of its own runs the pickles, which restricts nothing.
        calls_made: How many calls the pickle makes besides those that make plain tensors.
        archive: What opens the file, where that is another function than `torch.load`.
        danger: What a file can do that nobody should load.
    """

    verdict: FileVerdict
    weights_only: bool
    to_allow: tuple[str, ...]
    reasons: tuple[str, ...]
    globals: tuple[GlobalVerdict, ...]
    torch_version: str
    answer: Answer
    calls: tuple[CallRow, ...] = ()
    calls_made: int = 0
    packages: tuple[str, ...] = ()
    has_pickles: bool = True
    is_unrestricted: bool = False
    archive: Archive | None = None
    danger: str = _DANGER
    loader: str = ""

    @property
    def may_harm(self) -> bool:
        """Whether nobody should load it: it can run commands, or nobody knows what it runs."""
        return self.verdict in {"dangerous", "unknown"}

    @property
    def is_unsure(self) -> bool:
        """Whether nothing worse is known of it than that programs read different things from the file."""
        asks = bool(self.answer.names or self.answer.opcode)
        return self.verdict == "runs-code" and self.answer.kind == "ambiguous" and not asks


def judge(checkpoint: Checkpoint, torch_version: str | None = None) -> SafetyVerdict:
    """Judge what a checkpoint's pickle asks for.

    Args:
        checkpoint: The file.
        torch_version: The torch that is to load it; None for the one whose list is asked first.
    """
    allowed = allow_list(torch_version)
    found = _judge_read(checkpoint, allowed)
    unread = _unread(checkpoint, allowed)
    if not unread or found.verdict == "dangerous" or (found.archive and not found.archive.is_imported):
        return replace(found, reasons=(*found.reasons, *unread))
    return replace(
        found,
        verdict="unknown",
        weights_only=False,
        to_allow=(),
        packages=(),
        reasons=(*unread, *found.reasons),
        danger="what loading it runs is not known",
    )


def _unread(checkpoint: Checkpoint, allowed: AllowList) -> tuple[str, ...]:
    """Return what is not known of what loading unpickles, one sentence each."""
    rows = checkpoint.needs.unread
    if not allowed.is_default:
        rows += checkpoint.needs.unread_before_2_6
    named = [f"Not read whole, so what it would run is not known: {row}." for row in rows[:_MOST_UNREAD]]
    if len(rows) > _MOST_UNREAD:
        named.append(f"{len(rows) - _MOST_UNREAD:,} more could not be read.")
    return tuple(named)


def _judge_read(checkpoint: Checkpoint, allowed: AllowList) -> SafetyVerdict:
    """Judge what was read of a file."""
    form = format_of(checkpoint.format)
    names = form.own_names
    if form.unchecked and (checkpoint.safety is not None or not form.runs_with):
        told = f" with {form.runs_with}" if form.runs_with else ""
        return _unchecked(checkpoint, loader_of(checkpoint) + told, allowed)
    if names:
        return _unrestricted(checkpoint, names, allowed)
    own = judge_archive(checkpoint)
    return _of_pickle(checkpoint, allowed) if own is None else _of_archive(own, checkpoint, allowed)


def _of_pickle(checkpoint: Checkpoint, allowed: AllowList) -> SafetyVerdict:
    """Return the verdict on what `torch.load` opens."""
    answer = answer_for(checkpoint, allowed)
    rivals = checkpoint.needs.rivals
    verdicts = tuple(_judge_use(checkpoint, use.name) for use in checkpoint.globals)
    dangerous = [
        use.name for use, verdict in zip(checkpoint.globals, verdicts, strict=True) if verdict == "dangerous"
    ]
    doubts = [*_doubts(checkpoint), *islice(dict.fromkeys(refusals(checkpoint, allowed)), _MOST_NAMED)]
    wanted = answer.names
    offers = offers_for(checkpoint, wanted)
    withheld = [name for name in offers.withheld if judge_global(name) != "dangerous"]
    reasons = []
    own = [name for name in dangerous if name not in _elsewhere(checkpoint)]
    if own:
        reasons.append(f"Loading it with weights_only=False imports {listed(own)}, which can run anything.")
    if wanted:
        reasons.append(f"It imports names that are not on torch's allowlist: {listed(wanted)}.")
    reasons.extend(_asking(checkpoint, {*wanted, *dangerous}))
    if wanted and not allowed.takes_names:
        reasons.append(f"torch {allowed.torch_version} has no allowlist to add names to: that came with 2.4.")
    if withheld:
        reasons.append(withheld_reason(checkpoint, withheld))
    verdict: FileVerdict = "weights-only"
    if dangerous or OddityKind.BUILD_ON_NAME in checkpoint.needs.faults:
        verdict = "dangerous"
    elif doubts or withheld:
        verdict = "runs-code"
    elif wanted:
        verdict = "needs-allow-list" if allowed.takes_names else "runs-code"
    return SafetyVerdict(
        verdict=verdict,
        weights_only=verdict == "weights-only",
        to_allow=offers.offered if verdict == "needs-allow-list" else (),
        packages=offers.packages if verdict == "needs-allow-list" else (),
        reasons=(*reasons, *doubts),
        globals=verdicts,
        torch_version=allowed.torch_version,
        answer=answer,
        calls=call_rows(checkpoint),
        calls_made=checkpoint.needs.calls_made,
        has_pickles=checkpoint.safety is not None,
        danger=_DANGER if own or not rivals else f"{listed(rivals)}, can run commands",
    )


def _of_archive(own: ArchiveVerdict, checkpoint: Checkpoint, allowed: AllowList) -> SafetyVerdict:
    """Return the verdict on what another function opens."""
    version = allowed.torch_version
    rows = call_rows(checkpoint) if own.archive.is_imported else ()
    return SafetyVerdict(
        verdict="dangerous" if own.danger else "runs-code",
        weights_only=False,
        to_allow=(),
        reasons=own.reasons,
        globals=own.globals,
        torch_version=version,
        answer=Answer(kind="errors", reason=own.archive.refusal, torch_version=version),
        calls=rows,
        calls_made=checkpoint.needs.calls_made if rows else 0,
        archive=own.archive,
        danger=own.danger,
    )


def _unrestricted(checkpoint: Checkpoint, own: frozenset[str], allowed: AllowList) -> SafetyVerdict:
    """Judge what a loader runs that checks nothing: only data of its own and of torch is harmless there."""
    named = [(use.name, _judge_own(checkpoint, use.name, own)) for use in checkpoint.globals]
    dangerous = [name for name, verdict in named if verdict == "dangerous"]
    unknown = [name for name, verdict in named if verdict == "unknown"]
    doubts = _doubts_of_contents(checkpoint)  # what getattr reaches is judged name by name
    reasons = []
    if dangerous:
        reasons.append(f"Loading it imports {listed(dangerous)}, which can run anything.")
    if unknown:
        reasons.append(f"Loading it imports and calls what nothing is known of: {listed(unknown)}.")
    verdict: FileVerdict = "runs-code" if reasons or doubts else "weights-only"
    if dangerous or OddityKind.BUILD_ON_NAME in checkpoint.needs.faults:
        verdict = "dangerous"
    return SafetyVerdict(
        verdict=verdict,
        weights_only=verdict == "weights-only",
        to_allow=(),
        reasons=(*reasons, *doubts),
        globals=tuple(verdict for _, verdict in named),
        torch_version=allowed.torch_version,
        answer=Answer(
            kind="errors",
            reason=f"It is for {loader_of(checkpoint)}, not for torch.load.",
            torch_version=allowed.torch_version,
        ),
        calls=tuple(row for row in call_rows(checkpoint) if row.name not in own),
        calls_made=checkpoint.needs.calls_made,
        is_unrestricted=True,
        has_pickles=checkpoint.safety is not None,
    )


def _judge_own(checkpoint: Checkpoint, name: str, own: frozenset[str]) -> GlobalVerdict:
    if name in own:
        return "allowed"
    if present_name(name) == _GETATTR:
        reached = [found for found, verb in checkpoint.needs.uses if verb is Verb.GETATTR]
        return "allowed" if reached and all(_is_member(found, own) for found in reached) else "dangerous"
    return judge_global(name)


def _is_member(name: str, own: frozenset[str]) -> bool:
    """Return whether a name is that of a member of an enumeration."""
    holder, _, member = name.rpartition(".")
    return holder in own and holder.endswith("_ENCODING") and member.isupper()


def _asking(checkpoint: Checkpoint, names: set[str]) -> list[str]:
    """Return which files of several ask for these names."""
    parts = dict.fromkeys(use.part for use in checkpoint.globals if use.part and use.name in names)
    return [f"Asked for in {listed(tuple(parts))}."] if parts else []


def _unchecked(checkpoint: Checkpoint, loader: str, allowed: AllowList) -> SafetyVerdict:
    """Judge a file whose loader calls whatever is named in it: that can be harmless, and is never checked."""
    verdicts = tuple(_judge_use(checkpoint, use.name) for use in checkpoint.globals)
    named = list(zip((use.name for use in checkpoint.globals), verdicts, strict=True))
    dangerous = [name for name, verdict in named if verdict == "dangerous"]
    unknown = [name for name, verdict in named if verdict == "unknown" and name not in _ARRAYS]
    reasons = [f"{loader} checks nothing: it imports and calls whatever a file names."]
    if dangerous:
        reasons = [f"{loader} imports {listed(dangerous)}, which can run anything."]
    elif unknown:
        reasons.append(f"This one names {listed(unknown)}: load it only if you trust whoever made it.")
    else:
        reasons.append("This one names only what makes tensors, arrays and plain data.")
    faults = checkpoint.needs.faults
    is_dangerous = bool(dangerous) or OddityKind.BUILD_ON_NAME in faults
    return SafetyVerdict(
        verdict="dangerous" if is_dangerous else "runs-code",
        weights_only=False,
        to_allow=(),
        reasons=(*reasons, *_doubts(checkpoint)),
        globals=verdicts,
        torch_version=allowed.torch_version,
        answer=replace(answer_for(checkpoint, allowed), kind="errors", reason=_NOT_TORCH_S),
        calls=call_rows(checkpoint, partial(_judge_call, checkpoint)),
        calls_made=checkpoint.needs.calls_made,
        loader=loader,
    )


def _judge_call(checkpoint: Checkpoint, name: str) -> GlobalVerdict:
    """Judge a name that an unchecked loader calls: what rebuilds arrays makes plain data."""
    return "allowed" if present_name(name) in _ARRAYS else _judge_use(checkpoint, name)


def _judge_use(checkpoint: Checkpoint, name: str) -> GlobalVerdict:
    """Judge a name, and what `getattr` reaches in this file: Python 3.11 writes every enumeration with it."""
    if present_name(name) in checkpoint.needs.read_within:
        return "tensor"
    if present_name(name) != _GETATTR:
        return judge_global(name)
    reached = [found for found, verb in checkpoint.needs.uses if verb is Verb.GETATTR]
    harmless = reached and all(found and judge_global(found) != "dangerous" for found in reached)
    return "unknown" if harmless else "dangerous"


def _elsewhere(checkpoint: Checkpoint) -> list[str]:
    """Return the names that only what other readers unpickle asks for."""
    return [use.name for use in checkpoint.globals if use.elsewhere]


def _doubts(checkpoint: Checkpoint) -> list[str]:
    """Return what keeps a list of names from being enough."""
    doubts = _doubts_of_contents(checkpoint)
    if checkpoint.needs.rivals:
        dangerous = [name for name in _elsewhere(checkpoint) if judge_global(name) == "dangerous"]
        named = f"; it imports {listed(dangerous)}, which can run anything" if dangerous else ""
        rivals = listed(checkpoint.needs.rivals)
        doubts.append(f"Other programs run what this file's own loader does not: {rivals}{named}.")
    if any(present_name(use.name) == _GETATTR for use in checkpoint.globals):
        doubts.append("It imports getattr: allowing that would allow anything.")
    return doubts


def _doubts_of_contents(checkpoint: Checkpoint) -> list[str]:
    """Return what makes the pickle that was read another than the one that torch would run."""
    doubts = []
    if checkpoint.needs.oddities:
        doubts.append(f"Readers disagree about this pickle: {checkpoint.needs.oddities[0]}.")
    if is_ambiguous(checkpoint):
        doubts.append(AMBIGUOUS)
    return doubts

"""One voice: what an explanation advises is dropped where it contradicts what is known of the file.

A row speaks of a message, for any file; the verdict and the findings speak of this one, and know better.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, Explanation
from inspector.model.agents import loader_of
from inspector.records import dataclass, replace
from inspector.target.opening import can_map
from inspector.target.versions import release_of

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
        shorter = _without(one, advice)
        if shorter != advice:
            instead.append(one.instead(context))
        advice = shorter
        here = here if one.always else _without(one, here) or here
    return replace(found, advice=" ".join(filter(None, [*instead[:1], advice])), here=here)


def _without(one: Contradiction, text: str) -> str:
    """Return a text without the sentences that say what may not be said."""
    parts = _SENTENCE.split(text)
    kept = [part for part in parts if one.said.search(part) is None or _NEGATED.search(part)]
    return text if len(kept) == len(parts) else " ".join(kept)

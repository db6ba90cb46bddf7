"""The judgment of `target.default_load` in words: the same for the window and the command line."""

from __future__ import annotations

import re

from inspector.model.roles.device_types import device_type
from inspector.safety.verdict import SafetyVerdict
from inspector.target.default_load import DefaultLoad
from inspector.target.machine.profile import CPU_ONLY, Profile
from inspector.target.simulate import LoadFailure
from inspector.units import format_count

SAFETY = {
    "weights-only": "loads with weights_only=True, runs no code",
    "needs-allow-list": "needs names allowed for weights_only=True",
    "runs-code": "loads only with weights_only=False, which can run code in it",
    "dangerous": "DANGEROUS: can run commands when loaded",
}
"""The verdict on the pickles of a file."""

_UNSURE = "programs read different things from this file, so it counts as running code"
_SUGGESTION = re.compile(
    r" Please use `torch\.serialization\.add_safe_globals\(.*?class/function\.", re.DOTALL
)


_PLACES = {"this": "this machine", CPU_ONLY.id: "a machine without a GPU"}


def place(target: Profile) -> str:
    """Return a machine's name so that "on" can stand before it."""
    if target.evidence is not None and target.id != "this":
        return target.label.rpartition(" (")[0] or target.label  # what it has stands in the list of targets
    return _PLACES.get(target.id) or device_type(target.id).place or f"a machine with {target.label}"


def safety_sentence(load: DefaultLoad) -> str:
    """Return the verdict on the pickles, and no more than is true where something else stops the load."""
    said = verdict_words(load.safety)
    if load.is_safe and load.failure is not None:
        said = "holds nothing that runs code"
    return f"{'SAFE' if load.is_safe else 'NOT SAFE'}: {said}."


def verdict_words(safety: SafetyVerdict) -> str:
    """Return the verdict on the pickles in a few words."""
    return _UNSURE if safety.is_unsure else SAFETY[safety.verdict]


def load_sentence(load: DefaultLoad, where: str) -> str:
    """Return what `torch.load` does with a file where nothing else stops it, in one sentence."""
    return {
        "as-it-is": f"It loads on {where} as it is.",
        "unchecked": (
            f"It loads on {where} as it is, but unchecked: before 2.6, torch.load runs what a file asks for."
        ),
        "unsure": f"What was read of it loads on {where}; other programs read something else from this file.",
        "names": f"It loads on {where} once torch is told to allow {_names(load)}.",
        "full": f"It loads on {where} only with weights_only=False, which can run code in it.",
        "other": f"It does not load on {where}.",
        "never": "Loading this file can run commands on your computer.",
    }[load.way]


def refusal_sentence(load: DefaultLoad) -> str:
    """Return what the default call asks for, where something else stops it after that; empty for no such."""
    if not load.is_refused_first:
        return ""
    if load.way == "names":
        verb = "is" if len(load.safety.to_allow) == 1 else "are"
        return f"torch.load refuses it until {_names(load)} {verb} allowed."
    return "torch.load refuses it without weights_only=False."


def shown_message(load: DefaultLoad, failure: LoadFailure) -> str:
    """Return torch's words for people; its suggestion to allow a name only where that name may be allowed."""
    if load.safety.to_allow:
        return failure.message
    return _SUGGESTION.sub(" [\u2026]", failure.message)


def _names(load: DefaultLoad) -> str:
    return format_count(len(load.safety.to_allow), "name")

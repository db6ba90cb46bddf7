"""What loading a file does, in words: the judgment of `target.default_load` and of `safety.verdict`."""

from __future__ import annotations

import re

from inspector.model.roles.device_types import device_type
from inspector.safety.imports import IMPORTS, imports_for
from inspector.safety.names import listed
from inspector.safety.verdict import FileVerdict, SafetyVerdict
from inspector.target.default_load import DefaultLoad
from inspector.target.machine.profile import CPU_ONLY, Profile
from inspector.target.machine.wish import MOST_GPUS
from inspector.target.simulate import LoadFailure
from inspector.units import format_count

SAFETY: dict[FileVerdict, str] = {
    "weights-only": "loads with weights_only=True, runs no code",
    "needs-allow-list": "loads with weights_only=True once its classes are allowed",
    "runs-code": "loads only with weights_only=False, which can run code in the file",
    "unknown": "UNKNOWN: not all that loading it would run could be read",
    "dangerous": "DANGEROUS: loading it can run commands",
}
"""The verdict on the pickles of a file."""

SAFETY_LABELS: dict[FileVerdict, str] = {
    "weights-only": "safe: weights only",
    "needs-allow-list": "needs an allowlist",
    "runs-code": "not weights only",
    "unknown": "unknown",
    "dangerous": "dangerous",
}
"""The same in a word or two."""

_UNSURE_LABEL = "ambiguous"
_NO_PICKLE = "holds no pickle, so loading it runs no code"
_NO_PICKLE_LABEL = "safe: no pickle"
# A loader that restricts nothing is as safe as what the pickles name.
_UNRESTRICTED: dict[FileVerdict, str] = {
    "weights-only": "its pickles name nothing but tensors and plain data, so loading it runs no other code",
    "runs-code": "its loader runs whatever the pickles name, and not all of that is known",
}
_UNRESTRICTED_LABEL = "safe: data only"

_UNSURE = "programs read different things from this file, so it counts as running code"
_DAMAGED = "the file is damaged, so other programs may make something else of it"
_SUGGESTION = re.compile(
    r" Please use `torch\.serialization\.add_safe_globals\(.*?class/function\.", re.DOTALL
)


_PLACES = {"this": "this machine", CPU_ONLY.id: "a machine without a GPU"}


def place(target: Profile) -> str:
    """Return what a machine is called behind the word "on"."""
    if target.evidence is not None and target.id != "this":
        return target.label.rpartition(" (")[0] or target.label  # its devices are in the list of targets
    kind = target.id.partition("@")[0]  # behind it stands how much memory there is
    return _PLACES.get(kind) or device_type(kind).place or f"a machine with {target.label}"


def understood(target: Profile) -> str:
    """Return what was understood of a target: what there is, and what is wanted of it."""
    if target.wanted is None:
        return target.label
    return f"{target.label}{_fewest(target)}, {target.wanted} wanted"


def _fewest(target: Profile) -> str:
    """Return how many GPUs were taken for granted, and how more are written; empty where that was said."""
    if not target.is_fewest or target.wanted is None:
        return ""
    more = 2 * sum(count for _, count in target.accelerators)
    if more > MOST_GPUS:
        return f" (the fewest with {target.wanted})"
    word = f"{more}x{re.sub('^[0-9]+x', '', target.id)}:{target.wanted.partition(':')[2]}"
    return f" (the fewest with {target.wanted}; {word} means {more})"


def assumed(target: Profile) -> str:
    """Return what is taken for granted of a machine where no torch could be asked; empty where one was."""
    state = "" if target.evidence is None else target.evidence.torch.state
    if state in {"", "imported"}:
        return ""
    ails = "is not installed" if state == "missing" else "does not start"
    where = f"on {place(target)}" if target.python is None else f"in {target.python.label}"
    return f"torch {ails} {where}: import torch fails. This is for the newest torch on its CPU."


def safety_sentence(load: DefaultLoad) -> str:
    """Return the verdict on the pickles, without a promise to load where something else stops that."""
    said = verdict_words(load.safety)
    if load.safety.is_unsure and load.failure is not None and load.failure.finding == "truncated":
        said = _DAMAGED
    if load.is_safe and load.failure is not None:
        said = "nothing in it runs code"
    return f"{'SAFE' if load.is_safe else 'NOT SAFE'}: {said}."


def verdict_words(safety: SafetyVerdict) -> str:
    """Return the verdict on the pickles in a few words."""
    if safety.verdict == "unknown":
        return SAFETY["unknown"]
    if safety.archive is not None:
        return f"DANGEROUS: {safety.danger}" if safety.verdict == "dangerous" else safety.archive.words
    if not safety.has_pickles and safety.weights_only:
        return _NO_PICKLE
    if safety.loader and safety.verdict == "runs-code":
        return f"{safety.loader} runs whatever the file names"
    if safety.is_unrestricted and safety.verdict in _UNRESTRICTED:
        return _UNRESTRICTED[safety.verdict]
    return _UNSURE if safety.is_unsure else SAFETY[safety.verdict]


def safety_label(safety: SafetyVerdict) -> str:
    """Return the verdict on the pickles in a word or two, as a label."""
    if safety.archive is not None and not safety.may_harm:
        return safety.archive.label
    if not safety.has_pickles and safety.weights_only:
        return _NO_PICKLE_LABEL
    if safety.is_unrestricted and safety.verdict == "weights-only":
        return _UNRESTRICTED_LABEL
    return _UNSURE_LABEL if safety.is_unsure else SAFETY_LABELS[safety.verdict]


def load_sentence(load: DefaultLoad, where: str) -> str:
    """Return in one sentence what `torch.load` does with a file, or what else loads it."""
    if load.way == "never" and load.safety.verdict == "unknown":
        return f"Do not load it: {load.safety.danger}."
    if load.safety.loader and load.way != "never":
        return f"{load.safety.loader} loads it on {where}, and runs whatever it names."
    archive = load.safety.archive
    if archive is not None and load.way == "never":
        return f"Do not load it: {load.safety.danger}."
    if archive is not None:
        does = "loads" if load.stop is None else "does not load"
        return f"It {does} on {where} with {archive.loader}; torch.load {archive.otherwise}."
    return {
        "as-it-is": f"It loads on {where} as is.",
        "unchecked": (
            f"It loads on {where} as is, but unchecked: before 2.6, torch.load runs whatever a file asks for."
        ),
        "unsure": f"As read here it loads on {where}; other programs read something else from this file.",
        "names": f"It loads on {where} once {_allowed(load)}.",
        "full": f"It loads on {where} only with weights_only=False, which can run code in the file.",
        "other": f"It does not load on {where}.",
        "never": "Loading this file can run commands on your computer.",
    }[load.way]


def short_sentence(load: DefaultLoad, where: str) -> str:
    """Return the same for a line that has little room: what is asked of the user, not where."""
    if load.safety.loader or load.safety.archive is not None:
        return load_sentence(load, where)
    short = {
        "unchecked": "It loads unchecked: before torch 2.6, it runs whatever a file asks for.",
        "unsure": "As read here it loads; other programs read something else from it.",
        "names": f"It loads once {_allowed(load)}.",
        "full": "It loads only with weights_only=False, which can run code in it.",
    }
    return short.get(load.way) or load_sentence(load, where)


def refusal_sentence(load: DefaultLoad) -> str:
    """Return what the default call refuses before something else stops the load; empty where nothing does."""
    if not load.is_refused_first:
        return ""
    if load.way == "names":
        return f"torch.load refuses it until {_allowed(load)}."
    return "torch.load refuses it without weights_only=False."


def later_refusal(load: DefaultLoad) -> str:
    """Return what the default call refuses once everything is mapped; empty unless a device comes first."""
    stop = load.last_error
    if stop is None or not stop.device or load.is_refused_first or load.safety.loader:
        return ""
    if load.way == "names":
        return f"Mapped, it is refused until {_allowed(load)}: {listed(load.safety.to_allow)}."
    return "Mapped, it is refused without weights_only=False." if load.way == "full" else ""


def shown_message(load: DefaultLoad, failure: LoadFailure) -> str:
    """Return torch's message, without its advice to allow a name where that name must not be allowed."""
    if load.safety.to_allow:
        return failure.message
    return _SUGGESTION.sub(" [\u2026]", failure.message)


def _allowed(load: DefaultLoad) -> str:
    modules = imports_for(load.safety.to_allow)
    count = sum(name not in IMPORTS for name in load.safety.to_allow)
    parts = [f"{' and '.join(modules)} {_is(len(modules))} imported"] if modules else []
    if count or not modules:
        parts.append(f"{format_count(count, 'name')} {_is(count)} allowed (add_safe_globals)")
    return " and ".join(parts)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"

"""What loading a file does, in words: the judgment of `target.simulate` and of `safety.verdict`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.diagnose.fitting import MAP_DOES_NOT_FIT
from inspector.model.checkpoint import Checkpoint, Verb
from inspector.model.findings import Finding
from inspector.model.obstacles import CALLED_WRONGLY, find_obstacle
from inspector.model.roles.devices import device_type
from inspector.report.colors import device_names
from inspector.safety.words import IMPORTS, LEVELS, imports_for, shouted, verdict_words
from inspector.target.after_load import is_registered
from inspector.target.opening import OTHER_LOADER
from inspector.target.parts import Form, Kind, sorter_of
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import DefaultLoad, Judged, LoadFailure, device_failures
from inspector.target.versions import WEIGHTS_ONLY_DEFAULT, release_of
from inspector.target.wish import MOST_GPUS
from inspector.units import cut_text, escape_text, format_count

_DAMAGED = "the file is damaged, so other programs may make something else of it"
_MOST_NAME = 80
_MOST_NAMED = 3
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
    """Return how safe loading a file is, for the command line."""
    said = verdict_words(load.safety)
    if load.safety.is_unsure and load.failure is not None and load.failure.finding == "truncated":
        said = f"{LEVELS[load.safety.verdict]}: {_DAMAGED}"
    return f"{shouted(said)}."


class Verdict(NamedTuple):
    """What becomes of a load: one sentence, of which the window leaves out where.

    Attributes:
        does: What the file does: `loads`, `does not load`, `does not fit`, `is not known to load`.
        where: The machine, or `any machine`.
    """

    does: str
    where: str
    why: str
    role: Literal["good", "caution", "bad"]

    def sentence(self) -> str:
        """Return it for the command line, with what it comes to in capitals."""
        return f"{self.does.upper()} on {self.where}: {self.why}."

    def line(self, most: int) -> str:
        """Return it for the window; without the machine, which is named beside it, where it is too long."""
        does = self.does[:1].upper() + self.does[1:]
        whole = f"{does} on {self.where}: {self.why}."
        return whole if len(whole) <= most else f"{does}: {self.why}."


def load_verdict(judged: Judged, findings: Sequence[Finding], where: str, call: str = "") -> Verdict:
    """Return what becomes of a load.

    Args:
        findings: Its findings there: what is no device and no name is explained by them.
        call: The call that is meant, with its path; the loader's name if there is none.
    """
    load = judged.load
    if load.way == "never" and load.failure is not None and not load.failure.device:
        return Verdict("does not load", where, f"{load.loader} refuses it, and rightly", "bad")
    if is_unforeseen(judged):
        name = next(name for name, verb in judged.checkpoint.needs.uses if verb is Verb.MISCALL)
        why = f"{escape_text(cut_text(name, _MOST_NAME))} may not take the arguments that it is given"
        return Verdict("is not known to load", where, why, "bad")
    if load.last_error is not None:
        return _stopped(judged, findings, load.last_error, where)
    if load.failure is not None:
        why = _refusal(judged) or "one of its files is refused"
        return Verdict("does not load", where.replace("every", "any"), why, "caution")
    full = overflow_among(findings, judged.target)
    if full is not None:
        why = full.detail.partition(": ")[0] if full.id == "does-not-fit" else _small(full.title)
        return Verdict("does not fit", where, why, "bad")
    works = f"{call or load.loader} works there"
    if any(note.kind is NoteKind.MACHINE_CODE for note in judged.checkpoint.notes):
        works += _if_it_fits(judged.checkpoint)
    return _loading(load, findings, where, works)


def _if_it_fits(checkpoint: Checkpoint) -> str:
    own = checkpoint.own_loader
    made_for = own.made_for if own is not None else ""
    if not made_for:
        return " if its machine code fits, and the file does not say what that was compiled for"
    return f" if its machine code fits, which was compiled for {cut_text(made_for, _MOST_NAME)}"


def is_unforeseen(judged: Judged) -> bool:
    """Return whether a load meets arguments of which nobody can tell what comes: it counts as none."""
    stop = judged.load.failure
    verbs = {verb for _, verb in judged.checkpoint.needs.uses}
    return stop is not None and stop.message == CALLED_WRONGLY and Verb.MISCALL in verbs


def _stopped(judged: Judged, findings: Sequence[Finding], stop: LoadFailure, where: str) -> Verdict:
    if not stop.device:
        title = next((one.title for one in findings if one.id == stop.finding), "")
        why = _small(title) or f"{judged.load.loader} refuses it"
        return Verdict("does not load", "any machine", why, "bad")
    damage = damage_among(judged.checkpoint, findings)
    if damage is not None:  # what no other device mends comes first
        return Verdict("does not load", "any machine", _small(damage.title), "bad")
    missing = device_failures(judged.checkpoint, judged.target)
    saved = f"saved on {device_names(missing if stop.device in missing else [stop.device], _MOST_NAMED + 1)}"
    refused = _refusal(judged)
    return Verdict("does not load", where, f"{refused}, and {saved}" if refused else saved, "bad")


def _loading(load: DefaultLoad, findings: Sequence[Finding], where: str, works: str) -> Verdict:
    if load.way == "never":
        is_elsewhere = load.safety.answer.kind == "accepts"  # only other readers run it
        why = f"{load.loader} runs {'nothing of that' if is_elsewhere else 'what is in it'}"
        return Verdict("loads", where, why, "bad")
    if load.way == "unsure":
        return Verdict("loads", where, "as far as it could be read", "caution")
    if load.safety.archive is not None:
        return Verdict("loads", where, f"{works}; torch.load {load.safety.archive.otherwise}", "good")
    if any(one.id == OTHER_LOADER for one in findings):
        return Verdict("loads", where, f"{works}; torch.load does not read it", "good")
    is_checked = load.way == "as-it-is"
    why = works if is_checked else f"{works}, and runs whatever the file asks for"
    return Verdict("loads", where, why, "good" if is_checked else "caution")


def damage_among(checkpoint: Checkpoint, findings: Sequence[Finding]) -> Finding | None:
    """Return the damage that keeps a file from loading anywhere."""
    obstacle = find_obstacle(checkpoint)
    named = (one for one in findings if obstacle is not None and one.id == obstacle.kind.finding)
    return next((one for one in named if one.severity == "error"), None)


def overflow_among(findings: Sequence[Finding], target: Profile) -> Finding | None:
    """Return what does not fit: the load itself, or the map onto the device that is wanted."""
    ids = {"does-not-fit"} if target.wanted is None else {"does-not-fit", MAP_DOES_NOT_FIT}
    return next((finding for finding in findings if finding.id in ids), None)


def _refusal(judged: Judged) -> str:
    """Return what the restricted unpickler waits for; empty where the default call is not stopped by it."""
    load = judged.load
    restricts = release_of(judged.target.torch_version) >= WEIGHTS_ONLY_DEFAULT
    is_asked = format_of(judged.checkpoint.format).torch_loads and not load.safety.loader
    if load.way not in {"names", "full"} or not restricts or not is_asked:
        return ""
    return f"refused until {_allowed(load)}" if load.way == "names" else "refused without weights_only=False"


def _small(title: str) -> str:
    return escape_text(title[:1].lower() + title[1:])


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
        parts.append(f"{format_count(count, 'name')} {_is(count)} allowed")
    return " and ".join(parts)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


# What becomes of a tensor after `torch.load`, in words: whether the file or the code decides its device.

_STAYS = "It stays where torch.load puts it."
_COPIED = "load_state_dict copies it to the device of your model's own tensor."
_WORDS = {
    (Kind.MODEL, Form.STATE): _COPIED,
    (Kind.AVERAGE, Form.STATE): _COPIED,
    (Kind.LOSS, Form.STATE): "load_state_dict copies it to where your code made the loss.",
    (
        Kind.OPTIMIZER,
        Form.STATE,
    ): "optimizer.load_state_dict gives it the device and dtype of its parameter.",
    (Kind.OPTIMIZER, Form.OBJECT): "The optimizer is used as loaded: this stays where torch.load puts it.",
    (Kind.RNG, Form.TENSORS): "It stays where torch.load puts it, and is accepted on the CPU only.",
}
_LEFT = "optimizer.load_state_dict leaves it where torch.load puts it."
_MOVED_COUNTER = "optimizer.load_state_dict moves it to its parameter: the optimizer is capturable or fused."
_MODULE = "It stays where torch.load puts it, until .to(device) moves the module."
_ATTRIBUTE = "It stays where torch.load puts it: .to(device) does not move plain attributes."


class AfterWords:
    """Returns for one tensor after the other what becomes of it; looks a checkpoint through once."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Look it through."""
        self._checkpoint = checkpoint
        self._sorter = sorter_of(checkpoint)
        self._moves_counters = {one.path for one in checkpoint.optimizers if one.capturable}

    def of(self, index: int) -> str:
        """Return what becomes of a tensor, in a sentence."""
        row = self._checkpoint.tensors[index]
        if row.part_of is not None:
            row = self._checkpoint.tensors[row.part_of]
        kind, form, length = self._sorter.place(row)
        if form is Form.OBJECT and kind is not Kind.OPTIMIZER:
            return _MODULE if is_registered(row) else _ATTRIBUTE
        if kind is Kind.OPTIMIZER and form is Form.STATE and (row.slot is None or row.keys[-1] == "step"):
            path = "/".join(row.path.split("/", length)[:length])
            return _MOVED_COUNTER if row.slot and path in self._moves_counters else _LEFT
        return _WORDS.get((kind, form), _STAYS)

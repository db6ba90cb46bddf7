"""The banner and the safety chip: the verdict in one sentence, for the chosen target."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.model.findings import Finding
from inspector.model.totals import DeviceTotal
from inspector.safety.verdict import SafetyVerdict
from inspector.session.document import Document
from inspector.session.mapping import Destinations, moves_of
from inspector.session.screen import Banner, Chip, Tone
from inspector.target.profile import Profile
from inspector.target.simulate import simulate_load
from inspector.units import format_nbytes

_MOST_NAMED = 3
_CHIPS: dict[str, tuple[str, Tone, str]] = {
    "weights-only": (
        "safe: weights only",
        "good",
        "torch.load(weights_only=True) takes this file: it runs no code.",
    ),
    "needs-allow-list": (
        "names to allow",
        "warning",
        "weights_only=True needs names of other packages allowed first.",
    ),
    "runs-code": ("not weights only", "warning", "torch.load takes this file only with weights_only=False."),
    "dangerous": ("dangerous", "bad", "Loading this file with weights_only=False can run commands."),
}


def banner(document: Document, target: Profile, going: Destinations, findings: Sequence[Finding]) -> Banner:
    """Say what `torch.load` does on the target, and what the device map makes of it."""
    saved = saved_on(document.totals)
    failure = simulate_load(document.checkpoint, target)
    if failure is not None:
        return Banner(
            tone="bad",
            headline=f"{saved} On {target.label}, torch.load stops with this error:",
            advice=_advice(going),
            error_text=failure.message,
        )
    worst = next((finding for finding in findings if finding.severity != "note"), None)
    if worst is not None:
        advice = f"{worst.title}. {_advice(going)}".strip()
        return Banner(
            tone="warning", headline=f"{saved} It loads on {target.label}.", advice=advice, error_text=None
        )
    return Banner(
        tone="good",
        headline=f"{saved} It simply loads on {target.label}.",
        advice=_advice(going),
        error_text=None,
    )


def saved_on(totals: Sequence[DeviceTotal]) -> str:
    """Give the sentence that says where the tensors were saved."""
    if not totals:
        return "This file holds no tensors."
    named = [f"{total.device} ({format_nbytes(total.nbytes)})" for total in totals]
    if len(named) > _MOST_NAMED + 1:
        named = [*named[:_MOST_NAMED], f"{len(named) - _MOST_NAMED} more devices"]
    return f"Saved on {_listed(named)}."


def safety_chip(safety: SafetyVerdict) -> Chip:
    """Give the chip of the safety verdict."""
    text, tone, meaning = _CHIPS[safety.verdict]
    return Chip(text=text, tone=tone, tooltip=" ".join((meaning, *safety.reasons)))


def _advice(going: Destinations) -> str:
    moves = moves_of(going)
    if not moves:
        return ""
    if len({to for _, to in moves}) == 1:
        sent = f"{_listed([device for device, _ in moves])} to {moves[0][1]}"
    else:
        sent = _listed([f"{device} to {to}" for device, to in moves])
    return f"Map {sent}: export a fixed copy, or load it with the code."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"

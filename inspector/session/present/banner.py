"""The banner and the safety chip: the verdict in one sentence, for the chosen target."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.containers.formats import format_of
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diagnose.fitting import MAP_DOES_NOT_FIT
from inspector.model.findings import Finding
from inspector.model.roles.devices import DEVICE_FINDINGS
from inspector.model.totals import DeviceTotal
from inspector.records import replace
from inspector.report.colors import device_name, device_runs
from inspector.report.words.formats import nothing_to_map
from inspector.report.words.results import as_lines
from inspector.report.words.verdicts import (
    Verdict,
    assumed,
    damage_among,
    load_verdict,
    place,
    shown_message,
)
from inspector.safety.verdict import FileVerdict, SafetyVerdict
from inspector.safety.words import LEVELS, few, verdict_words
from inspector.session.device_map import DeviceMap
from inspector.session.document import Document
from inspector.session.screen import Banner, Chip, Tone
from inspector.target.call import behind_message
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import DefaultLoad, Judged, restore_failure
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_MOST_NAMED = 3
_MOST_CHARS = 300
_MOST_SPEAKER = 16
_SAID_BY_HEADLINE = frozenset({"needs-allow-list", "runs-code", "whole-module"})
_ONE_LINE = 80
_LEAST = 3
"""Devices in a row that have one name."""
_ROLES: dict[str, Tone] = {"good": "good", "caution": "warning", "bad": "bad"}
_TONES: dict[FileVerdict, Tone] = {
    "weights-only": "good",
    "needs-allow-list": "warning",
    "runs-code": "warning",
    "unknown": "bad",
    "dangerous": "bad",
}


def banner(  # noqa: PLR0917 - all that a verdict comes from
    document: Document,
    judged: Judged,
    device_map: DeviceMap,
    planned: DefaultLoad,
    findings: Sequence[Finding],
    ailment: str = "",
) -> Banner:
    """Return what `torch.load` does on the target, and what the device map makes of it; the worst first.

    Args:
        planned: What becomes of a copy by the map.
        findings: The findings of the file on the machine, worst first.
        ailment: What keeps torch from the machine's GPUs; empty where nothing is known to.
    """
    saved, target, load = saved_on(document), judged.target, judged.load
    full = next((found for found in findings if found.id == MAP_DOES_NOT_FIT), None)
    advised = _advice(device_map, target, planned) if full is None else _plain(f"{full.title}. {full.detail}")
    advice = f"{_plain(assumed(target))} {advised}".strip()
    if load.way == "never":
        return _dangerous(load, saved)
    said = load_verdict(judged, findings, _where(document, load, target))
    failure = load.last_error
    if failure is not None:
        if failure.device not in dict(device_map.going):  # no map of storages can help
            detail = next((found.detail for found in findings if found.id == failure.finding), "")
            advice = _plain(behind_message(detail, failure.message))  # the error is said already
        if ailment and failure.finding in DEVICE_FINDINGS:
            advice = f"{ailment}. {advice}".strip()
        damage = damage_among(document.checkpoint, findings)
        advice = advice if damage is None else _plain(damage.detail)  # no map would help either
        text = escape_text(shown_message(load, failure))
        if full is not None:
            said = said._replace(why=f"{said.why}; {_small(full.title)}")
        return _banner(said, saved, advice, error=text, speaker=_speaker(load))
    error = next((finding for finding in findings if finding.severity == "error"), None)
    if error is not None:
        return _banner(_spoiled(said, error), saved, _plain(error.detail))
    warnings = [finding for finding in findings if finding.severity == "warning"]
    remark = next((finding for finding in warnings if finding.id not in _SAID_BY_HEADLINE), None)
    if remark is not None:
        advice = f"{_plain(remark.title)}. {advice}".strip()
    if said.role == "good" and (warnings or device_map.refusal is not None or planned.failure is not None):
        said = said._replace(role="caution")
    return _banner(said, saved, advice)


def _spoiled(said: Verdict, error: Finding) -> Verdict:
    if error.id == "does-not-fit":
        return said
    return said._replace(does="does not load", where="any machine", why=_small(error.title), role="bad")


def short_verdict(judged: Judged, findings: Sequence[Finding]) -> tuple[Tone, str]:
    """Return what becomes of a load in a few words, green where a banner would be."""
    load = judged.load
    if load.way == "never":
        return "bad", verdict_words(load.safety)
    said = load_verdict(judged, findings, place(judged.target))
    worst = next((one for one in findings if one.severity != "note"), None)
    if load.last_error is None and worst is not None and worst.severity == "error":
        said = _spoiled(said, worst)
    if said.role == "good":
        if worst is not None:
            return "warning", f"{said.does}: {worst.title}"
        return "good", said.does
    return _ROLES[said.role], f"{said.does}: {said.why}"


def after_reading(foretold: Banner, read: tuple[Finding, ...]) -> Banner:
    """Return the banner after bytes were read: what is wrong with them takes its green away, and is said."""
    worst = next((one for one in read if one.severity != "note"), None)
    if worst is None:
        return foretold
    tone: Tone = "bad" if foretold.tone == "bad" or worst.severity == "error" else "warning"
    title = _plain(worst.title)
    return replace(
        foretold, tone=tone, aside=f"{title}. {foretold.aside}", advice=f"{title}. {foretold.advice}".strip()
    )


def _banner(
    said: Verdict, saved: str, advice: str, *, error: str | None = None, speaker: str = "torch.load"
) -> Banner:
    return Banner(
        tone=_ROLES[said.role],
        verdict=said.line(_ONE_LINE),
        aside=advice or saved,
        headline=f"{saved} {said.line(_MOST_CHARS)}",
        advice=advice,
        error_text=error,
        speaker=speaker,
    )


def saved_on(document: Document) -> str:
    """Return where the tensors were saved."""
    totals, module = document.totals, document.checkpoint.module_class
    if not totals:
        return "This file holds no tensors."
    if all(total.device == "meta" for total in totals):
        count = sum(total.tensors for total in totals)
        return f"Saved on meta: {format_count(count, 'tensor')} without data."
    if all(total.device == NO_DEVICE for total in totals):
        return "It holds no devices."
    named = _named(totals)
    where = f"aved on {few(named, _MOST_NAMED)}."
    return f"S{where}" if module is None else f"A whole module ({_plain(module)}), s{where}"


def safety_chip(verdict: SafetyVerdict) -> Chip:
    """Return the chip of the safety verdict."""
    why = (*as_lines([verdict_words(verdict)]), *map(_plain, verdict.reasons))
    return Chip(text=LEVELS[verdict.verdict], tone=_TONES[verdict.verdict], tooltip=" ".join(why))


def _dangerous(load: DefaultLoad, saved: str) -> Banner:
    why, (says,) = _plain(" ".join(load.safety.reasons[:1])), as_lines([_plain(verdict_words(load.safety))])
    return Banner(
        tone="bad",
        verdict=says,
        aside=why or saved,
        headline=f"{says} {saved}",
        advice=f"{why} Do not load it unless you made it yourself; a fixed copy would be no safer.".strip(),
        error_text=None,
    )


def _where(document: Document, load: DefaultLoad, target: Profile) -> str:
    everywhere = load.way != "unchecked" and all(
        restore_failure(total.device, CPU_ONLY) is None for total in document.totals
    )
    return "every machine" if everywhere else place(target)


# --- advice -------------------------------------------------------------------------------------------------


def _speaker(load: DefaultLoad) -> str:
    """Return who says what stops the load: the loader, where its name is short."""
    return load.loader if len(load.loader) <= _MOST_SPEAKER else "The loader"


def _advice(device_map: DeviceMap, target: Profile, planned: DefaultLoad) -> str:
    if device_map.refusal is not None:
        return f"This map cannot be carried out: {_plain(device_map.refusal.what)}."
    missing = {to for _, to in device_map.going if restore_failure(to, target) is not None}
    if planned.last_error is not None and device_map.branches:
        missing |= {planned.last_error.device} - {""}
    if missing:
        names = few([device_name(to) for to in sorted(missing)], _MOST_NAMED)
        return f"The map leaves tensors on {names}, and {place(target)} has no such device: choose another."
    moves, checkpoint = device_map.moves, device_map.checkpoint
    if not moves or format_of(checkpoint.format).loader_maps or nothing_to_map(checkpoint):
        return ""
    if len({to for _, to in moves}) == 1:
        runs = [name for name, _ in device_runs((device for device, _ in moves), _LEAST)]
        sent = f"{few(runs, _MOST_NAMED)} to {moves[0][1]}"
    else:
        sent = few([f"{device_name(device)} to {to}" for device, to in moves], _MOST_NAMED)
    start = f"{target.wanted} is wanted: map" if target.wanted in {to for _, to in moves} else "Map"
    return f"{start} {sent}: export a fixed copy, or use the loading code."


# --- names --------------------------------------------------------------------------------------------------


def _named(totals: Sequence[DeviceTotal]) -> list[str]:
    """Return devices with what is on them; a run such as cuda:0 to cuda:7 is one."""
    by_device = {total.device: total for total in totals}
    named = []
    for name, devices in device_runs(by_device, _LEAST):
        nbytes = sum(by_device[device].nbytes for device in devices)
        count = sum(by_device[device].tensors for device in devices)
        amount = format_nbytes(nbytes) if nbytes else format_count(count, "tensor")
        named.append(f"{'the CPU' if name == 'cpu' else name} ({amount})")
    return named


def _small(title: str) -> str:
    return _plain(title[:1].lower() + title[1:])


def _plain(text: str) -> str:
    return escape_text(cut_text(text, _MOST_CHARS))

"""The banner and the safety chip: the verdict in one sentence, for the chosen target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from inspector.containers.formats import format_of
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diagnose.fitting import MAP_DOES_NOT_FIT
from inspector.model.findings import Finding
from inspector.model.roles.device_types import DEVICE_FINDINGS
from inspector.model.roles.devices import split_device
from inspector.model.totals import DeviceTotal
from inspector.report.colors import device_name
from inspector.report.words.formats import nothing_to_map
from inspector.report.words.results import as_lines
from inspector.report.words.verdicts import (
    assumed,
    load_sentence,
    place,
    refusal_sentence,
    safety_label,
    short_sentence,
    shown_message,
    verdict_words,
)
from inspector.safety.verdict import FileVerdict, SafetyVerdict
from inspector.session.device_map import DeviceMap
from inspector.session.document import Document, load_of
from inspector.session.screen import Banner, Chip, Tone
from inspector.target.default_load import DefaultLoad
from inspector.target.machine.profile import CPU_ONLY, Profile
from inspector.target.simulate import restore_failure
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_MOST_NAMED = 3
_MOST_CHARS = 300
_MOST_SPEAKER = 16
_SAID_BY_HEADLINE = frozenset({"needs-allow-list", "runs-code", "whole-module"})
_TONES: dict[FileVerdict, Tone] = {
    "weights-only": "good",
    "needs-allow-list": "warning",
    "runs-code": "warning",
    "unknown": "bad",
    "dangerous": "bad",
}


def banner(
    document: Document, target: Profile, device_map: DeviceMap, findings: Sequence[Finding], ailment: str = ""
) -> Banner:
    """Return what `torch.load` does on the target, and what the device map makes of it; the worst first.

    Args:
        document: The file.
        target: The machine.
        device_map: Where each device goes.
        findings: The findings of the file on the machine, worst first.
        ailment: What keeps torch from the machine's GPUs; empty where nothing is known to.
    """
    saved = saved_on(document)
    full = next((found for found in findings if found.id == MAP_DOES_NOT_FIT), None)
    advised = _advice(device_map, target) if full is None else _plain(f"{full.title}. {full.detail}")
    advice = f"{_plain(assumed(target))} {advised}".strip()
    load = load_of(document, target)
    if load.way == "never":
        return _dangerous(load, saved)
    failure = load.last_error
    if failure is not None:
        where = place(target) if failure.device else "every machine"
        if failure.device not in dict(device_map.going):  # no map of storages can help
            detail = next((found.detail for found in findings if found.id == failure.finding), "")
            advice = _plain(detail.rpartition(failure.message)[2].lstrip(". "))  # the error is said already
        if ailment and failure.finding in DEVICE_FINDINGS:
            advice = f"{ailment}. {advice}".strip()
        before = refusal_sentence(load)
        stops = f"{before} Then, on {where}, it" if before else f"On {where}, {load.loader}"
        text = escape_text(shown_message(load, failure))
        return Banner(
            tone="bad",
            verdict=f"{load.loader} stops on {where}." if full is None else _overflows(load, full),
            aside=f"{before} {text}".strip(),
            headline=f"{saved} {stops} stops here:",
            advice=advice,
            error_text=text,
            speaker=_speaker(load),
        )
    damage = next((finding for finding in findings if finding.severity == "error"), None)
    if damage is not None:
        return _damaged(damage, load, saved, target)
    warnings = [finding for finding in findings if finding.severity == "warning"]
    remark = next((finding for finding in warnings if finding.id not in _SAID_BY_HEADLINE), None)
    if remark is not None:
        advice = f"{_plain(remark.title)}. {advice}".strip()
    is_good = load.way == "as-it-is" and not warnings and device_map.refusal is None
    where = _where(document, load, target)
    return Banner(
        tone="good" if is_good else "warning",
        verdict=short_sentence(load, where),
        aside=advice or saved,
        headline=f"{saved} {_loads(document, load, where)}",
        advice=advice,
        error_text=None,
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
    if len(named) > _MOST_NAMED + 1:
        named = [*named[:_MOST_NAMED], f"{len(named) - _MOST_NAMED} more devices"]
    where = f"aved on {_listed(named)}."
    return f"S{where}" if module is None else f"A whole module ({_plain(module)}), s{where}"


def safety_chip(safety: SafetyVerdict) -> Chip:
    """Return the chip of the safety verdict."""
    why = (*as_lines([verdict_words(safety)]), *map(_plain, safety.reasons))
    return Chip(text=safety_label(safety), tone=_TONES[safety.verdict], tooltip=" ".join(why))


def _dangerous(load: DefaultLoad, saved: str) -> Banner:
    why, says = _plain(" ".join(load.safety.reasons[:1])), load_sentence(load, "")
    return Banner(
        tone="bad",
        verdict=says,
        aside=why or saved,
        headline=f"{says} {saved}",
        advice=f"{why} Do not load it unless you made it yourself; a fixed copy would be no safer.".strip(),
        error_text=None,
    )


def _damaged(damage: Finding, load: DefaultLoad, saved: str, target: Profile) -> Banner:
    what, detail = _small(damage.title), _plain(damage.detail)
    is_read = damage.id in {"does-not-fit", MAP_DOES_NOT_FIT}
    stops = f"On {place(target)}: {what}." if is_read else f"{load.loader} does not read it: {what}."
    return Banner(
        tone="bad",
        verdict=f"{_plain(damage.title)}." if is_read else stops,
        aside=detail or saved,
        headline=f"{saved} {stops}",
        advice=detail,
        error_text=None,
    )


def _overflows(load: DefaultLoad, full: Finding) -> str:
    """Return that the load stops, and that the way out is closed: short, for it has to be read whole."""
    return f"{load.loader} stops, and {_small(full.title)}."


def _where(document: Document, load: DefaultLoad, target: Profile) -> str:
    everywhere = load.way != "unchecked" and all(
        restore_failure(total.device, CPU_ONLY) is None for total in document.totals
    )
    return "every machine" if everywhere else place(target)


def _loads(document: Document, load: DefaultLoad, where: str) -> str:
    said = load_sentence(load, where)
    return said if document.checkpoint.module_class is None else f"{said} Its class must be importable there."


# --- advice -------------------------------------------------------------------------------------------------


def _speaker(load: DefaultLoad) -> str:
    """Return who says what stops the load: the loader, where its name is short."""
    return load.loader if len(load.loader) <= _MOST_SPEAKER else "The loader"


def _advice(device_map: DeviceMap, target: Profile) -> str:
    if device_map.refusal is not None:
        return f"This map cannot be carried out: {_plain(device_map.refusal.what)}."
    missing = {to for _, to in device_map.going if restore_failure(to, target) is not None}
    if missing:
        names = _listed([device_name(to) for to in sorted(missing)[:_MOST_NAMED]])
        return f"The map leaves tensors on {names}, and {place(target)} has no such device: choose another."
    moves, checkpoint = device_map.moves, device_map.checkpoint
    if not moves or format_of(checkpoint.format).loader_maps or nothing_to_map(checkpoint):
        return ""
    if len({to for _, to in moves}) == 1:
        runs = [name for name, _ in _runs([device for device, _ in moves])]
        sent = f"{_listed(_few(runs))} to {moves[0][1]}"
    else:
        sent = _listed(_few([f"{device_name(device)} to {to}" for device, to in moves]))
    start = f"{target.wanted} is wanted: map" if target.wanted in {to for _, to in moves} else "Map"
    return f"{start} {sent}: export a fixed copy, or use the loading code."


# --- names --------------------------------------------------------------------------------------------------


def _named(totals: Sequence[DeviceTotal]) -> list[str]:
    """Return devices with what is on them; a run such as cuda:0 to cuda:7 is one."""
    by_device = {total.device: total for total in totals}
    named = []
    for name, devices in _runs(list(by_device)):
        nbytes = sum(by_device[device].nbytes for device in devices)
        count = sum(by_device[device].tensors for device in devices)
        amount = format_nbytes(nbytes) if nbytes else format_count(count, "tensor")
        named.append(f"{name} ({amount})")
    return named


def _runs(devices: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Join three or more devices with consecutive numbers: `cuda:0\u20137`."""
    runs = []
    numbered = enumerate(devices)
    for _, group in groupby(numbered, key=lambda item: _row_of(*item)):
        run = [device for _, device in group]
        if len(run) < 3:
            runs += [("the CPU" if device == "cpu" else device_name(device), [device]) for device in run]
        else:
            runs.append((f"{run[0]}\u2013{run[-1].rpartition(':')[2]}", run))
    return runs


def _row_of(position: int, device: str) -> tuple[str, int]:
    """Return what is the same for devices with consecutive numbers, and different for all others."""
    kind, index = split_device(device) or (device, None)
    return (kind, index - position) if index is not None else (device, -1)


def _few(items: list[str]) -> list[str]:
    return (
        items if len(items) <= _MOST_NAMED + 1 else [*items[:_MOST_NAMED], f"{len(items) - _MOST_NAMED} more"]
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _small(title: str) -> str:
    return _plain(title[:1].lower() + title[1:])


def _plain(text: str) -> str:
    return escape_text(cut_text(text, _MOST_CHARS))

"""A machine and what the GPU doctor says of it, as text for people and as the documents of `--json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.doctor.diagnosis import Diagnosis
from inspector.records import as_document
from inspector.report.page import MARKS, Block, Fact, Line, Page, Role, page_of
from inspector.report.words.verdicts import understood
from inspector.target.evidence import Evidence
from inspector.target.profile import Profile
from inspector.target.profile_file import MARK
from inspector.units import escape_text, format_nbytes

_CAPTION = 8
_DOUBTS = {"certain": "", "likely": " (likely)", "possible": " (possible)"}
Document = dict[str, Any]


def target_document(target: Profile) -> Document:
    """Return a machine as JSON: what loading depends on, and no more."""
    return {
        "id": target.id,
        "label": target.label,
        "understood": understood(target),
        "wanted": target.wanted,
        "destination": target.destination,
        "devices": list(target.devices),
        "gpus": as_document(target.gpus),
        "memory_nbytes": target.memory_nbytes,
        "torch_version": target.torch_version,
        "python": None if target.python is None else target.python.path,
    }


def machine_document(target: Profile, diagnoses: tuple[Diagnosis, ...]) -> Document:
    """Return the document of `target --json`; `profile` is what the probe printed, and null for a preset."""
    evidence = target.evidence
    return {
        "schema": 1,
        "target": target_document(target),
        "profile": None if evidence is None else profile_document(evidence),
        "diagnoses": as_document(diagnoses),
    }


def profile_document(evidence: Evidence) -> Document:
    """Return a profile that `--target FILE` takes again; mappings are tuples of pairs in a record."""
    found = as_document(evidence)
    return {
        MARK: 1,
        **found,
        "packages": dict(found["packages"]),
        "environment": dict(found["environment"]),
    }


def machine_page(target: Profile, diagnoses: tuple[Diagnosis, ...]) -> Page:
    """Return the description of a machine and its diagnoses, worst first."""
    head = [Line(escape_text(understood(target)), "file"), *_facts(target)]
    return page_of(head, *map(format_diagnosis, diagnoses))


def _facts(target: Profile) -> Iterator[Block]:
    if target.python is not None:
        yield _fact("python", escape_text(target.python.label))
    if target.torch_version is not None:
        yield _fact("torch", escape_text(target.torch_version))
    yield _fact("devices", ", ".join(target.devices))
    for gpu in target.gpus:
        memory = "" if gpu.memory_nbytes is None else f", {format_nbytes(gpu.memory_nbytes)}"
        capability = "" if gpu.capability is None else f", sm_{gpu.capability[0]}{gpu.capability[1]}"
        name = escape_text(gpu.name) or "no name"
        yield _fact(gpu.device, f"{name}{memory}{capability}")
    if target.memory_nbytes is not None:
        yield _fact("memory", format_nbytes(target.memory_nbytes))


def _fact(caption: str, text: str) -> Fact:
    return Fact(caption, text, _CAPTION, " ")


def format_diagnosis(diagnosis: Diagnosis) -> Iterator[Line]:
    """Yield one diagnosis, its evidence and its steps, each on lines of their own."""
    title = f"{escape_text(diagnosis.title)}{_DOUBTS[diagnosis.certainty]}"
    role: Role = diagnosis.severity
    yield Line(title, role, f"{MARKS[role]} ")
    yield from _wrapped(diagnosis.explanation, "   ")
    for line in diagnosis.evidence:
        yield from _wrapped(line, "   - ", "bullet", "     ")
    for number, step in enumerate(diagnosis.steps, 1):
        # Never wrapped: steps are pasted into a terminal.
        yield Line(escape_text(step), "code", f"   {number}. ")


def _wrapped(text: str, indent: str, role: Role = "text", hang: str | None = None) -> Iterator[Line]:
    shown = escape_text(text)
    if shown.strip():
        yield Line(shown, role, indent, hang, wraps=True, keeps_words=True)

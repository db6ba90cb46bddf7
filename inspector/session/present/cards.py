"""The cards of the findings page: findings, the answer to a pasted error, trouble with the machine's GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector.model.findings import Finding, Fix
from inspector.report.words.fixes import before
from inspector.report.words.machines import is_about_machine
from inspector.session.screen import FindingRow, Tone
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.diagnose.errors.explanation import Explanation
    from inspector.doctor.diagnosis import Diagnosis
    from inspector.target.profile import Profile
    from inspector.target.simulate import Judged

_MOST_NODES = 20
_TONES: dict[str, Tone] = {"error": "bad", "warning": "warning", "note": "neutral"}
_FITS: dict[str, Tone] = {"yes": "bad", "no": "neutral", "unknown": "warning"}


def finding_card(finding: Finding, nodes: Mapping[str, int], judged: Judged | None = None) -> FindingRow:
    """Return the card of a finding; `nodes` are the tree's, by path."""
    return FindingRow(
        id=finding.id,
        tone=_TONES[finding.severity],
        title=escape_text(finding.title),
        detail=escape_text(finding.detail),
        nodes=_nodes(finding.paths, nodes),
        count=finding.count,
        fix=finding.fix,
        lines=_lines(finding.fix, judged),
    )


def explanation_card(
    explanation: Explanation, nodes: Mapping[str, int], judged: Judged | None = None
) -> FindingRow:
    """Return the card that answers a pasted error; one about the machine names what ails it."""
    is_about = is_about_machine(explanation)
    facts = [
        ("Your line", explanation.where),
        ("Why", explanation.cause),
        ("On the target", ailments(judged.target) if judged is not None and is_about else ""),
        ("In this file", explanation.here),
        ("What to do", explanation.advice),
    ]
    if explanation.also:
        facts.append(("Also in the text", "; ".join(explanation.also)))
    return FindingRow(
        id=explanation.finding or explanation.id,
        tone=_FITS[explanation.fits],
        title=explanation.title,
        detail=explanation.quoted,
        nodes=_nodes(explanation.paths, nodes),
        fix=explanation.fix,
        lines=_lines(explanation.fix, judged),
        facts=tuple((caption, text) for caption, text in facts if text),
    )


@lru_cache(maxsize=8)
def doctor_cards(machine: Profile) -> tuple[FindingRow, ...]:
    """Return the cards about a machine's GPUs; none for a machine that was not probed."""
    if machine.evidence is None:
        return ()
    from inspector.doctor.examine import examine  # noqa: PLC0415 - seldom needed

    return tuple(map(_diagnosis_card, examine(machine)))


def ailments(machine: Profile) -> str:
    """Return what the GPU doctor says of a machine, in a line each; its cards below say more."""
    return "\n".join(card.title for card in doctor_cards(machine) if card.tone != "neutral")


def _diagnosis_card(diagnosis: Diagnosis) -> FindingRow:
    seen = (("Seen", "\n".join(map(escape_text, diagnosis.evidence))),) if diagnosis.evidence else ()
    sure = () if diagnosis.certainty == "certain" else (("Certainty", f"{diagnosis.certainty}"),)
    return FindingRow(
        id=diagnosis.id,
        tone=_TONES[diagnosis.severity],
        title=escape_text(diagnosis.title),
        detail=escape_text(diagnosis.explanation),
        facts=(*seen, *sure),
        steps=tuple(map(escape_text, diagnosis.steps)),
    )


def _lines(fix: Fix | None, judged: Judged | None) -> tuple[tuple[str, str], ...]:
    if fix is None or judged is None:
        return ()
    from inspector.report.remedies import remedies_for  # noqa: PLC0415 - many files need none

    remedies = enumerate(remedies_for(fix, judged))
    return tuple((before(one.kind, is_first=not number), one.text) for number, one in remedies)


def _nodes(paths: tuple[str, ...], nodes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([nodes[path] for path in paths[:_MOST_NODES] if path in nodes])

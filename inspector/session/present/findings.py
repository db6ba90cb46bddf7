"""The cards of the findings page: findings, the answer to a pasted error or script, trouble with the GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from inspector.errors import CheckpointError
from inspector.model.findings import Finding, Fix
from inspector.model.roles.devices import DEVICE_FINDINGS
from inspector.records import replace
from inspector.report.words.formats import before, is_about_machine
from inspector.report.words.verdicts import shown_message
from inspector.session.frame import shown_name
from inspector.session.pasted import WHICH_FILE, find_named, may_be_script
from inspector.session.screen import FindingRow, Tone
from inspector.target.call import behind_message
from inspector.target.profile import Profile
from inspector.target.simulate import DefaultLoad, Judged
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.diagnose.errors.explanation import Explanation
    from inspector.diagnose.script.answer import ScriptAnswer
    from inspector.doctor.diagnosis import Diagnosis
    from inspector.model.checkpoint import Checkpoint
    from inspector.progress import Progress

_MOST_NODES = 20
_TONES: dict[str, Tone] = {"error": "bad", "warning": "warning", "note": "neutral"}
_FITS: dict[str, Tone] = {"yes": "bad", "no": "neutral", "unknown": "warning"}
_OUTCOMES: dict[str, Tone] = {
    "fails": "bad",
    "silent": "bad",
    "works": "good",
    "lost": "warning",
    "not-loaded": "neutral",
}
_HEADLINES = {"dangerous-global": "Do not load this file, unless you made it yourself"}
"""Where the title of a finding is what the banner says."""
_SEARCHES = {"truncated": "is:missing", "invalid-tensor": "is:impossible"}
"""What finds the tensors of a finding and says more than its id."""
_COMMAND = re.compile(r" \(checkpoint-inspector [^()]*\)")
"""Where a button does it."""
_EXPORT, _COPY = "Export fixed copy\u2026", "Copy loading code"
_PASTED = "script.py"
_OPEN_IT = "Open that file, and the script is judged with it: which line fails, why, and how to mend it."


def finding_card(finding: Finding, nodes: Mapping[str, int], judged: Judged | None = None) -> FindingRow:
    """Return the card of a finding; `nodes` are the tree's, by path."""
    load = None if judged is None else judged.load
    detail, said = _detail(finding, load)
    card = FindingRow(
        id=finding.id,
        tone=_TONES[finding.severity],
        title=escape_text(_HEADLINES.get(finding.id, finding.title)),
        detail=escape_text(_COMMAND.sub("", detail)),
        nodes=_nodes(finding.paths, nodes),
        count=finding.count,
    )
    card = replace(card, query=_search(finding) if card.nodes else "")
    return _mended(card, finding.fix, judged, said)


def _detail(finding: Finding, load: DefaultLoad | None) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what a finding says, and in full what torch says there, which it quotes in short."""
    failure = None if load is None else load.last_error
    if load is None or failure is None or failure.finding != finding.id:
        return finding.detail, ()
    rest = behind_message(finding.detail, failure.message)
    said = (f"{load.loader} says:", escape_text(shown_message(load, failure)))
    return rest or finding.detail, (said,)


def _search(finding: Finding) -> str:
    device = "" if finding.fix is None else finding.fix.rule.rpartition("=")[0].rstrip("*:")
    if finding.id in DEVICE_FINDINGS and device.replace(":", "").isalnum():
        return f"device:{device}"
    return _SEARCHES.get(finding.id, f"finding:{finding.id}")


def _mended(
    card: FindingRow, fix: Fix | None, judged: Judged | None, said: tuple[tuple[str, str], ...] = ()
) -> FindingRow:
    """Return a card with the one button that mends it, and the lines that do so elsewhere."""
    if fix is None:
        return replace(card, lines=said)
    if judged is None:  # without a file there is no line to copy but the argument itself
        option = "" if fix.option is None else "=".join(fix.option)
        return replace(card, fix=fix, button=f"Copy {option}" if option else "", copies=option)
    from inspector.report.remedies import remedies_for  # noqa: PLC0415 - many files need none

    found = remedies_for(fix, judged)
    lines = tuple((before(one.kind, is_first=not place), one.text) for place, one in enumerate(found))
    kinds = {one.kind for one in found}
    copies = next((one.text for one in found if one.language == "python"), "")
    button = fix.label
    exports = bool(fix.rule) and "copy" in kinds
    if exports:
        button, copies = _EXPORT, ""
    elif copies:
        button = _COPY
    elif fix.option is not None:
        copies = "=".join(fix.option)
        button = f"Copy {copies}"
    return replace(card, fix=fix, exports=exports, button=button, copies=copies, lines=(*said, *lines))


def _nodes(paths: tuple[str, ...], nodes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([nodes[path] for path in paths[:_MOST_NODES] if path in nodes])


# The answer to what was pasted.


def explanation_card(
    explanation: Explanation,
    nodes: Mapping[str, int],
    judged: Judged | None = None,
    ailments: tuple[str, ...] = (),
) -> FindingRow:
    """Return the card that answers a pasted error; one about the machine names what ails it."""
    is_about = is_about_machine(explanation)
    facts = [
        ("Your line", explanation.where),
        ("Why", explanation.cause),
        ("On the target", "\n".join(ailments) if is_about else ""),
        ("To know more" if judged is None else "In this file", explanation.here),
        ("What to do", explanation.advice),
    ]
    if explanation.also:
        facts.append(("Also in the text", "; ".join(explanation.also)))
    card = FindingRow(
        id=explanation.finding or explanation.id,
        tone=_FITS[explanation.fits],
        title=explanation.title,
        detail=explanation.quoted,
        nodes=_nodes(explanation.paths, nodes),
        count=explanation.count,
        facts=tuple((caption, text) for caption, text in facts if text),
    )
    return _mended(card, explanation.fix, judged)


def answer_alone(
    text: str, target: Profile, folder: str, known: tuple[str, ...], _progress: Progress
) -> FindingRow:
    """Return the card that answers a text while no file is open, with a button for the file that it names."""
    if may_be_script(text):
        card = FindingRow(id="script", tone="neutral", title=WHICH_FILE, detail=_OPEN_IT)
    else:
        from inspector.diagnose.errors.explain import explain_error  # noqa: PLC0415 - few windows are asked

        card = explanation_card(explain_error(text, None, target), {})
    path = find_named(text, (folder,), known)
    return replace(card, opens=path, opening=f"Open {shown_name(path)}") if path else card


def script_card(text: str, name: str, checkpoint: Checkpoint, target: Profile) -> FindingRow:
    """Judge a script with a file, and return the card with the answer."""
    from inspector.diagnose.script.answer import answer_script  # noqa: PLC0415 - few windows are asked
    from inspector.report.scripts import script_headline  # noqa: PLC0415 - as above

    try:
        answer = answer_script(text, name or _PASTED, checkpoint, target)
    except CheckpointError as error:
        return FindingRow(
            id="script",
            tone="warning",
            title="This script cannot be read",
            detail=escape_text(f"{error.what}: {error.where}" if error.where else error.what),
        )
    return FindingRow(
        id=answer.kind or "script",
        tone="bad" if answer.is_dangerous else _OUTCOMES[answer.outcome],
        title=script_headline(answer),
        detail=f"{answer.line or answer.load_line}: {answer.source}" if answer.source else "",
        facts=_facts(answer),
        patch=answer.diff,
    )


def _facts(answer: ScriptAnswer) -> tuple[tuple[str, str], ...]:
    from inspector.report.scripts import further_sentences, patch_note, script_limits  # noqa: PLC0415 - as above

    advice = answer.advice if answer.diff else ""
    facts = (
        ("What torch says", answer.message),
        ("Why", answer.why),
        ("Then", "\n".join(further_sentences(answer))),
        ("Limits", "\n".join(script_limits(answer))),
        ("What to do", "\n".join(filter(None, (advice, patch_note(answer) if answer.line else "")))),
    )
    return tuple((caption, text) for caption, text in facts if text)


# How the GPUs are doing.


def doctor_cards(target: Profile) -> tuple[FindingRow, ...]:
    """Return the cards about a machine's GPUs; none for a machine that was not probed."""
    if target.evidence is None:
        return ()
    from inspector.doctor.examine import examine  # noqa: PLC0415 - seldom needed

    return tuple(map(_diagnosis_card, examine(target)))


def ailments(doctor: tuple[FindingRow, ...]) -> tuple[str, ...]:
    """Return what the GPU doctor says of a machine; its cards below say more."""
    return tuple(card.title for card in doctor if not card.is_note)


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

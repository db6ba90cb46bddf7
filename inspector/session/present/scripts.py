"""The card that answers a script: the load or the line that fails, why, and the patch."""

from __future__ import annotations

from inspector.diagnose.script.answer import Outcome, ScriptAnswer, answer_script
from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint
from inspector.report.scripts import further_sentences, patch_note, script_headline, script_limits
from inspector.session.screen import FindingRow, Tone
from inspector.target.profile import Profile
from inspector.units import escape_text

_TONES: dict[Outcome, Tone] = {
    "fails": "bad",
    "silent": "bad",
    "works": "good",
    "lost": "warning",
    "not-loaded": "neutral",
}
_PASTED = "script.py"


def script_card(text: str, name: str, checkpoint: Checkpoint, target: Profile) -> FindingRow:
    """Judge a script with a file, and return the card with the answer."""
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
        tone="bad" if answer.is_dangerous else _TONES[answer.outcome],
        title=script_headline(answer),
        detail=f"{answer.line or answer.load_line}: {answer.source}" if answer.source else "",
        facts=_facts(answer),
        patch=answer.diff,
    )


def _facts(answer: ScriptAnswer) -> tuple[tuple[str, str], ...]:
    advice = answer.advice if answer.diff else ""
    facts = (
        ("What torch says", answer.message),
        ("Why", answer.why),
        ("Then", "\n".join(further_sentences(answer))),
        ("Limits", "\n".join(script_limits(answer))),
        ("What to do", "\n".join(filter(None, (advice, patch_note(answer) if answer.line else "")))),
    )
    return tuple((caption, text) for caption, text in facts if text)

"""What a script does with a file, in sentences: worded once for the window and the command line."""

from __future__ import annotations

from inspector.diagnose.script.answer import ScriptAnswer
from inspector.units import cut_text

_MOST_CHARS = 200


def script_headline(answer: ScriptAnswer) -> str:
    """Return the answer in one sentence."""
    lost = answer.lost
    where = "cell line" if answer.is_notebook else "line"
    if answer.outcome == "fails":
        return f"{where.capitalize()} {answer.line} fails."
    if answer.is_dangerous and answer.outcome in {"works", "lost"}:
        return "Do not run this script: loading this file can run commands on your computer."
    if answer.outcome == "silent":
        return f"{where.capitalize()} {answer.line} raises nothing, and does nothing."
    if lost is not None:
        return f"Nothing fails before {where} {lost.line}. From there on it cannot be followed: {lost.why}."
    if answer.outcome == "works":
        return "Nothing in this script fails with this file on this target."
    return "No call of torch.load in this script loads this file."


def further_sentences(answer: ScriptAnswer) -> tuple[str, ...]:
    """Return what goes wrong once the first problem is mended, a sentence for each line.

    What else a line raises, patched so far, belongs to tries that did not mend it.
    """
    first = {one.line: one for one in reversed(answer.further)}
    return tuple(
        f"Then line {one.line}: {_summary(one.message) or one.why}"
        for one in answer.further
        if one is first[one.line]
    )


def _summary(message: str) -> str:
    """Return the first line of a message, and the next where it is only a heading."""
    first, _, rest = message.partition("\n")
    more = rest.strip().partition("\n")[0] if first.endswith(":") else ""
    return cut_text(f"{first} {more}".strip(), _MOST_CHARS)


def script_limits(answer: ScriptAnswer) -> tuple[str, ...]:
    """Return what the answer rests on: conditions taken for true, and where following ended."""
    found = []
    if answer.assumed:
        found.append(f"Taken for true: {'; '.join(answer.assumed)}.")
    if answer.lost is not None and answer.outcome in {"fails", "silent"}:
        found.append(f"From line {answer.lost.line} on not all is known: {answer.lost.why}.")
    return tuple(found)


def patch_note(answer: ScriptAnswer) -> str:
    """Return what is to be known of the patch."""
    if answer.diff:
        return "With this patch, nothing in the script fails any more, as far as it can be followed."
    return answer.advice or "No small change of the script mends this."

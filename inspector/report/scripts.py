"""The answer to a script as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.script.answer import ScriptAnswer
from inspector.records import as_document
from inspector.report.jsonable import Document
from inspector.report.text import wrapped_lines
from inspector.report.words.scripts import further_sentences, patch_note, script_headline, script_limits

_INDENT = "  "


def script_document(answer: ScriptAnswer) -> Document:
    """Return the answer as `check --json` has it, under the key `script`."""
    further = [
        {key: one[key] for key in ("kind", "line", "message", "why")} for one in as_document(answer.further)
    ]
    return {
        "name": answer.name,
        "outcome": answer.outcome,
        "kind": answer.kind or None,
        "line": answer.line or None,
        "source": answer.source,
        "message": answer.message or None,
        "why": answer.why,
        "advice": answer.advice,
        "diff": answer.diff or None,
        "further": further,
        "lost": None if answer.lost is None else as_document(answer.lost),
        "assumed": list(answer.assumed),
        "dangerous": answer.is_dangerous,
        "notebook": answer.is_notebook,
    }


def script_lines(answer: ScriptAnswer) -> Iterator[str]:
    """Yield the answer as text: the line, what torch says there, why, and the patch."""
    yield f"The script {answer.name}"
    yield from wrapped_lines(script_headline(answer), _INDENT)
    if answer.line:
        yield from wrapped_lines(f"{answer.line}: {answer.source}", "      ")
        for line in answer.message.split("\n"):
            yield from wrapped_lines(line.strip(), "      ")
        yield from wrapped_lines(answer.why, _INDENT)
        for sentence in further_sentences(answer):
            yield from wrapped_lines(sentence, _INDENT)
        if answer.advice and answer.diff:
            yield from wrapped_lines(answer.advice, _INDENT)
        yield from wrapped_lines(patch_note(answer), _INDENT)
    for sentence in script_limits(answer):
        yield from wrapped_lines(sentence, _INDENT)
    if answer.diff:
        yield ""
        yield answer.diff.rstrip("\n")

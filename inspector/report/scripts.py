"""The answer to a script as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.script.answer import ScriptAnswer
from inspector.records import as_document
from inspector.report.jsonable import Document
from inspector.report.page.blocks import Line, Role, lines_of, prose
from inspector.report.words.scripts import (
    further_sentences,
    message_lines,
    patch_note,
    script_headline,
    script_limits,
)

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
        "load_line": answer.load_line or None,
        "file": answer.file or None,
        "leaves": answer.leaves,
        "also": list(answer.also),
        "unjudged": list(answer.unjudged),
    }


def script_lines(answer: ScriptAnswer) -> Iterator[Line]:
    """Yield the answer as text: the line, what torch says there, why, and the patch."""
    yield Line(f"The script {answer.name}", "heading")
    is_bad = answer.outcome in {"fails", "silent"} or answer.is_dangerous
    role: Role = "bad" if is_bad else "good" if answer.outcome == "works" else "caution"
    yield from (line._replace(role=role) for line in prose(script_headline(answer), _INDENT))
    if answer.source:
        yield from prose(f"{answer.line or answer.load_line}: {answer.source}", "      ")
    if answer.kind:
        for line in message_lines(answer):
            yield from prose(line, "      ")
        yield from prose(answer.why, _INDENT)
        for sentence in further_sentences(answer):
            yield from prose(sentence, _INDENT)
        if answer.advice and answer.diff:
            yield from prose(answer.advice, _INDENT)
        yield from prose(patch_note(answer), _INDENT)
    for sentence in script_limits(answer):
        yield from prose(sentence, _INDENT)
    if answer.diff:
        yield Line("")
        yield from lines_of(answer.diff.rstrip("\n").replace("\r", "").split("\n"), "code")

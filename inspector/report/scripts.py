"""The answer to a script as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.script.answer import ScriptAnswer
from inspector.records import as_document
from inspector.report.jsonable import Document
from inspector.report.page import Line, Role, lines_of, prose
from inspector.units import cut_text

# What a script does with a file, in sentences: worded once for the window and the command line.

_MOST_CHARS = 160
_DANGER = "Do not run this script: loading this file can run commands on your computer."


def script_headline(answer: ScriptAnswer) -> str:
    """Return the answer in one sentence."""
    place = _place(answer, answer.line or answer.load_line)
    where = place if answer.file else place[:1].upper() + place[1:]
    if answer.outcome == "fails":
        return f"{where} fails{_when(answer)}."
    if answer.is_dangerous and answer.outcome in {"works", "lost"}:
        return _DANGER
    if answer.outcome == "silent":
        return f"{where} raises nothing, and does nothing."
    if answer.lost is not None:
        what = f"{place} may load this file" if answer.load_line else "no load of this file was found"
        return f"Not known: {what}, and {answer.lost.why}."
    if answer.outcome == "works":
        return f"{where} loads this file on this target{_when(answer)}."
    return f"Nothing in this script loads this file. {answer.why}".strip()


def _place(answer: ScriptAnswer, line: int) -> str:
    word = f"{'cell line' if answer.is_notebook else 'line'} {line}"
    return f"{answer.file}, {word}" if answer.file else word


def _when(answer: ScriptAnswer) -> str:
    """Return which branch the answer needs: `, when run with ...`."""
    return f", when {' and '.join(answer.runs[:2])}" if answer.runs else ""


def further_sentences(answer: ScriptAnswer) -> tuple[str, ...]:
    """Return what goes wrong beside the first problem: a sentence for each, with its lines."""
    found: dict[str, list[str]] = {}
    for one in answer.further:
        place = f"{one.file} {one.line}" if one.file and one.file != answer.file else str(one.line)
        found.setdefault(one.why if one.kind == "python-2" else _summary(one.message) or one.why, []).append(
            place
        )
    also = [str(line) for line in answer.also]
    return (
        *((f"The same fails at {_lines(also)}.",) if also else ()),
        *(f"Also {_lines(places)}: {words}" for words, places in list(found.items())[:3]),
    )


def _lines(places: list[str]) -> str:
    return f"line{'s' if len(places) > 1 else ''} {', '.join(places)}"


def _summary(message: str) -> str:
    """Return the first line of a message, and the next where it is only a heading."""
    first, _, rest = message.partition("\n")
    more = rest.strip().partition("\n")[0] if first.endswith(":") else ""
    return cut_text(f"{first} {more}".strip(), _MOST_CHARS)


def message_lines(answer: ScriptAnswer) -> tuple[str, ...]:
    """Return what torch says there, as much as fits: its sentences of advice are left out."""
    lines = [line.strip() for line in answer.message.split("\n") if line.strip()]
    named = [line for line in lines[1:] if "rror:" in line or "key(s)" in line]
    first = lines[0] if lines else ""
    cut = first.find(". ")
    return tuple(
        cut_text(one, 240)
        for one in (first[: cut + 1] if 40 < cut < len(first) else first, *named[:2])
        if one
    )


def script_limits(answer: ScriptAnswer) -> tuple[str, ...]:
    """Return what the answer rests on, and what was not judged."""
    found = []
    rest = [one for one in answer.assumed if one not in answer.runs]
    if rest:
        found.append(f"Taken for true: {'; '.join(rest)}.")
    if answer.unjudged and answer.outcome == "works":
        found.append(f"Not judged: {'; '.join(answer.unjudged)}.")
    return tuple(found)


def patch_note(answer: ScriptAnswer) -> str:
    """Return what is to be known of the patch."""
    if not answer.diff:
        return answer.advice or "No small change of the script mends this."
    if answer.leaves:
        return "With this patch the load works; the other lines that are named still fail."
    if answer.unjudged:
        return f"With this patch the load works; not judged: {'; '.join(answer.unjudged)}."
    return "With this patch nothing in the script fails any more, as far as it was judged."


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

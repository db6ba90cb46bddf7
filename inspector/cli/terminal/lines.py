"""Lines of an answer on a terminal: verdicts with a sign, sentences wrapped, what is pasted left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.cli.terminal.paint import Paint
from inspector.cli.terminal.wrapping import wrap
from inspector.report.page.blocks import LINE, Line
from inspector.report.page.cells import cut_middle, width_of

_VERDICTS = frozenset({"good", "caution", "bad"})
_FINDINGS = frozenset({"error", "warning", "note"})
_LEAD = re.compile(r"[A-Z]{2,}(?: [A-Z]{2,})*(?![a-z])")
"""The word in capitals that a verdict begins with."""


def lay_line(line: Line, paint: Paint) -> Iterator[str]:
    """Yield a line of an answer as lines of a terminal."""
    if line.role == "code":
        yield _pasted(line, paint)
    elif line.role in _VERDICTS:
        yield from _verdict(line, paint)
    elif line.role in _FINDINGS:
        yield from _signed(line, paint, paint.sign(line.role), "")
    elif line.role == "bullet":
        yield from _bullet(line, paint)
    elif line.role == "more":  # below the verdict, whose text stands behind a sign
        yield from _sentence(line._replace(indent=f"{line.indent}  "), paint)
    elif line.role == "file":
        room = paint.look.width - len(line.indent)
        yield line.indent + paint.style(cut_middle(line.text, room), "file")
    else:
        yield from _sentence(line, paint)


def columns_for(paint: Paint, indent: int) -> int:
    """Return the columns of a sentence: lines of more than a hundred are hard to read."""
    return min(paint.look.width, LINE) - indent


def _pasted(line: Line, paint: Paint) -> str:
    """Return a line that is copied: whole, whatever its length, and with no color in it."""
    text = paint.exactly(line.text)
    if line.indent.isspace():  # less of it, if the line then fits
        return " " * max(min(len(line.indent), paint.look.width - width_of(text)), 0) + text
    return line.indent + text


def _verdict(line: Line, paint: Paint) -> Iterator[str]:
    found = _LEAD.match(line.text)
    yield from _signed(line, paint, f"{line.indent}{paint.sign(line.role)}", found[0] if found else "")


def _signed(line: Line, paint: Paint, sign: str, lead: str) -> Iterator[str]:
    """Yield a sentence behind a sign; its first words are in the sign's color, or all of it is bold."""
    indent = 2 + (len(line.indent) if line.role in _VERDICTS else 0)
    first, *rest = wrap(line.text, columns_for(paint, indent)) or [""]
    is_verdict = line.role in _VERDICTS
    if lead and first.startswith(lead):
        shown = paint.style(lead, line.role) + paint.text(first[len(lead) :])
    else:
        shown = paint.text(first) if is_verdict else paint.style(first, "bold")
    yield f"{sign} {shown}"
    for text in rest:
        yield " " * indent + (paint.text(text) if is_verdict else paint.style(text, "bold"))


def _bullet(line: Line, paint: Paint) -> Iterator[str]:
    room = columns_for(paint, len(line.indent))
    if not line.wraps:
        yield line.indent + paint.text(cut_middle(line.text, paint.look.width - len(line.indent)))
        return
    indents = [line.indent, line.hang or " " * len(line.indent)]
    for number, text in enumerate(wrap(line.text, room)):
        yield indents[number > 0] + paint.text(text)


def _sentence(line: Line, paint: Paint) -> Iterator[str]:
    style = {"heading": "heading", "aside": "dim"}.get(line.role, "")
    texts = wrap(line.text, columns_for(paint, max(len(line.indent), len(line.hang or ""))))
    for number, text in enumerate(texts or [""]):
        indent = line.hang if number and line.hang is not None else line.indent
        yield (indent + paint.style(text, style)) if text else ""

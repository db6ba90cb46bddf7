"""Python code on a terminal, in the terminal's own colors; every line stays whole, for it is copied."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.cli.terminal.paint import Paint
from inspector.report.page.facts import Code

_STYLES = (
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Comment", "comment"),
    ("Token.Name.Function", "name"),
    ("Token.Name.Class", "name"),
    ("Token.Name.Builtin", "name"),
)


def lay_code(block: Code, paint: Paint) -> Iterator[str]:
    """Yield code as lines, in colors where there are any and a lexer is."""
    if paint.look.depth == "none":
        yield from map(paint.exactly, block.lines)
        return
    line: list[str] = []
    for kind, text in _tokens("\n".join(block.lines)):
        first, *rest = text.split("\n")
        line.append(paint.code(first, kind))
        for part in rest:
            yield "".join(line)
            line = [paint.code(part, kind)]
    yield "".join(line)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield parts of code with their styles; all of it in none where no lexer is installed."""
    try:
        from pygments.lexers.python import PythonLexer
    except ImportError:
        yield "", text
        return
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for kind, part in lexer.get_tokens(text):
        name = str(kind)
        yield next((style for start, style in _STYLES if name.startswith(start)), ""), part

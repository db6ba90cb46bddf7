"""Writes laid-out answers: at once, or through a pager once they are longer than the screen."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import IO, NamedTuple, TextIO, cast

from inspector.child import find_program
from inspector.cli.common import say
from inspector.cli.terminal.paint import Paint, look_of, paint_for
from inspector.cli.terminal.tree import lay_tree
from inspector.cli.terminal.wrapping import wrap
from inspector.report.colors import device_colors
from inspector.report.page import (
    LINE,
    Bars,
    Block,
    Change,
    Code,
    Columns,
    DeviceRow,
    Fact,
    Line,
    Page,
    Pointed,
    Result,
    TreeRows,
    cut_middle,
    width_of,
)
from inspector.report.words.values import format_number, sparkline

# A page as lines of a terminal: which block goes where, and what comes first.

# Lines of an answer on a terminal: verdicts with a sign, sentences wrapped, what is pasted left alone.

_VERDICTS = frozenset({"good", "caution", "bad"})
_FINDINGS = frozenset({"error", "warning", "note"})
_LEAD = re.compile(r"[A-Z]{2,}(?: [A-Z]{2,})*(?![a-z])")
"""The word in capitals that a verdict begins with."""


def lay_line(line: Line, paint: Paint) -> Iterator[str]:
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


# Captions, figures, histograms and differences on a terminal.

_LEAST_NAME = 8
_BEFORE_TEXT = 4
_MOST_ALIGNED = 48
"""Columns of a path behind which others are aligned."""


def lay_devices(rows: Sequence[DeviceRow], paint: Paint) -> Iterator[str]:
    colors = device_colors(row.device for row in rows)
    names = max(width_of(row.name) for row in rows)
    figures = [max(len(row.tensors) for row in rows), max(len(row.size) for row in rows)]
    names = min(names, max(paint.look.width - sum(figures) - 8, 8))
    for row in rows:
        name = cut_middle(row.name, names)
        blank = " " * (names - width_of(name))
        figure = f"{row.tensors:>{figures[0]}}  {row.size:>{figures[1]}}"
        yield f"  {paint.dot(colors[row.device])} {paint.text(name)}{blank}  {paint.text(figure)}"


def lay_facts(rows: Sequence[Fact], paint: Paint) -> Iterator[str]:
    for row in rows:
        first, *rest = wrap(row.text, columns_for(paint, row.width + 4)) or [""]
        caption = paint.style(row.caption, "dim") + " " * (row.width - width_of(row.caption))
        yield f"  {caption}  {paint.text(first)}".rstrip()
        yield from (" " * (row.width + 4) + paint.text(text) for text in rest)


def lay_bars(block: Bars, paint: Paint) -> Iterator[str]:
    """Yield a histogram as one line of bars, with its ends below; in ASCII, its figures alone."""
    room = max(paint.look.width - block.width - 6, 8)
    blank = " " * (block.width - width_of(block.caption))
    if paint.look.is_unicode:
        bars = paint.style(sparkline(block.counts, room), "bar")
    else:
        bars = paint.text(_ascii_bars(block.counts, room))
    yield f"  {paint.style(block.caption, 'dim')}{blank}  |{bars}|"
    size = -(-len(block.counts) // room) or 1
    drawn = -(-len(block.counts) // size)
    low, high = format_number(block.edges[0]), format_number(block.edges[-1])
    middle = " " * max(drawn + 2 - len(low) - len(high), 1)
    yield " " * (block.width + 4) + paint.style(f"{low}{middle}{high}", "dim")


def _ascii_bars(counts: Sequence[int], width: int) -> str:
    drawn = sparkline(counts, width)
    levels = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
    return "".join(" .:-=+*%#"[levels.index(bar)] for bar in drawn)


class _Pair(NamedTuple):
    mark: str
    indent: int
    path: str
    text: str
    style: str = ""


def lay_changes(blocks: Sequence[Change], paint: Paint) -> Iterator[str]:
    marks = {block.mark: f"  {paint.style(block.mark, block.mark)} " for block in blocks}
    return _pairs([_Pair(marks[block.mark], 4, block.path, block.detail) for block in blocks], paint)


def lay_pointed(blocks: Sequence[Pointed], paint: Paint) -> Iterator[str]:
    pairs = [
        _Pair(
            paint.text(block.indent),
            len(block.indent),
            block.path,
            block.text,
            "file" if block.is_title else "",
        )
        for block in blocks
    ]
    return _pairs(pairs, paint)


def _pairs(pairs: Sequence[_Pair], paint: Paint) -> Iterator[str]:
    fit = (width_of(one.path) for one in pairs if one.text and _is_beside(one, width_of(one.path), paint))
    aligned = max((width for width in fit if width <= _MOST_ALIGNED), default=0)
    for one in pairs:
        own = width_of(one.path)
        names = aligned if own <= aligned and _is_beside(one, aligned, paint) else own
        yield from _pair(one, names, paint)


def _is_beside(one: _Pair, names: int, paint: Paint) -> bool:
    return one.indent + names + 3 + width_of(one.text) <= paint.look.width


def _pair(one: _Pair, names: int, paint: Paint) -> Iterator[str]:
    room = paint.look.width - one.indent
    if one.text and _is_beside(one, names, paint):
        blank = " " * (names - width_of(one.path) + 3)
        yield f"{one.mark}{paint.style(one.path, one.style)}{blank}{paint.text(one.text)}"
        return
    yield one.mark + paint.style(cut_middle(one.path, room), one.style)
    below = " " * (one.indent + _BEFORE_TEXT)
    yield from (below + paint.text(line) for line in wrap(one.text, columns_for(paint, len(below))))


def lay_result(block: Result, paint: Paint) -> Iterator[str]:
    sign = paint.sign("good" if block.is_good else "bad")
    yield f"{sign} {paint.style(cut_middle(block.name, paint.look.width - 2), 'file')}"
    for part in block.parts:
        first, *rest = wrap(part, columns_for(paint, _BEFORE_TEXT))
        yield f"  {paint.text('-')} {paint.text(first)}"
        yield from (" " * _BEFORE_TEXT + paint.text(text) for text in rest)


def lay_columns(block: Columns, paint: Paint) -> Iterator[str]:
    """Yield a table; where all columns are too many for a line, it goes on below."""
    yield paint.style(block.title, "heading")
    columns = list(zip(block.header, *(cells for _, cells in block.rows), strict=True))
    rows = list(zip(*map(_below_each_other, columns), strict=True)) or [() for _ in (0, *block.rows)]
    widths = [max(map(len, _below_each_other(column))) for column in columns]
    names = max((width_of(name) for name, _ in block.rows), default=0)
    names = min(names, max(paint.look.width - 2 - 2 - max(widths, default=0), _LEAST_NAME), 48)
    for start, end in _spans(widths, paint.look.width - 2 - names):
        if start:
            yield ""
        for name, cells in zip(("", *(name for name, _ in block.rows)), rows, strict=True):
            shown = cut_middle(name, names)
            figures = "".join(
                f"  {cell:>{width}}" for cell, width in zip(cells[start:end], widths[start:end], strict=True)
            )
            line = paint.text(shown) + " " * (names - width_of(shown)) + paint.text(figures)
            yield f"  {line}".rstrip()


def _below_each_other(cells: Sequence[str]) -> list[str]:
    """Return the cells of a column with their last digits below each other, also where some have a mark."""
    is_marked = any(cell.endswith("*") for cell in cells)
    return [cell if cell.endswith("*") or not is_marked else f"{cell} " for cell in cells]


def _spans(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    start, used = 0, 0
    for column, width in enumerate(widths):
        if used + width + 2 > room and column > start:
            yield start, column
            start, used = column, 0
        used += width + 2
    yield start, len(widths)


# Python code on a terminal, in the terminal's own colors; every line stays whole, for it is copied.

_STYLES = {"STRING": "string", "FSTRING": "string", "NUMBER": "number", "COMMENT": "comment", "NAME": "name"}


def lay_code(block: Code, paint: Paint) -> Iterator[str]:
    """Yield code as lines, in colors where there are any."""
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
    """Yield parts of code with their styles; what is no Python comes in none."""
    import builtins
    import keyword
    from io import StringIO
    from itertools import accumulate
    from tokenize import TokenError, generate_tokens, tok_name

    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    at, before = 0, ""
    try:
        for kind, part, start, end, _ in generate_tokens(StringIO(text).readline):
            style = _STYLES.get(tok_name[kind].partition("_")[0], "")
            if keyword.iskeyword(part):
                style = "keyword"
            elif before in {"def", "class"} or (style == "name" and not hasattr(builtins, part)):
                style = "name" if before in {"def", "class"} else ""
            before, begin = part, starts[start[0] - 1] + start[1]
            if style and begin >= at:
                yield "", text[at:begin]
                at = starts[end[0] - 1] + end[1]
                yield style, text[begin:at]
    except (TokenError, SyntaxError):  # cut off, or no Python
        pass
    yield "", text[at:]


def lay_out(page: Page, paint: Paint) -> Iterator[str]:
    """Yield the lines of a page, without their ends.

    A tree that is longer than the screen comes last: what was found about it would stand a thousand lines
    below the verdict.
    """
    late = [section for section in page.sections if _is_long(section, paint.look.height)]
    for number, section in enumerate([*(one for one in page.sections if one not in late), *late]):
        if number:
            yield ""
        for kind, blocks in groupby((_shown(block, paint) for block in section), type):
            yield from _lay(kind, list(blocks), paint)


def _shown(block: Block, paint: Paint) -> Block:
    """Return a block with its texts as this terminal shows them, for that is what takes room.

    What is copied stays as it is, and a tree, which may have a million rows, looks at its own.
    """
    if type(block) not in _MEASURED or (isinstance(block, Line) and block.role == "code"):
        return block
    fields = (_texts(part, paint) for part in cast("tuple[object, ...]", block))
    return cast("Callable[..., Block]", type(block))(*fields)


def _texts(part: object, paint: Paint) -> object:
    if isinstance(part, str):
        return paint.text(part)
    return tuple(_texts(one, paint) for one in part) if type(part) is tuple else part


def _is_long(section: Iterable[Block], height: int) -> bool:
    return any(isinstance(block, TreeRows) and len(block.rows) > height for block in section)


def _lay(kind: type[Block], blocks: list[Block], paint: Paint) -> Iterator[str]:
    together = _TOGETHER.get(kind)
    if together is not None:
        yield from together(blocks, paint)
    elif kind is Result:
        for result in _joined(cast("list[Result]", blocks)):
            yield from lay_result(result, paint)
    else:
        for block in blocks:
            yield from _lay_one(block, paint)


def _joined(blocks: list[Result]) -> Iterator[Result]:
    """Yield what is said of one file in several sentences as one."""
    for (name, is_good), group in groupby(blocks, lambda block: (block.name, block.is_good)):
        yield Result(name, tuple(part for block in group for part in block.parts), is_good=is_good)


def _lay_one(block: Block, paint: Paint) -> Iterator[str]:
    lay = _LAYOUTS.get(type(block))
    if lay is None:
        return map(paint.text, block.plain())
    lines: Iterator[str] = lay(block, paint)
    return lines


_LAYOUTS: dict[type[Block], Callable[..., Iterator[str]]] = {
    Line: lay_line,
    TreeRows: lay_tree,
    Bars: lay_bars,
    Code: lay_code,
    Columns: lay_columns,
}
_TOGETHER: dict[type[Block], Callable[..., Iterator[str]]] = {
    DeviceRow: lay_devices,
    Fact: lay_facts,
    Change: lay_changes,
    Pointed: lay_pointed,
}
"""Blocks whose columns stand below each other."""
_MEASURED = {Line, Bars, Change, Columns, DeviceRow, Fact, Pointed, Result}


# The pager: what is longer than the screen, read page by page.

_USUAL = ("less", "-FRX")
_NONE = frozenset({"", "cat"})


def pager_command() -> tuple[str, ...]:
    """Return the pager that the user chose, or `less` if it is there; empty for none.

    A chosen `less` is told to show colors; what else it does, its user decides.
    """
    if os.environ.get("TERM") == "dumb":
        return ()  # less would stop, and warn, at once
    chosen = os.environ.get("PAGER")
    if chosen is None:
        return _found(_USUAL)
    try:
        words = tuple(shlex.split(chosen))
    except ValueError:
        return _found(_USUAL)
    if not words or words[0] in _NONE:
        return ()
    name = os.path.basename(words[0])  # noqa: PTH119 - a word, perhaps no path
    return _found((*words, "-R") if name in {"less", "less.exe"} else words)


def _found(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command by its absolute path: what a relative one leads to lies beside the checkpoint."""
    name = words[0]
    program = shutil.which(name) if os.path.isabs(name) else find_program(name)  # noqa: PTH117 - a word
    return () if program is None else (program, *words[1:])


class Pager:
    """A pager that runs.

    One that is missing, or that its user leaves early, is no error. Ctrl+C belongs to it while it runs, and
    what is written to stderr waits until it is gone.
    """

    def __init__(self, words: tuple[str, ...], stream: TextIO) -> None:
        environment = dict(os.environ)
        environment.setdefault("LESS", "FRX")
        self._process: subprocess.Popen[str] | None = None
        self._is_left = False
        self._errors = sys.stderr
        with suppress(OSError):
            self._process = subprocess.Popen(  # noqa: S603 - the user's own pager
                words,
                stdin=subprocess.PIPE,
                env=environment,
                encoding=stream.encoding,
                errors="backslashreplace",
            )
            sys.stderr = io.StringIO()

    def write(self, text: str) -> bool:
        """Pass a text on; return whether anybody still reads."""
        if self._process is None:
            say(text)
        elif not self._is_left:
            try:
                self._pipe.write(text)
                self._pipe.flush()
            except BrokenPipeError:
                self._is_left = True
        return not self._is_left

    @property
    def _pipe(self) -> IO[str]:
        return cast("IO[str]", cast("subprocess.Popen[str]", self._process).stdin)

    def close(self) -> None:
        """Wait until its user has seen enough, then write the messages that came meanwhile."""
        if self._process is None:
            return
        with suppress(BrokenPipeError):
            self._pipe.close()
        while True:
            try:
                self._process.wait()
                break
            except KeyboardInterrupt:
                continue
        held, sys.stderr = cast("io.StringIO", sys.stderr), self._errors
        sys.stderr.write(held.getvalue())


def can_page() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


_BLOCK = 256
"""Lines that are written at once."""


class Writer:
    """Takes the answers of one command in their order."""

    def __init__(self, paint: Paint, pager: tuple[str, ...]) -> None:
        self._paint = paint
        self._command = pager
        self._kept: list[str] = []
        self._pager: Pager | None = None
        self._has_shown = False

    def show(self, page: Page) -> None:
        """Write an answer, or keep it until it is known whether all of them fit on the screen."""
        if self._has_shown:
            self._put([""])
        self._has_shown = True
        self._put(lay_out(page, self._paint))

    def _put(self, lines: Iterable[str]) -> None:
        rest = iter(lines)
        while block := list(islice(rest, _BLOCK)):
            if not self._command:
                say(_text(block))
            elif self._pager is None:
                self._keep(block)
            elif not self._pager.write(_text(block)):
                return

    def _keep(self, lines: list[str]) -> None:
        self._kept += lines
        if len(self._kept) >= self._paint.look.height:
            self._pager = Pager(self._command, sys.stdout)
            self._pager.write(_text(self._kept))
            self._kept = []

    def close(self) -> None:
        """Write what was kept, and wait for the pager's user."""
        kept, self._kept = self._kept, []
        if kept:
            say(_text(kept))
        if self._pager is not None:
            self._pager.close()


def _text(lines: list[str]) -> str:
    return "\n".join([*lines, ""])


def open_writer(color: str, *, pages: bool) -> Writer:
    """Return what writes to this terminal; `--color always` may have it write to a pipe as well."""
    command = pager_command() if pages and can_page() else ()
    return Writer(paint_for(look_of(sys.stdout, color)), command)

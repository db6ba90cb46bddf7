"""A Python script or notebook as text with its tree: bounded, and parsed without running anything."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from inspector.containers.source import FileSource
from inspector.errors import CheckpointError, ModelError
from inspector.records import dataclass, field
from inspector.units import cut_text, escape_text

MOST_NBYTES = 4 << 20
_MOST_CHARS = 1 << 20
_MOST_DEPTH = 100  # of brackets; Python itself refuses 200
_MOST_INDENT = 90
_MOST_OPERATORS = 2000  # in one line: `1+1+1+...` makes a tree as deep
_REMEDY = "give the Python file that loads and trains, or a notebook with it"
_MAGIC = re.compile(r"\s*(?:[%!?]|[\w.]+\s*=\s*[%!]|.*\?\s*$)")
_BRACKETS = re.compile(r"[()\[\]{}]")
_OPERATORS = re.compile(r"[)\]]\s*[(\[]|[-+*/%@&|^<>=~.]|\b(?:and|or|not|if|else|lambda|await|yield)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script.

    Attributes:
        text: Its text, with a line feed at the end of each line; of a notebook, its code cells.
        has_crlf: Whether its lines end with a carriage return as well, which a patch of it keeps.
        old: The first line that only Python 2 takes, or 0, and what is said of it.
    """

    name: str
    text: str
    tree: ast.Module
    is_notebook: bool = False
    starts: tuple[int, ...] = field(default_factory=tuple)
    has_crlf: bool = False
    old: tuple[int, str] = (0, "")

    def line(self, number: int) -> str:
        """Return a line by its number, without white space around it; empty where there is none."""
        if not 1 <= number < len(self.starts):
            return ""
        return self.text[self.starts[number - 1] : self.starts[number]].strip()

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return where a node stands in the text. Columns count bytes, as `ast` does."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._offset(node.lineno, node.col_offset), self._offset(end_line, end_column)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def indent(self, node: ast.stmt) -> str:
        """Return the white space before a statement."""
        line = self.text[self.starts[node.lineno - 1] : self.span(node)[0]]
        return line if not line.strip() else ""

    def _offset(self, number: int, column: int) -> int:
        start = self.starts[number - 1]
        line = self.text[start : self.starts[number]]
        return start + len(line.encode()[:column].decode("utf-8", "ignore"))


def decode_script(data: bytes) -> str:
    """Return the text of a file: by its mark or declaration of an encoding, else UTF-8."""
    if len(data) > MOST_NBYTES:
        raise ModelError("this script is too long to be read", remedy=_REMEDY)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise ModelError("this is not a Python script: it is not text", remedy=_REMEDY) from error


def read_script(path: str) -> tuple[str, str]:
    """Read the name and text of a script."""
    if os.path.isdir(path):  # noqa: PTH112 - a text, as it was given
        raise ModelError("this is a folder, and no script", where=path, remedy=_REMEDY)
    with FileSource(path) as source:
        data = source.read_upto(0, MOST_NBYTES + 1)
    return os.path.basename(path), decode_script(data)  # noqa: PTH119 - a name is a text


def parse_script(text: str, name: str = "script.py") -> Script:
    """Parse the text of a script, or of a notebook as it is stored."""
    name = cut_text(escape_text(name), 80)
    cells = _notebook(text) if text.lstrip()[:1] == "{" else None
    text = text if cells is None else "\n\n".join(map(_without_magic, cells))
    has_crlf = cells is None and "\r\n" in text
    text = _one_ending(text)
    if len(text) > _MOST_CHARS:
        raise ModelError("this script is too long to be read", where=name, remedy=_REMEDY)
    if cells is None and _is_pasted_from_notebook(text):
        text = _without_magic(text)
    tree, old = _parse(text, name)
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] -= 1
    return Script(
        name=name,
        text=text,
        tree=tree,
        is_notebook=cells is not None,
        starts=tuple(starts),
        has_crlf=has_crlf,
        old=old,
    )


def _one_ending(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _parse(text: str, name: str) -> tuple[ast.Module, tuple[int, str]]:
    _refuse_deep(text, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes and comparisons in the script
            try:
                return ast.parse(text), (0, "")
            except SyntaxError as error:
                modern, old = _of_python2(text, error.lineno or 0)
                if not old[0]:
                    raise
                return ast.parse(modern), old
    except SyntaxError as error:
        # A line that ends in the text's own words is no help, and may be long.
        where = name if error.lineno is None else f"{name}, line {error.lineno}"
        said = escape_text(cut_text(str(error.msg), 100))
        raise ModelError(f"this is not valid Python: {said}", where=where, remedy=_REMEDY) from error
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ModelError("this script cannot be parsed", where=name, remedy=_REMEDY) from error


_ASYNC = "async is a keyword since Python 3.7: write non_blocking"
_OLD: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"\basync(?=\s*=[^=])"), "asynk", _ASYNC),
    (
        re.compile(r"(?<![\w.\"'#])print[ \t](?=[ \t]*[\w\"'\[{(-])"),
        "print;",
        "print is a function in Python 3",
    ),
    (
        re.compile(r"(except +(?:[\w.]+|\([\w., ]+\)))\s*,\s*\w+(?=\s*:)"),
        r"\1",
        "Python 3 writes except ... as ...",
    ),
    (re.compile(r"(?<![\w.])(raise +[\w.]+) *,"), r"\1;", "Python 3 raises an exception that a call makes"),
    (re.compile(r"(?<![\w.])exec[ \t](?=[\w\"'])"), "exec;", "exec is a function in Python 3"),
    (re.compile(r"<>"), "!=", "Python 3 writes !="),
    (re.compile(r"\b([1-9][0-9]*|0)[lL]\b"), r"\1", "numbers have no L in Python 3"),
)
"""What Python 3 refuses, and what to read in its place: as long, so that every place stays where it is."""


def _of_python2(text: str, where: int) -> tuple[str, tuple[int, str]]:
    """Return a script of Python 2 so that Python 3 can parse it; what is said of the line that it refuses."""
    first, lines = (0, ""), text.split("\n")
    for number, line in enumerate(lines, 1):
        for pattern, put, why in _OLD:
            made = line
            for found in pattern.finditer(line):
                made = made[: found.start()] + found.expand(put).ljust(len(found[0])) + made[found.end() :]
            if made != line and (not first[0] or number == where != first[0]):
                first = number, why
            line = made  # noqa: PLW2901 - the next row looks at it
        lines[number - 1] = line
    return "\n".join(lines), first


def _refuse_deep(text: str, name: str) -> None:
    """Refuse what would make the tree deeper than Python can walk, before it is made.

    Brackets in texts and comments count, too: a script with a hundred of them open is none.
    """
    depth = 0
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" \t"))
        operators = sum(1 for _ in _OPERATORS.finditer(line))
        deepest = depth
        for bracket in _BRACKETS.findall(line):
            depth = max(0, depth + (1 if bracket in "([{" else -1))
            deepest = max(deepest, depth)
        if deepest > _MOST_DEPTH or operators > _MOST_OPERATORS:
            raise ModelError("this script is nested too deeply", where=name, remedy=_REMEDY)
        if indent > 8 * _MOST_INDENT and line.strip():
            raise ModelError("this script is nested too deeply", where=name, remedy=_REMEDY)


# --- notebooks ----------------------------------------------------------------------------------------------


def _notebook(text: str) -> list[str] | None:
    """Return the code cells of a notebook; None where the text is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    sheets = found.get("worksheets")  # before version 4
    first = sheets[0] if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else found
    cells = first.get("cells")
    return list(_code_cells(cells)) if isinstance(cells, list) else None


def _code_cells(cells: list[object]) -> Iterator[str]:
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            lines = source if isinstance(source, list) else [source]
            yield _one_ending("".join(line for line in lines if isinstance(line, str)))


def _is_pasted_from_notebook(text: str) -> bool:
    return any(line.startswith(("%", "!")) for line in text.split("\n"))


def _without_magic(text: str) -> str:
    """Make comments of the lines that are for the notebook and not for Python."""
    lines = text.split("\n")
    if (
        lines
        and lines[0].lstrip().startswith("%%")
        and not lines[0].lstrip().startswith(("%%time", "%%capture"))
    ):
        return "\n".join(f"# {line}" for line in lines)  # the cell is for another program
    return "\n".join(_tamed(line) for line in lines)


def _tamed(line: str) -> str:
    if _MAGIC.match(line) is None or line.lstrip().startswith("#"):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass  # {line.strip()}"


# --- the project --------------------------------------------------------------------------------------------

_MOST_MODULES = 60
_MOST_PROJECT = 1 << 21
_MOST_ABOVE = 6
_PACKAGES = frozenset({"torch", "torchvision", "numpy", "argparse", "os", "sys"})


class Project:
    """A script and the modules beside it that it imports, read when asked for, so many and no more."""

    def __init__(
        self, script: Script, folder: str | None = None, texts: Mapping[str, str] | None = None
    ) -> None:
        self.script, self.folder = script, folder
        self.read: list[Script] = []
        self._texts = texts or {}
        self._found: dict[str, Script | None] = {}
        self._left = _MOST_PROJECT
        self.is_cut = False
        """Whether a module was not read because there are too many."""

    def find(self, module: str, level: int, importer: Script) -> Script | None:
        """Return a module of the project by its dotted name; None for what is not there, or too much."""
        if self.folder is None or module.partition(".")[0] in _PACKAGES:
            return None
        folder = Path(self.folder)
        own = Path(os.path.normpath(folder / importer.name)).parent
        roots = [own / "/".join([".."] * (level - 1))] if level else [own, folder, *_above(folder)]
        for root in roots:
            for ending in (".py", "/__init__.py") if module else ("/__init__.py",):
                found = self._read(os.path.normpath(f"{root / module.replace('.', '/')}{ending}"))
                if found is not None:
                    return found
        return None

    def _read(self, path: str) -> Script | None:
        if path in self._found:
            return self._found[path]
        if not Path(path).is_file():
            return None
        if len(self._found) >= _MOST_MODULES or self._left <= 0:
            self.is_cut = True
            return None
        name = os.path.relpath(path, self.folder)
        found = None
        if name == self.script.name:
            found = self.script
        else:
            try:
                text = self._texts.get(name) or read_script(path)[1]
                self._left -= len(text)
                found = parse_script(text, name) if self._left > 0 else None
            except CheckpointError:
                found = None  # what cannot be read is unknown, as what is not there
            if found is not None:
                self.read.append(found)
        self._found[path] = found
        return found


def _above(folder: Path) -> Iterator[Path]:
    """Yield the folders from which a package is imported that a script may be a part of."""
    for count in range(1, _MOST_ABOVE + 1):
        above = Path(os.path.normpath(folder / "/".join([".."] * count)))
        if (
            count > 2
            and not (
                Path(os.path.normpath(folder / "/".join([".."] * (count - 1)))) / "__init__.py"
            ).is_file()
        ):
            return
        yield above

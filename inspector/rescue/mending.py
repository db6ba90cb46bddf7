"""The one line that makes a load work without the hook: an argument more, a line before it, or another file.

The source of the program is read and parsed, never run. Where it is not there (a notebook, `python -c`) or
not the text that ran, the argument is named without its line.
"""

from __future__ import annotations

import ast
import codecs
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from inspector.quoting import command, file_word, shell_word
from inspector.records import dataclass
from inspector.rescue.journal import Call, Journal, Place, Way

MendingKind = Literal["line", "argument", "before", "file"]
"""What is to be done.

`line`: write the call like this. `argument`: give this to the call. `before`: put this line before it.
`file`: change the file by this command, since the call is in code that is not the user's.
"""

_MOST_SOURCE_NBYTES = 4 << 20
_MOST_CHARS = 200
_MOST_FILES = 3
_Moves = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """How a line is mended."""

    kind: MendingKind
    code: str
    place: Place | None


def mend(call: Call, moves: _Moves, files: Sequence[str]) -> Mending | None:
    """Return what mends a call whose storages went from these devices to those; None where nothing did."""
    if not moves:
        return None
    argument = _argument(moves, single=call.way == "jit")
    own = call.own
    if call.way == "pickle":
        return Mending(kind="before", code=_for_pickles(argument), place=own)
    if own is not None and own.takes >= 0:
        code = _mended_line(own, argument)
        if code:
            return Mending(kind="line", code=code, place=own)
        return Mending(kind="argument", code=f"map_location={argument}", place=own)
    if 0 < len(files) <= _MOST_FILES and all(Path(file).is_file() for file in files):
        return Mending(kind="file", code="\n".join(_commands(files, moves)), place=own)
    code = f"import functools, torch; torch.load = functools.partial(torch.load, map_location={argument})"
    return Mending(kind="before", code=code, place=own)


def _argument(moves: _Moves, *, single: bool) -> str:
    """Return the Python text of a map_location; TorchScript takes one device for the whole file.

    A plain device would move what was saved on the CPU as well (the state of random generators), so that
    only "cpu" is written plain.
    """
    destinations = {to for _, to in moves}
    if destinations == {"cpu"} or single:
        return _text(moves[0][1])
    pairs = ", ".join(f"{_text(saved)}: {_text(to)}" for saved, to in dict(moves).items())
    return f"{{{pairs}}}"


def _text(device: str) -> str:
    return json.dumps(device)


def _for_pickles(argument: str) -> str:
    return (
        "import io, torch; torch.storage._load_from_bytes = lambda data: "
        f"torch.load(io.BytesIO(data), map_location={argument}, weights_only=False)"
    )


def _commands(files: Sequence[str], moves: _Moves) -> list[str]:
    rules = [word for saved, to in dict(moves).items() for word in ("--map", shell_word(f"{saved}={to}"))]
    return [command("remap", file_word(file), "--in-place", *rules) for file in files]


# --- the line itself ----------------------------------------------------------------------------------------


def _mended_line(place: Place, argument: str) -> str:
    """Return the call with its argument; empty where the source does not show it."""
    source = _read_source(place)
    call = _find_call(source, place)
    if call is None or any(keyword.arg is None for keyword in call.keywords):
        return ""  # `**options` may hold the argument already
    if any(isinstance(value, ast.Starred) for value in call.args):
        return ""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "map_location"]
    given += call.args[place.takes : place.takes + 1]
    text = _rewritten(source, call, argument, *given[:1])
    return text if len(text) <= _MOST_CHARS else ""


def _rewritten(source: bytes, call: ast.Call, argument: str, old: ast.expr | None = None) -> str:
    if call.lineno != call.end_lineno:
        return _unparsed(call, argument, old)
    line = source.splitlines()[call.lineno - 1]
    text = line[: call.end_col_offset]
    if old is not None:
        return (
            text[call.col_offset : old.col_offset] + argument.encode() + text[old.end_col_offset :]
        ).decode()
    head = text[call.col_offset : -1].rstrip()
    comma = "" if head.endswith(b"(") else " " if head.endswith(b",") else ", "
    return f"{head.decode()}{comma}map_location={argument})"


def _unparsed(call: ast.Call, argument: str, old: ast.expr | None) -> str:
    value = ast.parse(argument, mode="eval").body
    for keyword in call.keywords:
        keyword.value = value if keyword.value is old else keyword.value
    call.args = [value if given is old else given for given in call.args]
    if old is None:
        call.keywords.append(ast.keyword(arg="map_location", value=value))
    return ast.unparse(call)


def _read_source(place: Place) -> bytes:
    try:
        with Path(place.file).open("rb") as stream:
            source = stream.read(_MOST_SOURCE_NBYTES + 1)
    except (OSError, ValueError):
        return b""
    return source.removeprefix(codecs.BOM_UTF8) if len(source) <= _MOST_SOURCE_NBYTES else b""


def _find_call(source: bytes, place: Place) -> ast.Call | None:
    """Return the one call that stands where Python was; None where there is none, or several may be meant."""
    try:
        source.decode()  # columns are counted in bytes of UTF-8
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_there(node, place)]
    return calls[0] if len(calls) == 1 else None


def _is_there(call: ast.Call, place: Place) -> bool:
    if place.span is not None:
        return (call.lineno, call.end_lineno, call.col_offset, call.end_col_offset) == place.span
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name == place.calls and call.lineno <= place.line <= (call.end_lineno or call.lineno)


# --- the calls of a program by the line that has to be changed: a loop over a hundred files is one line -----


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A line that loads from devices which had to be mapped."""

    site: Place | None
    own: Place | None
    way: Way
    moves: tuple[Call, ...]
    files: tuple[str, ...]
    mending: Mending | None


def find_needs(journal: Journal) -> tuple[Need, ...]:
    """Return the lines of a journal, in the order in which they were met."""
    groups: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    for call in journal.calls:
        groups[call.site, call.own, call.way].append(call)
    return tuple(_need(calls) for calls in groups.values())


def _need(calls: list[Call]) -> Need:
    first = calls[0]
    files = tuple(sorted({call.file for call in calls if call.file is not None}))
    moves = tuple(_added_up(calls))
    return Need(
        site=first.site,
        own=first.own,
        way=first.way,
        moves=moves,
        files=files,
        mending=mend(first, [(move.saved, move.to) for move in moves if move.to is not None], files),
    )


def _added_up(calls: Iterable[Call]) -> Iterator[Call]:
    groups: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.saved, call.to, call.why].append(call)
    for alike in groups.values():
        first = alike[0]
        yield Call(
            site=first.site,
            own=first.own,
            saved=first.saved,
            to=first.to,
            why=first.why,
            way=first.way,
            file=None,
            storages=sum(call.storages for call in alike),
            nbytes=sum(call.nbytes for call in alike),
        )

"""What a rescued program did, as its processes wrote it down: which line loaded what from where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from inspector.records import dataclass, replace
from inspector.units import cut_text

Why = Literal["missing", "target", "rule", "no-rule", "no-destination", "function"]
"""Why storages were mapped, or were not.

`missing`: the device is not here. `target`: --target wants everything on one device. `rule`: a rule of --map
sends it elsewhere. `no-rule`: it is not here, and no rule covers it. `no-destination`: what the rule names is
not here either. `function`: torch refused what a function given as `map_location` asked for.
"""

Way = Literal["load", "jit", "pickle"]
"""How something was loaded: by a function of torch, as TorchScript, or from a pickle that holds tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of Python that calls what loads.

    Attributes:
        file: The path of its source, or what Python calls it where there is none (`<stdin>`).
        span: First and last line, first and last column (in bytes) of the call; None before Python 3.11.
        takes: Which positional argument of that function is `map_location`; -1 where it has none.
    """

    file: str
    line: int
    span: tuple[int, int, int, int] | None
    calls: str
    takes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What one call had mapped from one device to one other, in all processes together.

    Attributes:
        site: The line that calls torch (or numpy, or joblib); None where nothing but Python's own code does.
        own: The line of the user's own code that led there; the same as `site` if that is the user's.
        saved: The device that the file, or the call's own `map_location`, names.
        to: Where the storages went; None where they were left to torch.
        nbytes: Their size together; 0 for TorchScript, whose sizes are not seen.
    """

    site: Place | None
    own: Place | None
    saved: str
    to: str | None
    why: Why
    way: Way
    file: str | None
    storages: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What the processes of a command wrote down."""

    calls: tuple[Call, ...]
    processes: int
    with_torch: int
    failures: tuple[str, ...]


# ------------------------------------------------------------------------------------------------------------
# Reads what the hook wrote down; the program could write there too, so that nothing in it is believed.
#
# `resources/rescue/calls.py` says what its lines are.

_MOST_FILES = 4096
_MOST_NBYTES = 64 << 20
_MOST_LINE = 1 << 16
_MOST_CHARS = 4096
_MOST_FAILURES = 20
_MOST_CALLS = 10_000


@dataclass(slots=True)
class _Counts:
    storages: int = 0
    nbytes: int = 0


def read_journal(folder: Path) -> Journal:
    """Add up what all processes wrote; a line that is none of ours is passed over."""
    found: dict[Call, _Counts] = {}
    failures: dict[str, None] = {}
    starts = torches = 0
    for lines in _files(folder):
        known: dict[str, Call] = {}
        for line in lines:
            mark, _, rest = line.partition(" ")
            starts += mark == "S"
            torches += mark == "T"
            if mark == "S":  # another process that got the same number
                known = {}
            elif mark == "D":
                _learn(rest, known)
            elif mark == "!" and len(failures) < _MOST_FAILURES:
                failures[cut_text(rest, _MOST_CHARS)] = None
            else:
                _count(mark, rest, known, found)
    calls = (replace(call, storages=sums.storages, nbytes=sums.nbytes) for call, sums in found.items())
    return Journal(
        calls=tuple(calls),
        processes=starts,
        with_torch=torches,
        failures=tuple(failures),
    )


def _files(folder: Path) -> Iterator[Iterable[str]]:
    left = _MOST_NBYTES
    paths = sorted(folder.iterdir(), key=lambda path: (path.lstat().st_mtime_ns, path.name))
    for path in paths[:_MOST_FILES]:
        with path.open("rb") as stream:
            data = stream.read(left)
        left -= len(data)
        yield (line.decode("ascii", "replace") for line in data.split(b"\n") if len(line) <= _MOST_LINE)


def _learn(text: str, known: dict[str, Call]) -> None:
    number, _, document = text.partition(" ")
    call = _parse_call(document)
    if call is not None:
        known[number] = call


def _count(number: str, nbytes: str, known: dict[str, Call], found: dict[Call, _Counts]) -> None:
    call = known.get(number)
    if call is None or not _is_number(nbytes) or (call not in found and len(found) >= _MOST_CALLS):
        return
    counts = found.setdefault(call, _Counts())
    counts.storages += 1
    counts.nbytes += int(nbytes)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def _parse_call(text: str) -> Call | None:
    try:
        call = json.loads(text)
        return Call(
            site=_place(call["site"]),
            own=_place(call["own"]),
            saved=_text(call["saved"]),
            to=None if call["to"] is None else _text(call["to"]),
            why=_word(call["why"], get_args(Why)),
            way=_word(call["way"], get_args(Way)),
            file=None if call["file"] is None else _text(call["file"]),
        )
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _place(place: Any) -> Place | None:  # noqa: ANN401 - of JSON that anybody may have written
    if place is None:
        return None
    span = place["span"]
    return Place(
        file=_text(place["file"]),
        line=int(place["line"]),
        span=None if span is None else _span(span),
        calls=_text(place["calls"]),
        takes=int(place["takes"]),
    )


def _span(span: list[object]) -> tuple[int, int, int, int]:
    first, last, begin, end = (int(str(number)) for number in span)
    return first, last, begin, end


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError
    return cut_text(text, _MOST_CHARS)


def _word(word: object, known: Iterable[Any]) -> Any:  # noqa: ANN401 - one of a Literal
    if word not in known:
        raise ValueError
    return word

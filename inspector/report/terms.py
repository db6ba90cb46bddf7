"""The words of a query, and the table of what can be written; the help and the command line read it too."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from operator import eq, ge, gt, le, lt
from typing import NamedTuple

from inspector.records import dataclass, replace

# Names against patterns with `*` and `?`, in one pass over each name whatever the pattern is.

Span = tuple[int, int]
_BOUND = r"(?:^|(?<=[/.]))"


class Glob:
    """A pattern that covers a name from the start of one of its steps to its end.

    A regular expression with several `.*` would take the square of a name's length and worse; pieces between
    the stars are looked up one after the other instead, each as far to the left as it goes.
    """

    def __init__(self, pattern: str) -> None:
        """Cut a pattern into what stands between its stars."""
        pieces = pattern.split("*")
        self.literal = max(pattern.replace("?", "*").split("*"), key=len)
        """What stands in every name that it covers."""
        self._first = re.compile(_BOUND + _plain(pieces[0]), re.DOTALL)
        self._middle = [re.compile(_plain(piece), re.DOTALL) for piece in pieces[1:-1] if piece]
        self._last = re.compile(_plain(pieces[-1]), re.DOTALL)
        self._last_length = len(pieces[-1])
        self._has_stars = len(pieces) > 1

    def spans(self, name: str) -> list[Span] | None:
        """Return where the pieces of the pattern stand in a name; None where it is not covered."""
        end = len(name) - self._last_length
        if not self._has_stars:
            whole = self._first.match(name, end) if end >= 0 else None
            return None if whole is None else [whole.span()]
        last = self._last.match(name, end) if end >= 0 else None
        found = self._first.search(name)
        spans = []
        for piece in self._middle:
            if found is None:
                break
            spans.append(found.span())
            found = piece.search(name, found.end())
        if last is None or found is None or found.end() > end:
            return None
        return [span for span in (*spans, found.span(), last.span()) if span[0] < span[1]]


def has_wildcards(text: str) -> bool:
    """Return whether a word is a pattern."""
    return "*" in text or "?" in text


@cache
def glob_of(pattern: str) -> Glob:
    """Return a pattern, cut once."""
    return Glob(pattern)


def _plain(piece: str) -> str:
    return "".join("." if char == "?" else re.escape(char) for char in piece)


# The words of a query, and the table of what can be written: the help and the command line read it too.

ODDITIES = ("nan", "inf", "zero", "huge", "constant", "dead-rows")
"""What a scan of all tensors finds; each is a field that stands alone, as `nan:`."""
WORD_FIELDS = ("device", "dtype", "role", "shape", "storage", "path", "is", "finding")
COMPARED = ("size", "params")
FIELDS = (*WORD_FIELDS, *COMPARED, *ODDITIES)


class Help(NamedTuple):
    """What can be written in a query, and what it finds."""

    example: str
    words: str


HELP = (
    Help("layer1 weight", "rows with both in their path, or in their parameter's"),
    Help("layer?.*.bias", "* and ? stand for any characters, from a step to the end"),
    Help('"fc.weight"', "this path and no other"),
    Help("-bias", "not what follows; before any of these"),
    Help("device:cuda:1", "saved on this device"),
    Help("dtype:bf16", "of this dtype"),
    Help("role:optimizer", "parameter, buffer, optimizer, scheduler, rng, ema, other"),
    Help("shape:64x3", "with these sizes side by side; shape:scalar"),
    Help("size>10MB", "by bytes: < <= > >= ="),
    Help("params>1M", "by parameters: < <= > >= ="),
    Help("storage:12", "views of this storage"),
    Help("is:missing", "damaged: also is:impossible, is:doubled; is:damaged for all"),
    Help("finding:truncated", "what a finding speaks of, by its id"),
    Help("nan:", "after a scan of all tensors; inf: zero: huge: constant: dead-rows:"),
)

_TERM = re.compile(rf'(-(?=\S))?(?:({"|".join((*WORD_FIELDS, *ODDITIES))}):)?("[^"]*"?|\S*)', re.IGNORECASE)
_TERM_BOUND = re.compile(r"(size|params)(<=|>=|<|>|=)(\d+(?:\.\d+)?)([kmgt]?i?b?)", re.IGNORECASE | re.ASCII)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "b": 10**9}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
COMPARE: dict[str, Callable[[float, float], bool]] = {"<": lt, ">": gt, "<=": le, ">=": ge, "=": eq}
_SHORT_DTYPE = re.compile(r"(bf|fp|f|i|u|c)(\d+)(.*)", re.ASCII)
_DTYPES = {"bf": "bfloat", "fp": "float", "f": "float", "i": "int", "u": "uint", "c": "complex"}
_NUMBERED = re.compile(r".+:\d+", re.ASCII)
"""A device with an index, which is matched whole: `cuda:1` does not mean `cuda:10`."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query.

    Attributes:
        field: What is searched: one of `FIELDS`.
        text: The text sought, in lower case; for what is compared the comparison.
    """

    field: str
    text: str
    exact: bool = False
    bound: float = 0.0
    is_not: bool = False
    written: str = ""


def quoted(text: str) -> str:
    """Return a text as a word of a query that means it as a whole."""
    return f'"{text}"'


def parse_terms(text: str) -> tuple[Term, ...]:
    """Read a query; none is malformed, since whatever is no known field is searched in the path."""
    terms = []
    for match in _TERM.finditer(text):
        term = _term_of(match)
        if term is not None:
            terms.append(replace(term, is_not=bool(match[1]), written=match[0]))
    terms.sort(key=lambda term: term.field != "path")  # the quickest first
    return tuple(terms)


def _term_of(match: re.Match[str]) -> Term | None:
    field, said = (match[2] or "path").lower(), match[3].lower()
    bound = None if match[2] else _TERM_BOUND.fullmatch(said)
    sought = said.strip('"')
    if bound is not None:
        return Term(bound[1], bound[2], bound=_bound(bound))
    if not sought and field not in ODDITIES:
        return None  # a word that has only been begun, such as `device:`, does not narrow yet
    return Term(field, _as_written(field, sought), exact=_is_whole(field, said))


def begun_fields(text: str) -> list[str]:
    """Return the fields of a query that nothing stands behind, such as `device:`."""
    found = (match for match in _TERM.finditer(text) if match[2] and match[2].lower() not in ODDITIES)
    return [match[0] for match in found if not match[3].strip('"')]


def _bound(match: re.Match[str]) -> float:
    """Return a bound: of bytes `MB` is a million, of parameters `1M` and `7B` are as people say them."""
    number, unit = float(match[3]), match[4].lower()
    if match[1] == "params":
        return number * _FACTORS[unit[:1]]
    unit = unit.removesuffix("b")
    return number * (_BINARY if unit.endswith("i") else _FACTORS)[unit.removesuffix("i")]


def _is_whole(field: str, said: str) -> bool:
    if field in {"storage", "finding"}:
        return True
    return said[:1] == said[-1:] == '"' or (field == "device" and _NUMBERED.fullmatch(said) is not None)


def _as_written(field: str, text: str) -> str:
    """Return the text as the rows spell it: `bf16` means `bfloat16`."""
    if field == "shape":
        return text.replace("\u00d7", "x").strip("x")
    short = _SHORT_DTYPE.fullmatch(text) if field == "dtype" else None
    return text if short is None else f"{_DTYPES[short[1]]}{short[2]}{short[3]}"

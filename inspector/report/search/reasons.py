"""Why a query finds nothing: the word that is no good, and what was meant most likely."""

from __future__ import annotations

import re
from collections import Counter
from difflib import get_close_matches

from inspector.errors import QueryError
from inspector.model.checkpoint import ROLES
from inspector.model.roles.device_types import DEVICE_TYPES
from inspector.model.tensors.dtypes import ITEMSIZES
from inspector.records import dataclass
from inspector.report.colors import device_name
from inspector.report.query import Query, Rows
from inspector.report.search.terms import (
    COMPARED,
    FIELDS,
    ODDITIES,
    WORD_FIELDS,
    Term,
    begun_fields,
    parse_terms,
)
from inspector.units import cut_text, escape_text, format_shape

_FIELD = re.compile(r"([a-z_-]+)([:<>=]+)(.*)", re.ASCII | re.DOTALL)
_LISTED = 5
_MOST_WORD = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why nothing was found.

    Attributes:
        instead: The query that was meant most likely, or empty.
    """

    words: str
    instead: str = ""
    is_mistake: bool = False


def why_nothing(text: str, rows: Rows) -> Reason:
    """Return why a query finds nothing: the first of its words that finds nothing alone, and why."""
    terms = parse_terms(text)
    for term in terms:
        if not _finds(term, rows):
            words, instead, is_mistake = _why(term, rows)
            changed = text.replace(term.written, instead, 1) if instead else ""
            return Reason(words=words, instead=changed, is_mistake=is_mistake)
    if len(terms) == 1:
        return Reason(words=f"The tree shows no row with {_word(terms[0].written)}.")
    return Reason(words="Each of these words finds rows, but no row has all of them.")


def refuse_mistakes(text: str, rows: Rows) -> None:
    """Refuse a query with a word that is a mistake, with the sentence that the window shows."""
    for field in begun_fields(text):
        raise QueryError(f"{_word(field)} has nothing behind it", remedy=f"write {field}WHAT")
    for term in parse_terms(text):
        if not _finds(term, rows):
            words, instead, is_mistake = _why(term, rows)
            if is_mistake:
                raise QueryError(words.rstrip("."), remedy=f"write {instead}" if instead else None)


def _finds(term: Term, rows: Rows) -> bool:
    tensors, values = Query((term,)).find(rows)
    return any(True for _ in tensors) or any(True for _ in values)


def _why(term: Term, rows: Rows) -> tuple[str, str, bool]:
    """Return why a word finds nothing, what was meant, and whether it is a mistake."""
    if term.field in ODDITIES and rows.odd is None:
        return f"{term.field}: needs a scan of all tensors first.", "", True
    if term.is_not:
        return f"{_word(term.written)} leaves out every row.", "", False
    if term.field in ODDITIES:
        return f"The scan of all tensors found nothing for {term.field}:.", "", False
    if term.field in COMPARED:
        what = "bytes" if term.field == "size" else "parameters"
        return f"No tensor has a number of {what} with {_word(term.written)}.", "", False
    if term.field == "path":
        return _why_path(term)
    return _why_fact(term, rows)


def _why_path(term: Term) -> tuple[str, str, bool]:
    word, match = _word(term.written), _FIELD.fullmatch(term.text)
    if match is None or term.exact:
        return f"No path has {word} in it.", "", False
    field, sign, rest = match[1], match[2], match[3]
    if field in COMPARED:
        example = "size>10MB" if field == "size" else "params>1M"
        return f"{word} is no comparison: write one such as {example}.", "", True
    if field in DEVICE_TYPES and sign == ":":
        words = f"{_word(field + sign)} is no field of the search: did you mean device:{word}?"
        return words, f"device:{term.text}", True
    close = get_close_matches(field, FIELDS, 1)
    if not close:
        known = ", ".join(f"{name}:" for name in WORD_FIELDS)
        return (
            f"{_word(field + sign)} is no field of the search; fields are {known}, size>, params>.",
            "",
            True,
        )
    meant = close[0] + (sign if close[0] in COMPARED else ":")
    return f"{_word(field + sign)} is no field of the search: did you mean {meant}?", f"{meant}{rest}", True


def _why_fact(term: Term, rows: Rows) -> tuple[str, str, bool]:
    tensors = rows.checkpoint.tensors
    if term.field == "storage":
        return f"No tensor views the storage {_word(term.text)}.", "", False
    if term.field == "role" and not any(role.startswith(term.text) for role in ROLES):
        close = get_close_matches(term.text, ROLES, 1)
        words = f"There is no role {_word(term.text)}; roles are {', '.join(ROLES)}."
        return words, f"role:{close[0]}" if close else "", True
    if term.field == "shape":
        known = [
            format_shape(shape) for shape, _ in Counter(row.shape for row in tensors).most_common(_LISTED)
        ]
        return (
            f"No tensor has a shape with {_word(term.text)}; the most usual are {', '.join(known)}.",
            "",
            False,
        )
    found = Counter(str(getattr(row, term.field)) for row in tensors)
    known = [device_name(name) for name, _ in found.most_common(_LISTED)]
    more = " and others" if len(found) > _LISTED else ""
    here = f"this file has {', '.join(known)}{more}" if known else "this file has no tensors"
    if term.field == "dtype" and not any(name.startswith(term.text) for name in ITEMSIZES):
        close = get_close_matches(term.text, [*known, *ITEMSIZES], 1)
        return f"There is no dtype {_word(term.text)}; {here}.", f"dtype:{close[0]}" if close else "", True
    what = {"device": "was saved on", "dtype": "has the dtype", "role": "has the role"}[term.field]
    return f"No tensor {what} {_word(term.text)}; {here}.", "", False


def _word(text: str) -> str:
    return escape_text(cut_text(text, _MOST_WORD))

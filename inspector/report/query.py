"""What a query finds among the rows of a file, see `terms` for the language.

A plain word matches a part (of a path) or a beginning (of the rest); a word in quotes matches the whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import prod

from inspector.errors import QueryError
from inspector.model.checkpoint import ROLES, Checkpoint, Tensor
from inspector.model.findings import Finding
from inspector.model.roles.devices import DEVICE_TYPES
from inspector.model.tensors.dtypes import ITEMSIZES
from inspector.records import dataclass, replace
from inspector.report.colors import device_name
from inspector.report.damage import ANY_DAMAGE, Damage, damage_of
from inspector.report.terms import (
    COMPARE,
    COMPARED,
    FIELDS,
    ODDITIES,
    WORD_FIELDS,
    Span,
    Term,
    begun_fields,
    glob_of,
    has_wildcards,
    parse_terms,
)
from inspector.report.tree import Tree
from inspector.units import cut_text, escape_text, format_shape, unescaped_path

Odd = Mapping[str, Collection[int]]
"""The indexes of the tensors that a scan found to be odd, by the field that asks for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is searched: a checkpoint, and the names of its rows in lower case; built once for each file.

    Attributes:
        tensors: The path of each tensor and, on lines of their own, it with `/` and `~` as they are in names,
            and an optimizer slot's `PARAMETER/SLOT`.
        odd: What a scan found; None before one.
        findings: What findings speak of; those of the file alone, without a machine, where none are given.
    """

    checkpoint: Checkpoint
    tensors: tuple[str, ...]
    values: tuple[str, ...]
    odd: Odd | None = None
    findings: tuple[Finding, ...] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Terms that must all hold; without a term everything matches."""

    terms: tuple[Term, ...]

    @property
    def needs_scan(self) -> bool:
        """Whether it asks for what only a scan of all tensors finds."""
        return any(term.field in ODDITIES for term in self.terms)

    @property
    def needs_findings(self) -> bool:
        """Whether it asks for what findings speak of."""
        return any(term.field == "finding" for term in self.terms)

    def find(self, rows: Rows) -> tuple[Iterable[int], Iterable[int]]:
        """Return the indexes of the matching tensors and of the matching values."""
        tensors: Iterable[int] = range(len(rows.tensors))
        values: Iterable[int] = range(len(rows.values))
        for term in self.terms:
            if term.field == "path":
                tensors, values = _named(term, rows.tensors, tensors), _named(term, rows.values, values)
            else:
                tensors, values = _of_kind(term, rows, tensors), ()
        return tensors, values

    def narrow(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint with only the tensors and values that match."""
        tensors, values = self.find(searchable(checkpoint))
        return replace(
            checkpoint,
            tensors=tuple(checkpoint.tensors[index] for index in tensors),
            values=tuple(checkpoint.values[index] for index in values),
        )

    def spans(self, path: str) -> list[Span]:
        """Return what its words match in a path, for highlighting."""
        lower = path.lower()
        if len(lower) != len(path):  # some letters have a lower case of another length
            return []
        found: list[Span] = []
        for term in self.terms:
            if term.field == "path" and not term.is_not:
                found += _spans(term, lower)
        return sorted(found)


def searchable(checkpoint: Checkpoint) -> Rows:
    """Prepare a checkpoint for searching."""
    return Rows(
        checkpoint=checkpoint,
        tensors=tuple(
            _names(tensor.path)
            if tensor.parameter is None
            else f"{_names(tensor.path)}\n{tensor.parameter}/{tensor.slot}".lower()
            for tensor in checkpoint.tensors
        ),
        values=tuple(_names(value.path) for value in checkpoint.values),
    )


def _names(path: str) -> str:
    """Return a path in lower case, and on a second line with its names as they are, where those differ.

    It is the same object where it can be, since there may be a million.
    """
    lower = path.lower()
    if "~" in path:
        return f"{lower}\n{unescaped_path(lower)}"
    return path if lower == path else lower


def matching_nodes(query: Query, rows: Rows, tree: Tree) -> tuple[int, ...] | None:
    """Return the ids of the matching rows of the tree, in display order; None for an empty query."""
    if not query.terms:
        return None
    tensors, values = query.find(rows)
    # Marks instead of sorting, which would hold up other threads; the last is of what is hidden, at -1.
    marks = bytearray(len(tree.nodes) + 1)
    for index in tensors:
        marks[tree.tensor_nodes[index]] = 1
    for index in values:
        marks[tree.value_nodes[index]] = 1
    return tuple([id_ for id_, mark in enumerate(marks[:-1]) if mark])


def parse_query(text: str) -> Query:
    """Read a query; none is malformed, since whatever is no known field is searched in the path."""
    return Query(parse_terms(text))


def _named(term: Term, names: tuple[str, ...], among: Iterable[int]) -> list[int]:
    text, is_not = term.text, term.is_not
    if not term.exact and not has_wildcards(text):
        return [index for index in among if (text in names[index]) is not is_not]
    if term.exact:
        return [index for index in among if (text in names[index].split("\n")) is not is_not]
    glob = glob_of(text)
    spans, literal = glob.spans, glob.literal
    if not is_not:
        among = [index for index in among if literal in names[index]]  # few are left to be looked at closely
    return [
        index
        for index in among
        if any(spans(name) is not None for name in names[index].split("\n")) is not is_not
    ]


def _spans(term: Term, name: str) -> list[Span]:
    if term.exact:
        return [(0, len(name))] if name == term.text else []
    if has_wildcards(term.text):
        return glob_of(term.text).spans(name) or []
    found, at = [], name.find(term.text)
    while at >= 0:
        found.append((at, at + len(term.text)))
        at = name.find(term.text, at + len(term.text))
    return found


def _of_kind(term: Term, rows: Rows, among: Iterable[int]) -> list[int]:
    """Return the tensors that a term about anything but their names holds of."""
    table, is_not = rows.checkpoint.tensors, term.is_not
    if term.field in ODDITIES:
        odd = () if rows.odd is None else rows.odd.get(term.field, ())
        return [index for index in among if rows.odd is not None and (index in odd) is not is_not]
    if term.field == "is":
        found = {
            index for index, damage in damage_of(rows.checkpoint).items() if _is_called(damage, term.text)
        }
        return [index for index in among if (index in found) is not is_not]
    if term.field == "finding":
        named = {path for one in _findings(rows) if one.id == term.text for path in one.everywhere}
        return [index for index in among if (table[index].path in named) is not is_not]
    if term.field == "size":
        compare, bound = COMPARE[term.text], term.bound
        return [index for index in among if compare(table[index].nbytes, bound) is not is_not]
    indexes = among if isinstance(among, Sequence) else list(among)
    read = _READERS[term.field]
    facts = [read(table[index]) for index in indexes]
    held = {fact for fact in set(facts) if _holds(term, fact)}  # of a million tensors few facts differ
    return [index for index, fact in zip(indexes, facts, strict=True) if (fact in held) is not is_not]


def _findings(rows: Rows) -> tuple[Finding, ...]:
    if rows.findings is not None:
        return rows.findings
    from inspector.diagnose.run import diagnose  # noqa: PLC0415 - few searches ask
    from inspector.safety.verdict import judge  # noqa: PLC0415 - as above

    return diagnose(rows.checkpoint, judge(rows.checkpoint), None)


def _is_called(damage: Damage, text: str) -> bool:
    return damage.startswith(text) or ANY_DAMAGE.startswith(text)


def _holds(term: Term, fact: object) -> bool:
    if term.field == "params":
        return COMPARE[term.text](prod(fact) if isinstance(fact, tuple) else 0, term.bound)
    if isinstance(fact, tuple):
        shape = "x".join(map(str, fact)) or "scalar"
        return shape == term.text if term.exact else f"x{term.text}x" in f"x{shape}x"
    found = str(fact).lower()
    if has_wildcards(term.text) and not term.exact:
        return glob_of(term.text).spans(found) is not None
    return found == term.text if term.exact else found.startswith(term.text)


_READERS: dict[str, Callable[[Tensor], object]] = {
    "device": lambda tensor: tensor.device,
    "dtype": lambda tensor: tensor.dtype,
    "role": lambda tensor: tensor.role,
    "shape": lambda tensor: tensor.shape,
    "storage": lambda tensor: tensor.storage,
    "params": lambda tensor: tensor.shape if tensor.role == "parameter" else None,
}


# Why a query finds nothing: the word that is no good, and what was meant most likely.

_FIELD = re.compile(r"([a-z_-]+)([:<>=]+)(.*)", re.ASCII | re.DOTALL)
_LISTED = 5
_IS = ", ".join(f"is:{word}" for word in (ANY_DAMAGE, *Damage))
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
    if term.field in {"path", "is"}:
        return _why_path(term) if term.field == "path" else _why_whole(term)
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


def _why_whole(term: Term) -> tuple[str, str, bool]:
    if any(_is_called(damage, term.text) for damage in Damage):
        return f"No tensor is {_word(term.text)}, as far as the file tells.", "", False
    return f"{_word(term.written)} asks for no damage that is known: write {_IS}.", "", True


def _why_fact(term: Term, rows: Rows) -> tuple[str, str, bool]:
    tensors = rows.checkpoint.tensors
    if term.field in {"storage", "finding"}:
        says = (
            "No finding {} speaks of a tensor."
            if term.field == "finding"
            else "No tensor views the storage {}."
        )
        return says.format(_word(term.text)), "", False
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

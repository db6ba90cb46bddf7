"""The search language: words in the path, and `device:`, `dtype:`, `role:`, `shape:`, `size>10MB`.

A plain word matches a part (of a path) or a beginning (of the rest); a word in quotes matches the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.records import dataclass, replace
from inspector.report.tree import Tree

_TERM = re.compile(r'(?:(device|dtype|role|shape|storage|path):)?("[^"]*"?|\S*)', re.IGNORECASE)
_SIZE = re.compile(r"size(<=|>=|<|>)(\d+(?:\.\d+)?)([kmgt]?i?b?)", re.IGNORECASE | re.ASCII)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_COMPARE: dict[str, Callable[[int, float], bool]] = {
    "<": lambda size, bound: size < bound,
    ">": lambda size, bound: size > bound,
    "<=": lambda size, bound: size <= bound,
    ">=": lambda size, bound: size >= bound,
}
_SHORT_DTYPE = re.compile(r"(bf|fp|f|i|u|c)(\d+)(.*)", re.ASCII)
_DTYPES = {"bf": "bfloat", "fp": "float", "f": "float", "i": "int", "u": "uint", "c": "complex"}
_NUMBERED = re.compile(r".+:\d+", re.ASCII)
"""A device with an index, which is matched whole: `cuda:1` does not mean `cuda:10`."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query.

    Attributes:
        field: What is searched: `path`, `device`, `dtype`, `role`, `shape` or `size`.
        text: The text sought, in lower case; for `size` the comparison.
        exact: Whether the whole must be equal.
        bound: For `size`, the bound in bytes.
    """

    field: str
    text: str
    exact: bool = False
    bound: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is searched: a checkpoint, and the names of its rows in lower case; built once for each file.

    Attributes:
        checkpoint: The checkpoint.
        tensors: The path of each tensor and, on a second line, an optimizer slot's `PARAMETER/SLOT`.
        values: The path of each value.
    """

    checkpoint: Checkpoint
    tensors: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """Terms that must all hold; without a term everything matches."""

    terms: tuple[Term, ...]

    def find(self, rows: Rows) -> tuple[Iterable[int], Iterable[int]]:
        """Return the indexes of the matching tensors and of the matching values."""
        tensors: Iterable[int] = range(len(rows.tensors))
        values: Iterable[int] = range(len(rows.values))
        for term in self.terms:
            if term.field == "path":
                tensors, values = _named(term, rows.tensors, tensors), _named(term, rows.values, values)
            else:
                table = rows.checkpoint.tensors
                tensors, values = [index for index in tensors if _holds(term, table[index])], ()
        return tensors, values

    def narrow(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint with only the tensors and values that match."""
        tensors, values = self.find(searchable(checkpoint))
        return replace(
            checkpoint,
            tensors=tuple(checkpoint.tensors[index] for index in tensors),
            values=tuple(checkpoint.values[index] for index in values),
        )


def searchable(checkpoint: Checkpoint) -> Rows:
    """Prepare a checkpoint for searching."""
    return Rows(
        checkpoint=checkpoint,
        tensors=tuple(
            tensor.path.lower()
            if tensor.parameter is None
            else f"{tensor.path}\n{tensor.parameter}/{tensor.slot}".lower()
            for tensor in checkpoint.tensors
        ),
        values=tuple(value.path.lower() for value in checkpoint.values),
    )


def matching_nodes(query: Query, rows: Rows, tree: Tree) -> tuple[int, ...] | None:
    """Return the ids of the matching rows of the tree, in display order; None for an empty query."""
    if not query.terms:
        return None
    tensors, values = query.find(rows)
    found = [tree.tensor_nodes[index] for index in tensors]
    found += [node for index in values if (node := tree.value_nodes[index]) >= 0]
    return tuple(sorted(found))


def quoted(text: str) -> str:
    """Return a text as a word of a query that means it as a whole."""
    return f'"{text}"'


def parse_query(text: str) -> Query:
    """Read a query; none is malformed, since whatever is no known field is searched in the path."""
    terms = []
    for match in _TERM.finditer(text):
        field, said = (match[1] or "path").lower(), match[2].lower()
        size = None if match[1] else _SIZE.fullmatch(said)
        sought = said.strip('"')
        if size is not None:
            terms.append(_size_term(size))
        elif sought:  # a word that has only been begun, such as `device:`, does not narrow yet
            terms.append(Term(field, _as_written(field, sought), exact=_is_whole(field, said)))
    terms.sort(key=lambda term: term.field != "path")  # the quickest first
    return Query(tuple(terms))


def _size_term(match: re.Match[str]) -> Term:
    unit = match[3].removesuffix("b")
    factors = _BINARY if unit.endswith("i") else _FACTORS
    return Term("size", match[1], bound=float(match[2]) * factors[unit.removesuffix("i")])


def _is_whole(field: str, said: str) -> bool:
    return said[0] == said[-1] == '"' or (field == "device" and _NUMBERED.fullmatch(said) is not None)


def _as_written(field: str, text: str) -> str:
    """Return the text as the rows spell it: `bf16` means `bfloat16`."""
    if field == "shape":
        return text.replace("\u00d7", "x").strip("x")
    short = _SHORT_DTYPE.fullmatch(text) if field == "dtype" else None
    return text if short is None else f"{_DTYPES[short[1]]}{short[2]}{short[3]}"


def _named(term: Term, names: tuple[str, ...], among: Iterable[int]) -> list[int]:
    text = term.text
    if term.exact:
        return [index for index in among if text in names[index].split("\n")]
    return [index for index in among if text in names[index]]


def _holds(term: Term, tensor: Tensor) -> bool:
    if term.field == "size":
        return _COMPARE[term.text](tensor.nbytes, term.bound)
    if term.field == "shape":
        shape = "x".join(map(str, tensor.shape)) or "scalar"
        return shape == term.text if term.exact else f"x{term.text}x" in f"x{shape}x"
    found = str(getattr(tensor, term.field)).lower()
    return found == term.text if term.exact else found.startswith(term.text)

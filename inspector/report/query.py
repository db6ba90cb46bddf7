"""The search language: words in the path, and `device:`, `dtype:`, `role:`, `shape:`, `size>10MB`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from inspector.model.checkpoint import Checkpoint, Tensor, Value
from inspector.report.tree import Tree

_TERM = re.compile(r'(?:(device|dtype|role|shape|path):)?(?:"([^"]*)"|(\S+))')
_SIZE = re.compile(r"size(<=|>=|<|>)(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_COMPARE: dict[str, Callable[[int, float], bool]] = {
    "<": lambda size, bound: size < bound,
    ">": lambda size, bound: size > bound,
    "<=": lambda size, bound: size <= bound,
    ">=": lambda size, bound: size >= bound,
}


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query.

    Attributes:
        field: What it is compared with: `path`, `device`, `dtype`, `role`, `shape` or `size`.
        text: The text sought, in lower case; for `size` the comparison.
        exact: Whether the whole must be equal rather than contain it.
        bound: For `size`, the bound in bytes.
    """

    field: str
    text: str
    exact: bool = False
    bound: float = 0.0


@dataclass(frozen=True, slots=True)
class Query:
    """Terms that must all hold; without a term everything matches."""

    terms: tuple[Term, ...]

    def matches_tensor(self, tensor: Tensor) -> bool:
        """Say whether a tensor is sought; an optimizer slot is found by its parameter's name too."""
        return all(_holds(term, tensor) for term in self.terms)

    def narrow(self, checkpoint: Checkpoint) -> Checkpoint:
        """Give the checkpoint with only the tensors and values that are sought."""
        return replace(
            checkpoint,
            tensors=tuple(tensor for tensor in checkpoint.tensors if self.matches_tensor(tensor)),
            values=tuple(value for value in checkpoint.values if self.matches_value(value)),
        )

    def matches_value(self, value: Value) -> bool:
        """Say whether another value is sought: only words can mean one."""
        path = value.path.lower()
        return all(term.field == "path" and _compare(term, path) for term in self.terms)


def parse_query(text: str) -> Query:
    """Read a query; there is no malformed one, what is not a known word is sought in the path."""
    terms = []
    for match in _TERM.finditer(text):
        name, quoted, plain = match.groups()
        size = _SIZE.fullmatch(plain) if plain and not name else None
        if size is not None:
            terms.append(_size_term(size))
        else:
            sought = quoted if quoted is not None else plain
            terms.append(
                Term(name or "path", sought.lower().replace("\u00d7", "x"), exact=quoted is not None)
            )
    return Query(tuple(terms))


def _size_term(match: re.Match[str]) -> Term:
    unit = match[3].lower().removesuffix("b")
    factors = _BINARY if unit.endswith("i") else _FACTORS
    return Term("size", match[1], bound=float(match[2]) * factors[unit.removesuffix("i")])


def _holds(term: Term, tensor: Tensor) -> bool:
    if term.field == "size":
        return _COMPARE[term.text](tensor.nbytes, term.bound)
    if term.field == "path":
        path = f"{tensor.path} {tensor.parameter}/{tensor.slot}" if tensor.parameter else tensor.path
        return _compare(term, path.lower()) or (term.exact and term.text == tensor.path.lower())
    if term.field == "shape":
        shape = "x".join(str(size) for size in tensor.shape)
        return shape == term.text or (not term.exact and term.text in f"x{shape}x" and "x" in term.text)
    found = {"device": tensor.device, "dtype": tensor.dtype, "role": tensor.role}[term.field]
    return found == term.text or (not term.exact and found.startswith(term.text))


def _compare(term: Term, text: str) -> bool:
    return text == term.text if term.exact else term.text in text


def matching_nodes(query: Query, checkpoint: Checkpoint, tree: Tree) -> tuple[int, ...] | None:
    """Give the ids of the tree's rows that are sought, in display order; None when nothing is sought."""
    if not query.terms:
        return None
    tensors = zip(tree.tensor_nodes, checkpoint.tensors, strict=True)
    values = zip(tree.value_nodes, checkpoint.values, strict=True)
    found = [node for node, tensor in tensors if query.matches_tensor(tensor)]
    found += [node for node, value in values if query.matches_value(value)]
    return tuple(sorted(node for node in found if node >= 0))

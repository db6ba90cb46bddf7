"""`diff --json`, as the command line's contract fixes it (`schema` 1), with what was added to it."""

from __future__ import annotations

from typing import Any

from inspector.diff.records import ContainerChange, Diff, Numbers, TensorChange, ValueChange
from inspector.model.checkpoint import Tensor
from inspector.records import as_document
from inspector.report.jsonable import finite

Document = dict[str, Any]
_SAID = ("device", "dtype", "shape", "stride", "layout", "requires_grad", "role", "problem")
_FIGURES = (
    "max_abs",
    "max_rel",
    "cosine",
    "differing",
    "numel",
    "other_bits",
    "not_finite",
    "norm_a",
    "norm_b",
    "distance",
)


def diff_document(diff: Diff) -> Document:
    """Return the document of a comparison."""
    a, b = diff.a, diff.b
    removed = [a.tensors[number].path for number in diff.removed]
    added = [b.tensors[number].path for number in diff.added]
    values_removed = [a.values[number].path for number in diff.values_removed]
    values_added = [b.values[number].path for number in diff.values_added]
    return {
        "schema": 1,
        "a": a.path,
        "b": b.path,
        "equal": diff.is_equal,
        "added": [*added, *values_added],
        "removed": [*removed, *values_removed],
        "renamed": [
            {"a": a.tensors[pair.a].path, "b": b.tensors[pair.b].path, "how": pair.how}
            for pair in diff.renamed
            if pair.how != "shared"
        ],
        "changed": [
            *(_tensor(diff, change) for change in diff.tensors if change.differs),
            *(_value(diff, change) for change in diff.values if change.differs),
        ],
        "compared": diff.mode,
        "compared_nbytes": diff.compared_nbytes,
        "tensors": {"a": len(a.tensors), "b": len(b.tensors), "added": added, "removed": removed},
        "values": {"added": values_added, "removed": values_removed},
        "rules": as_document_of_rules(diff),
        "same_numbers": [
            *(a.tensors[one.pair.a].path for one in diff.tensors if not one.differs),
            *(a.values[one.a].path for one in diff.values if not one.differs),
        ],
        "sharing": [{"paths": list(one.paths), "tied_in": one.tied_in} for one in diff.sharing],
        "safety": dict(zip(("a", "b"), diff.verdicts, strict=True)),
        "runs": [{"text": one.text, "verdict": one.verdict, "only_in": one.only_in} for one in diff.names],
        "records": [{"name": one.name, "what": one.what} for one in diff.records],
        "containers": {
            "compared": diff.has_containers,
            "changed": [_container(one) for one in diff.containers],
            "reordered": [_container(one) for one in diff.reordered],
        },
        "not_compared": list(diff.uncompared),
        "complete": not diff.unlisted and not any("unread" in change.what for change in diff.tensors),
    }


def _container(change: ContainerChange) -> Document:
    found = {"path": change.a_path, "a": change.a, "b": change.b}
    return found if change.a_path == change.b_path else found | {"b_path": change.b_path}


def as_document_of_rules(diff: Diff) -> list[Document]:
    """Return what became of names."""
    return [{"a": rule.a, "b": rule.b, "tensors": rule.tensors, "how": rule.how} for rule in diff.rules]


def _tensor(diff: Diff, change: TensorChange) -> Document:
    one, other = diff.a.tensors[change.pair.a], diff.b.tensors[change.pair.b]
    facts = [fact for fact in change.what if fact in _SAID]
    found: Document = {
        "path": one.path,
        "what": list(change.what),
        "a": _facts(one, facts),
        "b": _facts(other, facts),
    }
    if other.path != one.path:
        found["b_path"] = other.path
    numbers = change.numbers
    found |= _figures(numbers)
    if change.why:
        found["why"] = change.why
    return found


def _figures(numbers: Numbers | None) -> Document:
    found: Document = {
        figure: None if numbers is None else finite(getattr(numbers, figure)) for figure in _FIGURES
    }
    found["first"] = None
    if numbers is not None and numbers.first is not None:
        found["first"] = {"index": list(numbers.first), "a": numbers.first_a, "b": numbers.first_b}
    return found


def _facts(row: Tensor, facts: list[str]) -> object:
    """Return the only fact that differs as it is, several by their names."""
    found = {fact: as_document(getattr(row, fact)) for fact in facts}
    return None if not found else found if len(found) > 1 else found[facts[0]]


def _value(diff: Diff, change: ValueChange) -> Document:
    one, other = diff.a.values[change.a], diff.b.values[change.b]
    found: Document = {
        "path": one.path,
        "what": list(dict.fromkeys(("value", *change.what) if "type" in change.what else change.what)),
        "a": change.a_text,
        "b": change.b_text,
        "max_abs": None,
        "max_rel": None,
        "cosine": None,
    }
    if change.numbers is not None:
        figures = _figures(change.numbers)
        found |= {figure: figures.pop(figure) for figure in ("max_abs", "max_rel", "cosine")}
        found["array"] = figures
    if other.path != one.path:
        found["b_path"] = other.path
    if "type" in change.what:
        found["types"] = [one.type, other.type]
    return found

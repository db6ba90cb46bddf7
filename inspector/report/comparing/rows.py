"""The differences of two checkpoints as rows of one list, which text and window show alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from inspector.diff.records import ArrayPair, Diff, Pair, TensorChange, ValueChange
from inspector.report.comparing.words import (
    ARROW,
    LABELS,
    describe_tensor,
    fact_text,
    how_text,
    numbers_text,
)
from inspector.report.words.formats import ROOT, shown_place
from inspector.units import short_value, shown_path

Section = Literal["safety", "tensor", "optimizer", "value", "container", "sharing", "record"]
Mark = Literal["+", "-", "~", ">", "=", "!"]
"""Added, removed, changed, only renamed, equal, and what loading runs."""

SECTIONS: dict[Section, str] = {
    "safety": "What loading runs",
    "tensor": "Tensors",
    "optimizer": "Optimizer",
    "value": "Other values",
    "container": "Containers",
    "sharing": "Shared memory",
    "record": "Records and other storages",
}


class DiffRow(NamedTuple):
    """One difference, or one pair that is equal.

    Attributes:
        a_path: Its path in the first file; empty where it has none.
        what: The kinds of difference, as `LABELS` names them.
        pair: The rows of the tensors; None for what is no pair of them.
        nbytes: The size of a tensor that only one file has; -1 for what is none.
        arrays: The rows of two arrays among the values; None for what is no pair of them.
        unread: Why the bytes could not be compared, where nothing else differs, without the place of that.
        leaf: Of a tensor or a value the file whose tree has its place, and its number there, as in
            `arrange.Leaf`; None for what stands in no tree.
    """

    section: Section
    mark: Mark
    a_path: str
    b_path: str
    what: tuple[str, ...]
    a_text: str
    b_text: str
    detail: str
    pair: Pair | None = None
    nbytes: int = -1
    arrays: ArrayPair | None = None
    unread: str = ""
    leaf: tuple[Literal["a", "b"], int] | None = None


def diff_rows(diff: Diff, *, equal: bool = False) -> tuple[DiffRow, ...]:
    """Return all differences: what loading runs, tensors in the order of the first file, then the rest.

    Args:
        equal: Whether to list tensors that do not differ as well.
    """
    places = tuple(
        f"{shown_path(optimizer.path)}/" if optimizer.path else ""
        for one in (diff.a, diff.b)
        for optimizer in one.optimizers
    )
    rows = (
        *_safety(diff),
        *_tensors(diff, equal=equal),
        *_values(diff),
        *_containers(diff),
        *_sharing(diff),
        *_records(diff),
    )
    return tuple(_of_optimizer(row, places) for row in rows) if places else rows


def _of_optimizer(row: DiffRow, places: tuple[str, ...]) -> DiffRow:
    """Return a row in the section of optimizers, if it stands in one."""
    is_there = row.section in {"tensor", "value"} and (row.a_path or row.b_path).startswith(places)
    return row._replace(section="optimizer") if is_there else row


def count_kinds(rows: tuple[DiffRow, ...]) -> tuple[tuple[str, int], ...]:
    """Return how many rows there are of each kind, in the order of `LABELS`, without those of none."""
    counts = Counter(kind for row in rows for kind in row.what)
    return tuple((kind, counts[kind]) for kind in LABELS if counts[kind])


def _safety(diff: Diff) -> Iterator[DiffRow]:
    for name in diff.names:
        kind = "call" if name.verdict == "call" else "import"
        paths = (name.text, "") if name.only_in == "a" else ("", name.text)
        verb = "calls" if kind == "call" else "imports"
        file = (diff.a if name.only_in == "a" else diff.b).path
        verdict = "" if kind == "call" else f" ({name.verdict})"
        yield DiffRow("safety", "!", *paths, (kind,), *paths, f"only loading {file} {verb} this{verdict}")


def _tensors(diff: Diff, *, equal: bool) -> Iterator[DiffRow]:
    a, b = diff.a.tensors, diff.b.tensors
    changes = {change.pair: change for change in diff.tensors}
    removed = dict.fromkeys(diff.removed)
    order: list[tuple[int, Pair | None]] = [(pair.a, pair) for pair in diff.pairs]
    order += [(number, None) for number in removed]
    order.sort(key=lambda item: item[0])
    for number, pair in order:
        if pair is None:
            text = describe_tensor(a[number])
            yield DiffRow(
                "tensor",
                "-",
                shown_place(a[number]),
                "",
                ("removed",),
                text,
                "",
                text,
                None,
                a[number].nbytes,
                leaf=("a", number),
            )
        else:
            row = _pair_row(diff, pair, changes.get(pair))
            if equal or row.mark != "=":
                yield row
    for number in diff.added:
        text, nbytes = describe_tensor(b[number]), b[number].nbytes
        place = shown_place(b[number])
        yield DiffRow("tensor", "+", "", place, ("added",), "", text, text, None, nbytes, leaf=("b", number))


def _pair_row(diff: Diff, pair: Pair, change: TensorChange | None) -> DiffRow:
    one, other = diff.a.tensors[pair.a], diff.b.tensors[pair.b]
    places = shown_place(one), shown_place(other)
    what = () if change is None else change.what
    is_renamed = one.path != other.path and pair.how != "shared"
    details = [fact_text(fact, one, other) for fact in what]
    if change is not None:
        details += _value_details(change)
    if is_renamed:
        details.append(
            f"now {shown_place(other)}" + (f" ({how_text(pair.how)})" if how_text(pair.how) else "")
        )
    kinds = (*(("renamed",) if is_renamed else ()), *what)
    unread = "" if change is None or kinds != ("unread",) else change.why.partition(": ")[0]
    mark: Mark = "~" if what else ">" if is_renamed else "="
    detail = "; ".join(filter(None, details))
    texts = describe_tensor(one), describe_tensor(other)
    return DiffRow("tensor", mark, *places, kinds, *texts, detail, pair, unread=unread, leaf=("a", pair.a))


def _array_details(change: ValueChange) -> Iterator[str]:
    """Yield what two arrays are where that differs, and what became of their numbers."""
    yield change.a_text if change.a_text == change.b_text else f"{change.a_text} {ARROW} {change.b_text}"
    yield from _value_details(change)


def _value_details(change: TensorChange | ValueChange) -> list[str]:
    if change.numbers is not None:
        return [numbers_text(change.numbers)]
    if isinstance(change, TensorChange) and change.why:
        return [f"could not be compared: {change.why}"]
    if "values" in change.what:
        return ["values differ"]
    return ["the same numbers in other bits (-0.0, or another NaN)"] if "bits" in change.what else []


def _values(diff: Diff) -> Iterator[DiffRow]:
    a, b = diff.a.values, diff.b.values
    for number in diff.values_removed:
        row = a[number]
        detail = f"{row.type} {row.text}"
        yield DiffRow(
            "value", "-", shown_place(row), "", ("removed",), row.text, "", detail, leaf=("a", ~number)
        )
    for change in diff.values:
        one, other = a[change.a], b[change.b]
        types = f" ({one.type} {ARROW} {other.type})" if "type" in change.what else ""
        detail = f"{change.a_text} {ARROW} {change.b_text}{types}"
        if change.is_measurable:
            detail = "; ".join(_array_details(change))
        kinds = tuple("value" if kind == "type" else kind for kind in change.what)
        texts = short_value(one.type, change.a_text), short_value(other.type, change.b_text)
        texts = texts if texts[0] != texts[1] else (change.a_text, change.b_text)
        arrays = ArrayPair(change.a, change.b) if change.is_measurable else None
        places = shown_place(one), shown_place(other)
        yield DiffRow("value", "~", *places, kinds, *texts, detail, arrays=arrays, leaf=("a", ~change.a))
    for number in diff.values_added:
        row = b[number]
        detail = f"{row.type} {row.text}"
        yield DiffRow(
            "value", "+", "", shown_place(row), ("added",), "", row.text, detail, leaf=("b", ~number)
        )


def _containers(diff: Diff) -> Iterator[DiffRow]:
    for kind, changes in (("container", diff.containers), ("order", diff.reordered)):
        for one in changes:
            detail = f"{'keys ' if kind == 'order' else ''}{one.a} {ARROW} {one.b}"
            if one.a_path != one.b_path:
                detail += f"; now {shown_path(one.b_path) or ROOT}"
            paths = shown_path(one.a_path) or ROOT, shown_path(one.b_path) or ROOT
            yield DiffRow("container", "~", *paths, (kind,), one.a, one.b, detail)


def _sharing(diff: Diff) -> Iterator[DiffRow]:
    for found in diff.sharing:
        texts = ("tied", "separate") if found.tied_in == "a" else ("separate", "tied")
        path = ", ".join(map(shown_path, found.paths[:4])) + (", \u2026" if len(found.paths) > 4 else "")
        file = (diff.a if found.tied_in == "a" else diff.b).path
        detail = f"share their memory in {file} alone"
        yield DiffRow("sharing", "~", path, path, ("tied",), *texts, detail)


def _records(diff: Diff) -> Iterator[DiffRow]:
    marks: dict[str, Mark] = {"added": "+", "removed": "-", "changed": "~"}
    for record in diff.records:
        a, b = ("" if record.what == gone else record.name for gone in ("added", "removed"))
        yield DiffRow("record", marks[record.what], a, b, ("record",), "", "", record.what)

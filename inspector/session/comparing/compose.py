"""From a comparison and what was chosen in its window to what is shown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import cast

from inspector.diff.records import ArrayPair, Diff, Numbers, Pair
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.progress import Progress
from inspector.records import dataclass, field, replace
from inspector.report.comparing.rows import DiffRow, count_kinds, diff_rows
from inspector.report.comparing.words import (
    FACT_TEXTS,
    LABELS,
    doubt_texts,
    numbers_text,
    rule_text,
    safety_texts,
    verdict_text,
)
from inspector.report.words.formats import ROOT, shown_place
from inspector.session.comparing.listing import (
    FIGURES,
    TOP,
    CompareColumn,
    Figures,
    Found,
    Listing,
    Order,
    Shape,
    figure_text,
    figures_of,
    is_weight,
    list_rows,
    most_of,
    shape_of,
)
from inspector.session.comparing.screen import (
    ComparedFile,
    CompareScreen,
    FactPair,
    KindChoice,
    Selection,
)
from inspector.session.screen import FailurePage
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_MOST_RULES = 6
_SHOWN_FACTS = ("device", "dtype", "shape", "stride", "layout", "requires_grad", "role", "problem")
_CONTAINER_FACTS: dict[tuple[str, ...], str] = {("container",): "Type", ("order",): "Keys"}
_CHOICES = {"values": "tensor values", "value": "other values"}
"""What a kind is called where it stands alone, if its label needs a row beside it."""
_LEFT_OUT = "; * without counters, NaN, infinities and what one file lacks"
_STALE = "What stands here may be out of date: {}."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """A comparison, prepared to be shown: what takes long for a million rows is worked out once.

    Attributes:
        pairs: Those whose numbers can be compared: both files have as many.
        nbytes: How many bytes of the first file that reads.
        notes: What could not be compared, and what became of names.
    """

    diff: Diff
    rows: tuple[DiffRow, ...]
    shape: Shape
    pairs: tuple[Pair | ArrayPair, ...]
    nbytes: int
    kinds: tuple[tuple[str, int], ...]
    verdict: str
    alerts: tuple[str, ...]
    notes: tuple[str, ...]
    is_equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareState:
    """What the session of such a window knows.

    Attributes:
        compared: What came out; None as long as nothing has.
        progress: How far reading is; None when it is over.
        kinds: The kinds that the list is narrowed to; none for all.
        query: What the rows that are listed hold, word by word.
        found: By how much pairs differ, as far as that is known, and `figures` the same by node.
        changed: What became of a file since it was compared, as far as that is known.
    """

    a: str
    b: str
    compared: Compared | None = None
    progress: Progress | None = None
    failure: FailurePage | None = None
    kinds: frozenset[str] = frozenset()
    only_differences: bool = True
    query: str = ""
    order: Order = Order()
    listing: Listing | None = None
    selected: int | None = None
    found: Found = field(default_factory=dict)
    figures: tuple[Figures | None, ...] = ()
    most: tuple[float, ...] = ()
    measuring: Progress | None = None
    measure_failure: str = ""
    changed: str = ""


def prepare(diff: Diff) -> Compared:
    """Prepare a comparison to be shown."""
    rows = diff_rows(diff, equal=True)
    pairs = tuple(pair for row in rows if (pair := row.pair or row.arrays) and can_measure(diff, row))
    return Compared(
        diff=diff,
        rows=rows,
        shape=shape_of(diff, rows),
        pairs=pairs,
        nbytes=sum(diff.a.tensors[pair.a].nbytes for pair in pairs if isinstance(pair, Pair)),
        kinds=count_kinds(rows),
        verdict=verdict_text(diff),
        alerts=tuple(safety_texts(diff)),
        notes=(*doubt_texts(diff), *_rules(diff)),
        is_equal=diff.is_equal,
    )


def arrange(state: CompareState) -> Listing:
    """Return the rows that the choices of a state leave, in their order."""
    compared, kinds, words = state.compared, state.kinds, state.query.casefold().split()
    assert compared is not None  # noqa: S101 - what is arranged was compared

    def is_wanted(row: DiffRow) -> bool:
        is_shown = (
            not kinds.isdisjoint(row.what) if kinds else not (state.only_differences and row.mark == "=")
        )
        return is_shown and all(_holds(_words_of(row), word) for word in words)

    figures = state.figures or (None,) * len(compared.shape.names)
    return list_rows(compared.rows, compared.shape, figures, is_wanted, state.order)


def with_figures(state: CompareState, found: Found) -> CompareState:
    """Return a state with what is known of the numbers."""
    compared = state.compared
    assert compared is not None  # noqa: S101 - as above
    figures = figures_of(compared.diff, compared.rows, compared.shape, found)
    rows = zip(compared.rows, compared.shape.nodes, strict=True)
    of_rows = [figures[node] for row, node in rows if is_weight(compared.diff, row)]
    most = tuple(most_of(of_rows, column) for column in FIGURES)
    return replace(state, found=dict(found), figures=figures, most=most)


def _holds(text: str, word: str) -> bool:
    """Return whether a text holds a word in any case; a star in it stands for anything."""
    place = 0
    for part in word.split("*"):
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def _words_of(row: DiffRow) -> str:
    return "\t".join((row.a_path, row.b_path, *row.what, row.a_text, row.b_text, row.detail)).casefold()


def compose(state: CompareState) -> CompareScreen:
    """Return what is shown of a state."""
    names = _names(state.a, state.b)
    compared = state.compared
    title = " \u2194 ".join(names)
    files = [ComparedFile(path=path, name=name) for path, name in zip((state.a, state.b), names, strict=True)]
    if compared is None:
        phase = "failed" if state.failure is not None else "opening"
        return CompareScreen(
            phase="failed" if phase == "failed" else "opening",
            title=f"{title} - Checkpoint Inspector",
            a=files[0],
            b=files[1],
            progress=state.progress,
            failure=state.failure,
        )
    diff = compared.diff
    shown = 0 if state.listing is None else state.listing.shown
    danger = "dangerous" in {name.verdict for name in diff.names}
    return CompareScreen(
        phase="ready",
        title=f"{title} - Checkpoint Inspector",
        a=ComparedFile(path=state.a, name=names[0], line=_line(diff.a)),
        b=ComparedFile(path=state.b, name=names[1], line=_line(diff.b)),
        tone="bad" if danger else "good" if compared.is_equal else "warning",
        verdict=compared.verdict,
        alerts=(*((_STALE.format(state.changed),) if state.changed else ()), *compared.alerts),
        notes=compared.notes,
        kinds=tuple(
            KindChoice(
                id=kind, label=_CHOICES.get(kind, LABELS[kind]), count=count, chosen=kind in state.kinds
            )
            for kind, count in compared.kinds
        ),
        only_differences=state.only_differences,
        rows=compared.rows,
        shape=compared.shape,
        listing=state.listing,
        order=state.order,
        found=state.found,
        figures=state.figures,
        most=state.most,
        measuring=state.measuring,
        measured=state.measure_failure or _measured(state, compared),
        can_measure=_measure_text(state, compared),
        shown=shown,
        query=state.query,
        status=f"{shown:,} of {format_count(len(compared.rows), 'row')} listed",
        selection=_selection(state, compared),
        progress=state.progress,
    )


def _names(a: str, b: str) -> tuple[str, str]:
    """Return short names of two paths that tell them apart."""
    one, other = PurePath(a), PurePath(b)
    most = min(len(one.parts), len(other.parts))
    depth = next((count for count in range(1, most + 1) if one.parts[-count] != other.parts[-count]), 1)
    names = ("/".join(path.parts[-depth:]) for path in (one, other))
    first, second = (escape_text(cut_text(name, 120)) for name in names)
    return first, second


def _line(checkpoint: Checkpoint) -> str:
    tensors = format_count(len(checkpoint.tensors), "tensor")
    return f"{checkpoint.format} \u00b7 {tensors} \u00b7 {format_nbytes(checkpoint.file_nbytes)}"


def _rules(diff: Diff) -> list[str]:
    rules = [rule for rule in diff.rules if rule.tensors > 1 or rule.how == "prefix"]
    found = [f"Renamed: {rule_text(rule)}" for rule in rules[:_MOST_RULES]]
    more = len(rules) - _MOST_RULES
    return [*found, f"\u2026 and by {format_count(more, 'more rule')}"] if more > 0 else found


def _selection(state: CompareState, compared: Compared) -> Selection | None:
    if state.selected is None:
        return None
    row = compared.rows[state.selected]
    pair = row.pair or row.arrays
    numbers = None if pair is None else state.found.get(pair)
    told = numbers_text(numbers) if isinstance(numbers, Numbers) else str(numbers or "")
    return Selection(
        row=state.selected,
        title=row.a_path or row.b_path or ROOT,
        detail=row.detail,
        facts=tuple(sorted(_facts(compared.diff, row), key=lambda fact: not fact.differs)),
        numbers=told,
    )


def _measure_text(state: CompareState, compared: Compared) -> str:
    """Return what a button that compares the numbers says; empty where all were compared."""
    left = len(compared.pairs) - len(state.found)
    if not left or state.measuring is not None:
        return ""
    return f"Compare numbers ({format_nbytes(compared.nbytes)})"


def _measured(state: CompareState, compared: Compared) -> str:
    """Return by how much all of it differs."""
    whole = state.figures[TOP] if state.figures else None
    if whole is None:
        return ""
    names = {"relative": "relative difference", "cosine": "cosine", "largest": "largest step"}
    told = [f"{name} {figure_text(whole, cast('CompareColumn', column))}" for column, name in names.items()]
    left = len(compared.pairs) - len(state.found)
    rest = f" ({format_count(left, 'pair')} left)" if left else ""
    return f"All tensors: {', '.join(told)}{_LEFT_OUT if whole.apart or whole.skipped else ''}{rest}"


def can_measure(diff: Diff, row: DiffRow) -> bool:
    """Return whether the numbers of a row can be compared: both files have as many."""
    if row.arrays is not None:
        return True
    if row.pair is None or "unread" in row.what:
        return False
    one, other = diff.a.tensors[row.pair.a], diff.b.tensors[row.pair.b]
    has_bytes = one.storage is not None and other.storage is not None
    return (
        has_bytes
        and "meta" not in {one.device, other.device}
        and one.nbytes > 0
        and _numel(one) == _numel(other)
    )


def _numel(row: Tensor) -> int:
    numel = 1
    for size in row.shape:
        numel *= size
    return numel


def _facts(diff: Diff, row: DiffRow) -> Iterable[FactPair]:
    if row.arrays is not None:
        yield _fact("Path", row.a_path or "(root)", row.b_path or "(root)", differs=row.a_path != row.b_path)
        yield _fact("Value", row.a_text, row.b_text, differs=row.a_text != row.b_text)
        yield from _unshown(row)
        return
    if row.pair is None:
        if row.a_path != row.b_path:
            yield _fact("Path", row.a_path or "\u2014", row.b_path or "\u2014", differs=True)
        label = _CONTAINER_FACTS.get(row.what, "Value")
        yield _fact(label, row.a_text or "\u2014", row.b_text or "\u2014", differs=row.mark != "=")
        return
    one, other = diff.a.tensors[row.pair.a], diff.b.tensors[row.pair.b]
    yield _fact("Path", shown_place(one), shown_place(other), differs=one.path != other.path)
    for fact in _SHOWN_FACTS:
        text = FACT_TEXTS[fact]
        yield _fact(LABELS[fact].capitalize(), text(one), text(other), differs=fact in row.what)
    yield _fact(
        "Size", format_nbytes(one.nbytes), format_nbytes(other.nbytes), differs=one.nbytes != other.nbytes
    )
    yield from _unshown(row)


def _unshown(row: DiffRow) -> Iterable[FactPair]:
    """Yield what differs, and is too long to be shown."""
    for kind in ("class", "metadata", "values", "bits", "unread"):
        if kind in row.what:
            yield _fact(LABELS[kind].capitalize(), "differs", "differs", differs=True)


def _fact(label: str, a: str, b: str, *, differs: bool) -> FactPair:
    return FactPair(label=label, a=cut_text(a, 600), b=cut_text(b, 600), differs=differs)

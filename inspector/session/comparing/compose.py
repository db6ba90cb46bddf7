"""From a comparison and what was chosen in its window to what is shown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from inspector.diff.records import ArrayPair, Diff, Numbers, Pair
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.report.comparing.rows import SECTIONS, DiffRow, Section, count_kinds, diff_rows
from inspector.report.comparing.words import (
    FACT_TEXTS,
    LABELS,
    doubt_texts,
    numbers_text,
    rule_text,
    safety_texts,
    verdict_text,
)
from inspector.report.words.formats import shown_place
from inspector.session.comparing.screen import (
    ComparedFile,
    CompareScreen,
    FactPair,
    KindChoice,
    RowGroup,
    Selection,
)
from inspector.session.screen import FailurePage
from inspector.units import cut_text, escape_text, format_count, format_nbytes, unescaped_path

_MOST_RULES = 6
_SHOWN_FACTS = ("device", "dtype", "shape", "stride", "layout", "requires_grad", "role", "problem")
_CONTAINER_FACTS: dict[tuple[str, ...], str] = {("container",): "Type", ("order",): "Keys"}
_CHOICES = {"values": "tensor values", "value": "other values"}
"""What a kind is called where it stands alone, if its label needs a row beside it."""
_STALE = "What stands here may be out of date: {}."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """A comparison, prepared to be shown: what takes long for a million rows is worked out once.

    Attributes:
        notes: What could not be compared, and what became of names.
    """

    diff: Diff
    rows: tuple[DiffRow, ...]
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
    groups: tuple[RowGroup, ...] = ()
    selected: int | None = None
    measured: tuple[tuple[Pair | ArrayPair, Numbers], ...] = ()
    measuring: Progress | None = None
    measure_failure: str = ""
    changed: str = ""


def prepare(diff: Diff) -> Compared:
    """Prepare a comparison to be shown."""
    rows = diff_rows(diff, equal=True)
    return Compared(
        diff=diff,
        rows=rows,
        kinds=count_kinds(rows),
        verdict=verdict_text(diff),
        alerts=tuple(safety_texts(diff)),
        notes=(*doubt_texts(diff), *_rules(diff)),
        is_equal=diff.is_equal,
    )


def arrange(
    compared: Compared, kinds: frozenset[str], *, only_differences: bool, query: str = ""
) -> tuple[RowGroup, ...]:
    """Return the rows that a choice leaves, by what they are and where they stand."""
    groups: dict[tuple[Section, str], list[int]] = {}
    words = query.casefold().split()
    for number, row in enumerate(compared.rows):
        is_shown = not kinds.isdisjoint(row.what) if kinds else not (only_differences and row.mark == "=")
        if is_shown and all(_holds(_words_of(row), word) for word in words):
            groups.setdefault((row.section, _folder(row)), []).append(number)
    order = list(SECTIONS)
    placed = sorted(groups.items(), key=lambda item: order.index(item[0][0]))
    return tuple(
        RowGroup(title=title or SECTIONS[section], detail=f"{len(rows):,}", rows=tuple(rows))
        for (section, title), rows in placed
    )


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


def leaf_name(row: DiffRow) -> str:
    """Return the last step of a row's name."""
    path = row.a_path or row.b_path
    return unescaped_path(path[len(_folder(row)) :].lstrip("./") or path) or "(root)"


def _folder(row: DiffRow) -> str:
    """Return the place that a row stands in."""
    if row.section in {"safety", "sharing", "record"}:
        return ""
    path = row.a_path or row.b_path
    return path[: max(path.rfind("/"), path.rfind("."), 0)]


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
    shown = sum(len(group.rows) for group in state.groups)
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
        groups=state.groups,
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
    numbers = None if pair is None else dict(state.measured).get(pair)
    return Selection(
        row=state.selected,
        title=row.a_path or row.b_path or "(root)",
        detail=row.detail,
        facts=tuple(sorted(_facts(compared.diff, row), key=lambda fact: not fact.differs)),
        numbers="" if numbers is None else numbers_text(numbers),
        can_measure=can_measure(compared.diff, row),
        measuring=state.measuring,
        failure=state.measure_failure,
    )


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

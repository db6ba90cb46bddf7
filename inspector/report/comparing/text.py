"""What `diff` prints: the verdict, what is dangerous, what became of names, then each difference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from inspector.diff.records import Diff
from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.report.comparing.rows import SECTIONS, DiffRow, diff_rows
from inspector.report.comparing.words import (
    ARROW,
    LABELS,
    doubt_texts,
    fact_text,
    rule_text,
    safety_texts,
    verdict_text,
)
from inspector.report.page import Block, Change, Line, Page, Pointed, page_of, plain_text
from inspector.report.words.formats import ROOT
from inspector.units import escape_text, format_count, format_nbytes, shown_path, unescaped_path

_FEW = 3
_EXAMPLES = 2
_SILENT = frozenset({"renamed"})
_GROUPED = frozenset({"device", "dtype", "requires_grad", "role", "class", "layout", "renamed"})
"""What is said once where it happened to many tensors in the same way."""


def format_diff(diff: Diff, *, equal: bool = False, every: bool = False) -> str:
    """Return a comparison as plain text, see `diff_page`."""
    return plain_text(diff_page(diff, equal=equal, every=every))


def diff_page(diff: Diff, *, equal: bool = False, every: bool = False) -> Page:
    """Return a comparison.

    Args:
        equal: Whether to list tensors that do not differ as well.
        every: Whether to list each tensor of a change that many have in common.
    """
    rows = diff_rows(diff, equal=equal)
    common = {} if every else _common(diff, rows)
    said = {row for group in common.values() for row in group}
    sections = []
    for section, title in SECTIONS.items():
        shown = [
            row
            for row in rows
            if row.section == section and row not in said and _is_news(row, equal=equal or every)
        ]
        if shown:
            changes = map(_line, shown) if every else _folded(diff, shown)
            sections.append((Line(f"{title} ({len(shown):,})", "heading"), *changes))
    return page_of(_head(diff), _names(diff), _shared(common), *sections)


def _head(diff: Diff) -> Iterator[Block]:
    yield from (_file(one, f"{mark} ") for mark, one in (("a", diff.a), ("b", diff.b)))
    yield from (Line(text, "bad") for text in safety_texts(diff))
    yield Line(verdict_text(diff), "good" if diff.is_equal else "caution")
    yield from (Line(text) for text in doubt_texts(diff))


def _names(diff: Diff) -> Iterator[Block]:
    # Others have a line each.
    rules = [rule for rule in diff.rules if rule.tensors > 1 or rule.how == "prefix"]
    if rules:
        yield Line("Names", "heading")
    yield from (Change(">", rule_text(rule), "") for rule in rules)


def _shared(common: dict[str, list[DiffRow]]) -> Iterator[Block]:
    if common:
        yield Line("Changes that many tensors share", "heading")
    for text, group in common.items():
        yield Change("~", text, format_count(len(group), "tensor"))


def _file(checkpoint: Checkpoint, mark: str) -> Pointed:
    tensors = format_count(len(checkpoint.tensors), "tensor")
    size = format_nbytes(checkpoint.file_nbytes)
    said = f"{checkpoint.format}, {tensors}, {size}"
    return Pointed(escape_text(checkpoint.path), said, mark, "   ", is_title=True)


def _is_news(row: DiffRow, *, equal: bool) -> bool:
    """Return whether a row says more than the rule that explains its name."""
    return equal or row.mark != ">" or (row.pair is not None and row.pair.how in {"content", "parameter"})


def _common(diff: Diff, rows: Iterable[DiffRow]) -> dict[str, list[DiffRow]]:
    """Return the tensors in which nothing differs but what many have in common, by what that is."""
    groups: dict[str, list[DiffRow]] = defaultdict(list)
    for row in rows:
        if row.pair is None or row.mark != "~" or not _GROUPED.issuperset(row.what):
            continue
        one, other = diff.a.tensors[row.pair.a], diff.b.tensors[row.pair.b]
        facts = (fact_text(fact, one, other) for fact in row.what if fact not in _SILENT)
        groups["; ".join(facts)].append(row)
    return {text: group for text, group in groups.items() if len(group) > _FEW}


def _folded(diff: Diff, rows: list[DiffRow]) -> Iterator[Block]:
    """Yield a line for each row, but one for a whole branch that the other file has nothing of."""
    branches = {"-": branches_of(diff.b), "+": branches_of(diff.a)}
    groups: dict[tuple[str, str], list[DiffRow]] = defaultdict(list)
    for row in rows:
        place = _alone(row.a_path or row.b_path, branches[row.mark]) if row.mark in branches else ""
        groups[row.mark, place or f"{row.a_path}\0{row.b_path}"].append(row)
    folded = []
    for (mark, place), group in groups.items():
        if len(group) > _FEW and "\0" not in place:
            yield Change(mark, unescaped_path(place), f"all of it: {_counted(group)}")
        else:
            folded += group
    yield from _alike(folded)


def _alike(rows: list[DiffRow]) -> Iterator[Block]:
    """Yield a line for each row, but one for those that went the same way in many places, or nowhere."""
    groups: dict[tuple[str, ...], list[DiffRow]] = defaultdict(list)
    for row in rows:
        groups[_way(row)].append(row)
    for (name, *_), group in groups.items():
        if name and len(group) > _FEW:
            yield _many(name, group)
        else:
            yield from map(_line, group)


def _way(row: DiffRow) -> tuple[str, ...]:
    """Return what rows have in common that are said in one line, its name first."""
    path = row.a_path or row.b_path
    if row.unread:
        return "unread", row.unread
    if row.section == "container":
        kind = row.what[0]
        return (kind,) if kind == "order" else (kind, row.a_text, row.b_text)
    if row.pair is None and row.nbytes < 0 and row.arrays is None and "/" in path:
        return (f"*/{unescaped_path(path.rpartition('/')[2])}", row.mark, row.detail)
    return "", path, row.b_path


def _many(name: str, group: list[DiffRow]) -> Change:
    first = group[0]
    such_as = ", ".join(unescaped_path(row.a_path or row.b_path) for row in group[:_EXAMPLES])
    if name == "unread":
        why = f"could not be compared: {first.unread}, such as {such_as}"
        return Change("~", format_count(len(group), "tensor"), why)
    if name == "order":
        return Change("~", LABELS[name], f"{format_count(len(group), 'mapping')}, such as {such_as}")
    if name == "container":
        way = f"{first.a_text} {ARROW} {first.b_text}"
        return Change("~", way, f"{format_count(len(group), 'container')}, such as {such_as}")
    return Change(first.mark, name, f"{first.detail}: {format_count(len(group), 'value')}, such as {such_as}")


def branches_of(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the places in a checkpoint that anything stands below."""
    found: set[str] = set()
    for path in (
        shown_path(row.path) for row in chain[Tensor | ValueRow](checkpoint.tensors, checkpoint.values)
    ):
        end = path.rfind("/")
        while end >= 0 and path[: end + 1] not in found:
            found.add(path[: end + 1])
            end = path.rfind("/", 0, end)
    return frozenset(found)


def _alone(path: str, others: frozenset[str]) -> str:
    """Return the first branch on the way to a path that the other file has nothing of; empty without any."""
    end = path.find("/")
    while end >= 0 and path[: end + 1] in others:
        end = path.find("/", end + 1)
    return path[: end + 1]


def _counted(group: list[DiffRow]) -> str:
    tensors = [row.nbytes for row in group if row.nbytes >= 0]
    parts = [f"{format_count(len(tensors), 'tensor')}, {format_nbytes(sum(tensors))}"] if tensors else []
    values = len(group) - len(tensors)
    return ", ".join([*parts, *([format_count(values, "value")] if values else [])])


def _line(row: DiffRow) -> Change:
    return Change(row.mark, unescaped_path(row.a_path or row.b_path) or ROOT, row.detail)

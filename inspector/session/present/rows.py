"""What is shown of the rows of the tree: the facts of the selected ones, and those that a search finds."""

from __future__ import annotations

from inspector.model.findings import Finding
from inspector.records import replace
from inspector.report.colors import device_name
from inspector.report.details import FactGroup, Lookup, look_up, tensor_facts, value_facts
from inspector.report.outline.chosen import total_of
from inspector.report.outline.flat import FlatRows, Order, flat_rows
from inspector.report.outline.node import Node
from inspector.report.outline.strip import Strip, strip_of
from inspector.report.query import Rows, matching_nodes, parse_query, searchable, why_nothing
from inspector.session.document import Document
from inspector.session.screen import SearchPage
from inspector.session.state import State
from inspector.session.values.kinds import scalars_of, scan_of, selected_row
from inspector.units import format_count, format_exact, format_nbytes
from inspector.values.statistics import Scan

MOST_PICKED = 2000
"""So many selected rows are summed up at once."""
Odd = dict[str, frozenset[int]] | None
"""What a scan found, by the field that asks for it."""
Sought = tuple[Finding, ...] | None
"""The findings, where a search asks for what one speaks of."""


def scan_sought(state: State) -> Scan | None:
    """Return the scan, if the search asks for what only that knows."""
    return scan_of(state) if parse_query(state.query).needs_scan else None


def odd_rows(scan_sought: Scan | None) -> Odd:
    """Return what a scan found of what is searched for; None before a scan."""
    if scan_sought is None:
        return None
    found: dict[str, list[int]] = {}
    for one in scan_sought.tensors:
        for oddity in one.oddities:
            found.setdefault(str(oddity), []).append(one.row)
    return {field: frozenset(rows) for field, rows in found.items()}


def searched_rows(document: Document) -> Rows:
    """Look up what every search asks of the rows."""
    return searchable(document.checkpoint)


def matching_rows(
    document: Document, searched: Rows, odd: Odd, findings_sought: Sought, query: str
) -> tuple[int, ...] | None:
    """Return the rows that a search finds; None without a search."""
    return matching_nodes(parse_query(query), _known(searched, odd, findings_sought), document.tree)


def flat_list(document: Document, matches: tuple[int, ...] | None, order: Order | None) -> FlatRows | None:
    """Return the rows as one list; None for the tree."""
    return None if order is None else flat_rows(document.tree, matches, order)


def search_page(  # noqa: PLR0917 - all that a search is made with
    document: Document,
    searched: Rows,
    odd: Odd,
    findings_sought: Sought,
    query: str,
    matches: tuple[int, ...] | None,
) -> SearchPage | None:
    """Return what a search found in all, or why it found nothing; None without a search."""
    if matches is None:
        return None
    parsed = parse_query(query)
    if matches:
        total = total_of(document.tree, matches)
        size = f"{'' if total.is_exact else 'at most '}{format_nbytes(total.nbytes)}" if total.tensors else ""
        return SearchPage(size=size, query=parsed)
    reason = why_nothing(query, _known(searched, odd, findings_sought))
    return SearchPage(size="", query=parsed, why=reason.words, instead=reason.instead)


def _known(searched: Rows, odd: Odd, findings_sought: Sought) -> Rows:
    return replace(searched, odd=odd, findings=findings_sought)


def lookup_of(document: Document) -> Lookup:
    """Look up what the facts of every row ask for."""
    return look_up(document.checkpoint)


def node_facts(document: Document, lookup: Lookup, selected: int | None) -> tuple[FactGroup, ...]:
    """Return all facts of a row; nothing where there is no such row."""
    if selected is None or not 0 < selected < len(document.tree.nodes):
        return ()
    node = document.tree.nodes[selected]
    if node.kind == "tensor":
        return tensor_facts(document.checkpoint, node.index, lookup)
    if node.kind == "value":
        return value_facts(document.checkpoint.values[node.index])
    return _group_facts(node)


def many_picked(state: State) -> tuple[int, ...]:
    """Return the selected rows where a worker sums them up."""
    return state.picked if len(state.picked) > MOST_PICKED else ()


def strip_of_many(document: Document, lookup: Lookup, many_picked: tuple[int, ...]) -> Strip | None:
    """Return the sum of very many selected rows."""
    return _strip(document, lookup, many_picked)


def strip(state: State, document: Document, lookup: Lookup, strip_of_many: Strip | None) -> Strip | None:
    """Return the facts of the selected rows in short, with the value that was read of a single one."""
    if state.picked:
        return strip_of_many or _strip(document, lookup, state.picked)
    shown, row = _strip(document, lookup, (state.selected,)), selected_row(state)
    text = None if row is None else (scalars_of(state) or {}).get(row)
    return shown if shown is None or text is None else replace(shown, facts=(f"value {text}", *shown.facts))


def _strip(document: Document, lookup: Lookup, node_ids: tuple[int | None, ...]) -> Strip | None:
    count = len(document.tree.nodes)
    shown = [id_ for id_ in node_ids if id_ is not None and 0 < id_ < count]
    return strip_of(document.checkpoint, document.tree, lookup, shown) if shown else None


def can_go(visited: tuple[tuple[int, ...], int]) -> tuple[bool, bool]:
    """Return whether one can go back, and forward, through the rows that were selected."""
    nodes, place = visited
    return place > 0, place < len(nodes) - 1


def _group_facts(node: Node) -> tuple[FactGroup, ...]:
    facts = (
        ("Name", node.name),
        *((("Path", node.path),) if node.path else ()),
        ("Tensors", f"{node.tensors:,}"),
        *((("Parameters", parameters_fact(node)),) if node.parameters or node.integers else ()),
        ("Size", format_nbytes(node.nbytes)),
    )
    below = tuple((device_name(device), format_nbytes(nbytes)) for device, nbytes in node.devices)
    groups = (FactGroup(title="Group", facts=facts), FactGroup(title="On devices", facts=below))
    return tuple(group for group in groups if group.facts)


def parameters_fact(node: Node) -> str:
    """Return the exact count of the parameters below a row, and of what has an unknown number of them."""
    left = format_count(node.integers, "matrix", "matrices")
    packed = f"; {left} of integers, maybe packed weights, not counted" if node.integers else ""
    return f"{format_exact(node.parameters)}{packed}"

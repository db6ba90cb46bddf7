"""What is shown of the rows of the tree: the facts of the selected ones, and those that a search finds."""

from __future__ import annotations

from inspector.records import replace
from inspector.report.colors import device_name
from inspector.report.details import FactGroup, Lookup, look_up, tensor_facts, value_facts
from inspector.report.outline.chosen import total_of
from inspector.report.outline.flat import FlatRows, Order, flat_rows
from inspector.report.outline.node import Node
from inspector.report.outline.strip import Strip, strip_of
from inspector.report.query import Rows, matching_nodes, parse_query, searchable, why_nothing
from inspector.session.cache import remembered
from inspector.session.document import Document
from inspector.session.screen import SearchPage
from inspector.session.state import State
from inspector.session.values.kinds import scalars_of, scan_of, selected_row
from inspector.session.values.showing import requests_of
from inspector.units import format_count, format_exact, format_nbytes
from inspector.values.statistics import Scan

Odd = tuple[tuple[str, frozenset[int]], ...] | None
"""What a scan found, by the field that asks for it."""


@remembered
def matches_of(document: Document, text: str, odd: Odd) -> tuple[int, ...] | None:
    """Return the rows that a search finds; None without a search."""
    return matching_nodes(parse_query(text), _searched(document, odd), document.tree)


@remembered
def flat_of(document: Document, text: str, odd: Odd, order: Order | None) -> FlatRows | None:
    """Return the rows as one list; None for the tree."""
    if order is None:
        return None
    return flat_rows(document.tree, matches_of(document, text, odd), order)


@remembered
def search_page(document: Document, text: str, odd: Odd) -> SearchPage | None:
    """Return what a search found in all, or why it found nothing; None without a search."""
    matches = matches_of(document, text, odd)
    if matches is None:
        return None
    query = parse_query(text)
    if matches:
        total = total_of(document.tree, matches)
        size = f"{'' if total.is_exact else 'at most '}{format_nbytes(total.nbytes)}" if total.tensors else ""
        return SearchPage(size=size, query=query)
    reason = why_nothing(text, _searched(document, odd))
    return SearchPage(size="", query=query, why=reason.words, instead=reason.instead)


def odd_of(state: State) -> Odd:
    """Return what the scan of all tensors found, if the search asks for that; None before a scan."""
    scan = scan_of(state) if parse_query(state.query).needs_scan else None
    return None if scan is None or state.ready is None else _odd(state.ready, scan)


@remembered
def _odd(_document: Document, scan: Scan) -> Odd:
    found: dict[str, list[int]] = {}
    for one in scan.tensors:
        for oddity in one.oddities:
            found.setdefault(str(oddity), []).append(one.row)
    return tuple((field, frozenset(rows)) for field, rows in found.items())


def _searched(document: Document, odd: Odd) -> Rows:
    rows = _rows(document)
    return rows if odd is None else replace(rows, odd=dict(odd))


@remembered
def _rows(document: Document) -> Rows:
    return searchable(document.checkpoint)


def node_facts(document: Document, id_: int | None) -> tuple[FactGroup, ...]:
    """Return all facts of a row; nothing where there is no such row."""
    lookup = _lookup(document)
    if id_ is None or not 0 < id_ < len(document.tree.nodes):
        return ()
    node = document.tree.nodes[id_]
    if node.kind == "tensor":
        return tensor_facts(document.checkpoint, node.index, lookup)
    if node.kind == "value":
        return value_facts(document.checkpoint.values[node.index])
    return _group_facts(node)


def strip(document: Document, node_ids: tuple[int | None, ...]) -> Strip | None:
    """Return the facts of the selected rows in short; None where nothing is selected."""
    count = len(document.tree.nodes)
    shown = tuple([id_ for id_ in node_ids if id_ is not None and 0 < id_ < count])
    return _strip(document, shown) if shown else None


def with_value(shown: Strip | None, state: State) -> Strip | None:
    """Return the facts with the value of the selected tensor, where it has one that was read."""
    row = None if state.picked else selected_row(state)
    text = None if row is None else (scalars_of(state) or {}).get(row)
    return shown if shown is None or text is None else replace(shown, facts=(f"value {text}", *shown.facts))


@remembered
def _strip(document: Document, node_ids: tuple[int, ...]) -> Strip:
    return strip_of(document.checkpoint, document.tree, _lookup(document), node_ids)


def can_go(visited: tuple[tuple[int, ...], int]) -> tuple[bool, bool]:
    """Return whether one can go back, and forward, through the rows that were selected."""
    nodes, place = visited
    return place > 0, place < len(nodes) - 1


def prepare_rows(document: Document) -> None:
    """Look up what the first click and the first search in a large file would wait for."""
    _lookup(document)
    _rows(document)
    requests_of(document)


@remembered
def _lookup(document: Document) -> Lookup:
    return look_up(document.checkpoint)


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

"""The intentions about rows of the tree: selecting and searching them, and what is done with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.records import replace
from inspector.session.document import expression_of_node, path_of_node
from inspector.session.jobs.export import Exports

if TYPE_CHECKING:
    from inspector.report.outline.flat import Order
    from inspector.report.outline.node import Node
    from inspector.session.document import Document
    from inspector.session.state import State

# What a click needs is imported by the first one: the worker that judges the file has imported most by then.

_MOST_VISITED = 200
_MOST_PICKED = 100_000


class RowIntentions(Exports):
    """What a user does with rows; each needs an open file, and comes to nothing without one."""

    def select(self, node: int | None) -> None:
        """Show the facts of a tree node, and where the map of modules does not show it, more of that."""
        document = self._ready
        if document is not None:
            self._show(_visited(_selected(self._state, document, node), node))

    def pick(self, nodes: tuple[int, ...]) -> None:
        """Show the sum of several rows; of none, the facts of the selected one."""
        picked = nodes[:_MOST_PICKED]
        if self._ready is not None and picked != self._state.picked:
            self._show(replace(self._state, picked=picked))

    def go(self, step: int) -> None:
        """Select what was selected before (-1), or after that (1)."""
        document, (nodes, place) = self._ready, self._state.visited
        if document is not None and 0 <= place + step < len(nodes):
            state = _selected(self._state, document, nodes[place + step])
            self._show(replace(state, visited=(nodes, place + step)))

    def list_flat(self, order: Order | None) -> None:
        """Show all tensors, or what a search found, as one sorted list; None shows the tree again."""
        if self._ready is not None:
            self._show(replace(self._state, flat=order))

    def search(self, query: str) -> None:
        """Look for tree nodes; an empty query ends the search."""
        if self._ready is not None:
            self._show(replace(self._state, query=query))

    def search_sharing(self, node: int) -> None:
        """Look for the tensors that view the storage of a tensor."""
        row, document = self._row_at(node), self._ready
        if row is not None and document is not None and row.kind == "tensor":
            storage = document.checkpoint.tensors[row.index].storage
            if storage is not None:
                from inspector.report.query import quoted  # noqa: PLC0415 - see above

                self.search(f"storage:{quoted(storage)}")

    def search_device(self, node: int) -> None:
        """Look for the tensors that were saved on the device of a row, on that of most bytes of a group."""
        row = self._row_at(node)
        if row is not None and row.devices:
            from inspector.report.query import quoted  # noqa: PLC0415 - see above

            self.search(f"device:{quoted(row.devices[0][0])}")

    def map_branches(self, nodes: tuple[int, ...], to: str) -> None:
        """Send all tensors of some rows to one device."""
        document, state = self._ready, self._state
        if document is None:
            return
        from inspector.remap.rules import Rule, check_destination  # noqa: PLC0415 - see above

        for pattern in filter(None, (path_of_node(document, node) for node in nodes)):
            state = state.with_rule(Rule(path=pattern, to=check_destination(to)), document)
        self._show(state)

    # --- questions of the view ------------------------------------------------------------------------------

    def node_path(self, node: int) -> str:
        """Return the path of a tree node as the command line takes it; empty for a slice of a long list."""
        return "" if self._ready is None else path_of_node(self._ready, node)

    def node_expression(self, node: int) -> str:
        """Return a Python expression that reaches a tensor in the checkpoint; empty for other nodes."""
        return "" if self._ready is None else expression_of_node(self._ready, node)

    def nodes_json(self, nodes: tuple[int, ...]) -> str:
        """Return a row as `show --json` writes it, or several as a list; a group is its path and sums."""
        document = self._ready
        if document is None:
            return ""
        from inspector.report.jsonable import row_text  # noqa: PLC0415 - see above

        rows = [row_text(document.checkpoint, document.tree.nodes[node]) for node in nodes]
        return rows[0] if len(rows) == 1 else "[\n  {}\n]".format(",\n  ".join(rows))

    def can_leave_out(self, nodes: tuple[int, ...]) -> bool:
        """Return whether a copy can be without some rows: not, if all are single items of tuples."""
        document = self._ready
        if document is None or not document.checkpoint.tuples:
            return document is not None
        from inspector.session.export.choosing import bound_rows  # noqa: PLC0415 - see above

        return not bound_rows(document.checkpoint, document.tree).issuperset(nodes)

    def _row_at(self, node: int) -> Node | None:
        document = self._ready
        return None if document is None else document.tree.nodes[node]


def _selected(state: State, document: Document, node: int | None) -> State:
    """Return a state with another row selected, and the map of modules where that is."""
    from inspector.report.charts.modules import root_for  # noqa: PLC0415 - see above

    root = state.map_root if node is None else root_for(document.tree, state.map_root, node)
    return replace(state, selected=node, picked=(), map_root=root)


def _visited(state: State, node: int | None) -> State:
    """Return a state that remembers that a row was selected; those that one came back from are forgotten."""
    nodes, place = state.visited
    if node is None or (nodes and nodes[place] == node):
        return state
    kept = (*nodes[: place + 1], node)[-_MOST_VISITED:]
    return replace(state, visited=(kept, len(kept) - 1))

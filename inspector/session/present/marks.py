"""Which parts of the charts the selected row belongs to."""

from __future__ import annotations

from inspector.report.charts.bars import Chart
from inspector.report.charts.filtering import filter_for
from inspector.session.document import Document


def marks_of(document: Document, node: int | None, charts: tuple[Chart, ...]) -> tuple[str, ...]:
    """Return the searches of all parts that a row belongs to, by its device, its role and its dtype.

    A group belongs to the parts of all devices below it.
    """
    nodes = document.tree.nodes
    if node is None or not 0 < node < len(nodes):
        return ()
    row = nodes[node]
    about: set[tuple[str, str]] = {("device", device) for device, _ in row.devices}
    if row.kind == "tensor":
        tensor = document.checkpoint.tensors[row.index]
        about |= {("device", tensor.device), ("role", tensor.role), ("dtype", tensor.dtype)}
    known = {part.query for chart in charts for bar in chart.bars for part in bar.segments if part.query}
    plain = {filter_for(field, value) for field, value in about}
    exact = {f'{field}:"{value}"' for field, value in about}
    return tuple(sorted(known & (plain | exact)))

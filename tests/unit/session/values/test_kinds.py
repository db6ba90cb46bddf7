from __future__ import annotations

from inspector.progress import Progress
from inspector.session.operations import Job
from inspector.session.state import State
from inspector.session.values.kinds import SCAN, scan_of, selected_row
from tests.unit.session.documents import saved_on


def test_the_row_of_the_selected_tensor_is_found() -> None:
    state = State(phase="ready", document=saved_on("cpu", "cpu"))
    nodes = state.document.tree.nodes
    for node, row in enumerate(nodes):
        wanted = row.index if row.kind == "tensor" else None
        assert selected_row(State(phase="ready", document=state.document, selected=node)) == wanted
    for lost in (None, 0, len(nodes)):
        assert selected_row(State(phase="ready", document=state.document, selected=lost)) is None
    assert selected_row(State(selected=1)) is None


def test_a_scan_is_what_its_job_found() -> None:
    assert scan_of(State()) is None
    job = Job(kind=SCAN, about="/a.pth", progress=Progress(), status="done", result="found")
    assert scan_of(State(jobs=(job,))) == "found"

from __future__ import annotations

import pytest

from inspector.errors import CancelledError, PlanError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.device_map import map_devices
from inspector.session.export import steps
from inspector.session.export.draft import draft_of
from inspector.session.export.page import ExportWish
from inspector.session.state import ExportState, State
from inspector.target.profile import CPU_ONLY
from tests.unit.session.documents import saved_on


def opened(*devices: str, path: str = "/a.pth") -> State:
    return State(phase="ready", path=path, document=saved_on(*devices, path=path))


def test_a_draft_comes_with_what_exists_where_it_goes(tmp_path) -> None:
    state = opened("cuda:0", path=str(tmp_path / "a.pth"))
    draft, found = steps.propose(state, ExportState(step="draft"), Progress())
    assert draft.destination == found.path == str(tmp_path / "a.cpu.pth")
    typed = replace(found, path="mine.pth")
    again = ExportState(step="draft", draft=draft, destination=typed)
    kept = steps.propose(state, again, Progress())[1]
    assert (kept.path, kept.note) == ("mine.pth", f"This is {tmp_path / 'mine.pth'}.")


def test_a_map_that_is_refused_is_not_carried_out(monkeypatch) -> None:
    refused = PlanError("by hand")
    planned = replace(map_devices(saved_on("cpu"), CPU_ONLY, ()), refusal=refused)
    monkeypatch.setattr(steps, "ask", lambda *_asked: planned)
    with pytest.raises(PlanError, match="by hand"):
        steps.carry_out(opened("cpu"), ExportWish(), "/b.pth", Progress(), overwrite=False)


def test_a_draft_counts_its_rows_and_can_be_cancelled() -> None:
    for kind in ("copy", "weights", "safetensors"):
        state = opened("cuda:0", "cuda:1")
        export = ExportState(step="draft", wish=ExportWish(kind=kind))
        progress = Progress("preparing the export")

        steps.propose(state, export, progress)

        assert progress.is_counted
        assert 0 < progress.done <= progress.total, kind
        progress.cancel()
        with pytest.raises(CancelledError):
            steps.propose(state, export, progress)
        device_map = map_devices(state.document, CPU_ONLY, ())
        for passed in range(1 if kind == "copy" else 2):  # what becomes of each row, and the boxes
            with pytest.raises(CancelledError):
                draft_of(device_map, export.wish, state.document.tree, _CancelledLate(passed))


class _CancelledLate(Progress):
    """Is cancelled after rows were gone through so often."""

    def __init__(self, passed: int) -> None:
        super().__init__()
        self._left = passed

    def over(self, rows):
        if not self._left:
            self.cancel()
        self._left -= 1
        yield from super().over(rows)

from __future__ import annotations

import gc

import pytest

from inspector.errors import CancelledError, ContainerError
from inspector.progress import Progress
from inspector.resources import demo_path
from inspector.session.document import open_document


def test_opening_prepares_all_that_no_target_changes() -> None:
    document = open_document(str(demo_path()), Progress())
    assert len(document.tree.tensor_nodes) == len(document.checkpoint.tensors) == 283
    assert [total.device for total in document.totals] == ["cuda:0", "cuda:1", "cpu"]
    assert document.tree.colours == {"cuda:0": 0, "cuda:1": 1, "cpu": -1}
    assert document.safety.verdict == "weights-only"
    assert 0 < document.open_seconds < 60
    assert gc.isenabled()


def test_what_cannot_be_read_leaves_as_an_error(tmp_path) -> None:
    with pytest.raises(ContainerError):
        open_document(str(tmp_path / "missing.pt"), Progress())


def test_opening_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        open_document(str(demo_path()), progress)
    assert gc.isenabled()

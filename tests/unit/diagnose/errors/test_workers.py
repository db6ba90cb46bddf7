"""Processes: workers of a DataLoader, ranks of a training run."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.report.rows import checkpoint, storage, tensor

WORKER = "RuntimeError: DataLoader worker (pid 51) is killed by signal: {}."


def test_a_bus_error_is_about_the_file_that_lacks_bytes() -> None:
    cut = checkpoint(storage("0", missing=True), tensor("w", storage="0"))
    for text in ("Bus error (core dumped)", "exited with code 135", "SIGBUS"):
        found = explain_error(text, cut)
        assert (found.id, found.fits, found.finding) == ("dataloader-worker", "yes", "truncated"), text
        assert explain_error(text, checkpoint(storage("0"), tensor("w", storage="0"))).fits == "unknown"
    assert explain_error(WORKER.format("Bus error"), cut).fits == "no"

"""Processes: workers of a DataLoader, ranks of a training run."""

from __future__ import annotations

import pytest

from inspector.diagnose.errors.explain import explain_error

WORKER = "RuntimeError: DataLoader worker (pid 51) is killed by signal: {}."


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (WORKER.format("Bus error"), "--shm-size"),
        (WORKER.format("Killed"), "fewer workers"),
        ("RuntimeError: DataLoader worker (pid(s) 25) exited unexpectedly", "num_workers=0"),
        ("RuntimeError: NCCL error: unhandled cuda error\nCuda failure 'out of memory'", "batch size"),
        (
            "RuntimeError: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)",
            "dist.barrier()",
        ),
        ("RuntimeError: NCCL error in: a.cpp:1, unhandled system error", "NCCL_DEBUG=INFO"),
    ],
)
def test_what_helps(text: str, word: str) -> None:
    assert word in explain_error(text, None).advice


def test_the_error_of_the_worker_counts() -> None:
    text = (
        "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent "
        "call last):\n"
        '  File "data.py", line 3, in __getitem__\n    x.cuda()\n'
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess."
    )
    found = explain_error(text, None)
    assert (found.id, found.where) == ("fork-cuda", "data.py, line 3, in __getitem__: x.cuda()")

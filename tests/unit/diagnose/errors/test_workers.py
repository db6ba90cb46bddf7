"""Processes: workers of a DataLoader, ranks of a training run."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor

WORKER = "RuntimeError: DataLoader worker (pid 51) is killed by signal: {}."


@table(
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


def test_a_pinning_thread_that_ended() -> None:
    ended = explain_error("RuntimeError: Pin memory thread exited unexpectedly", None)
    assert "persistent_workers=False" in ended.advice
    none = explain_error("RuntimeError: cannot pin tensor: no GPU", None)
    assert "persistent_workers" not in none.advice
    lost = "ValueError: not enough values to unpack (expected 2, got 0)"
    frame = '  File "/v/site-packages/torch/utils/data/_utils/pin_memory.py", line 28, in loop\n    x\n'
    assert explain_error(frame + lost, None).id == "pin-memory"
    assert explain_error(lost, None).id == "unpacking"


def test_a_worker_that_cannot_start_cuda() -> None:
    text = "RuntimeError: CUDA error: initialization error"
    assert explain_error(text, None).id == "cuda-start"
    frame = '  File "x/torch/utils/data/_utils/worker.py", line 99, in _worker_loop\n    x\n'
    assert explain_error(frame + text, None).id == "fork-cuda"


def test_a_compiler_is_no_process_of_a_launcher() -> None:
    text = "subprocess.CalledProcessError: Command '['{}', '-v']' returned non-zero exit status 1."
    assert explain_error(text.format("ninja"), None).id == "extension-build"
    assert explain_error(text.format("python"), None).id == "child-failed"


def test_a_bus_error_is_about_the_file_that_lacks_bytes() -> None:
    cut = checkpoint(storage("0", missing=True), tensor("w", storage="0"))
    for text in ("Bus error (core dumped)", "exited with code 135", "SIGBUS"):
        found = explain_error(text, cut)
        assert (found.id, found.fits, found.finding) == ("dataloader-worker", "yes", "truncated"), text
        assert explain_error(text, checkpoint(storage("0"), tensor("w", storage="0"))).fits == "unknown"
    assert explain_error(WORKER.format("Bus error"), cut).fits == "no"


def test_gradients_that_do_not_come_are_no_matter_of_devices() -> None:
    text = (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one."
    )
    found = explain_error(text, None)
    assert found.id == "ddp-unused"
    assert "find_unused_parameters=True" in found.advice
    device = (
        "ValueError: DDP's device_ids and output_device arguments only work with ... got module parameters"
    )
    assert explain_error(device, None).id == "ddp-device"

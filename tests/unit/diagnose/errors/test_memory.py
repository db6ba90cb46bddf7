"""Memory that is not enough."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error

TEXT = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of "
    "which {} is free. Including non-PyTorch memory, this process has {} memory in use."
)


def test_what_filled_the_gpu_by_the_sizes_in_the_message() -> None:
    title = {
        ("218.96 GiB", "23.68 GiB", "20.00 GiB", "3.00 GiB"): "single tensor is larger than the GPU",
        ("128.00 MiB", "23.68 GiB", "52.50 MiB", "3.40 GiB"): "Another program uses the memory",
        ("2.00 GiB", "8.00 GiB", "1.20 GiB", "6.60 GiB"): "The GPU is out of memory",
    }
    for sizes, wanted in title.items():
        assert wanted in explain_error(TEXT.format(*sizes), None).title, sizes
    old = (
        "RuntimeError: CUDA out of memory. Tried to allocate 36.00 MiB (GPU 0; 10.76 GiB total capacity; "
        "996.23 MiB already allocated; 8.81 MiB free; 1010.00 MiB reserved in total by PyTorch)"
    )
    assert "10.5 GB belong to other processes" in explain_error(old, None).cause
    cached = (
        "CUDA out of memory. Tried to allocate 4.00 GiB (GPU 0; 10.73 GiB total capacity; 4.41 GiB already "
    )
    assert (
        explain_error(f"{cached}allocated; 1.75 GiB free; 3.78 GiB cached)", None).title
        == "The GPU is out of memory"
    )


def test_what_the_program_was_doing_decides_what_helps() -> None:
    said = "RuntimeError: CUDA out of memory."
    load = '  File "x/torch/serialization.py", line 9, in load\n    x\n'
    step = '  File "x/torch/nn/modules/conv.py", line 9, in forward\n    x\n'
    assert "torch.load puts each tensor back" in explain_error(load + said, None).cause
    assert "or other programs use the GPU" in explain_error(said, None).cause
    assert "or other programs use the GPU" not in explain_error(step + said, None).cause


def test_what_filled_the_machine() -> None:
    load = '  File "x/torch/serialization.py", line 9, in _load\n    result = unpickler.load()\n'
    assert "A damaged file" in explain_error(load + "MemoryError", None).cause
    assert "keep numbers" in explain_error("DefaultCPUAllocator: can't allocate memory", None).advice
    assert "reads only what is used" in explain_error("MemoryError", None).advice

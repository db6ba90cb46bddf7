"""Kernels that are compiled or chosen while a program runs."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_each_compiler_and_library_has_its_answer() -> None:
    ids = {
        "AssertionError: CUDA must be available in order to use this": "cuda-required",
        "RuntimeError: nvrtc: error: failed to open nvrtc-builtins64_117.dll": "compiler-missing",
        "RuntimeError: No available kernel. Aborting execution.": "attention-kernel",
        "MIOpen(HIP): Error [Compile] 'hiprtcCompileProgram'": "rocm-libraries",
        "RuntimeError: Unknown qengine": "quantized-engine",
        "RuntimeError: sparse tensors do not have strides": "no-storage",
        "RuntimeError: CUDA error: invalid argument": "cuda-refused",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids

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


def test_each_end_has_its_answer() -> None:
    titles = {
        "OMP: Error #15: Initializing libomp.dylib, but found libiomp5.dylib already initialized.": "OpenMP",
        "Illegal instruction (core dumped)": "CPU does not have an instruction",
        "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)": "system ended the process",
        "Process finished with exit code -1073741819 (0xC0000005)": "Compiled code crashed",
        "free(): invalid pointer": "Compiled code crashed",
    }
    assert {
        text: title for text, title in titles.items() if title not in explain_error(text, None).title
    } == {}


def test_a_load_that_was_killed_is_made_smaller() -> None:
    assert "mmap=True and weights_only" in explain_error("model = torch.load(path)\nKilled", None).advice
    assert "fewer DataLoader workers" in explain_error("epoch 3\nKilled", None).advice
    assert explain_error("it was killed by the scheduler", None).id == "unrecognised"


def test_what_cpp_threw_counts_more_than_that_it_threw() -> None:
    text = "terminate called after throwing an instance of 'c10::Error'\n  what(): CUDA out of memory."
    assert explain_error(text, None).id == "gpu-memory"


def test_each_message_has_its_row() -> None:
    ids = {
        "Model was trained with torch 1.10.0+cu102, yours is 2.0.0. Bad things might happen": "load-warning",
        "The following keys are missing from the checkpoint": "weights-not-used",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids


def test_an_error_counts_more_than_a_warning() -> None:
    text = "UserWarning: TypedStorage is deprecated.\nRuntimeError: CUDA out of memory."
    assert explain_error(text, None).id == "gpu-memory"

"""TorchScript's compiler."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_what_failed_inside_counts_more_than_that_it_did() -> None:
    text = "The following operation failed in the TorchScript interpreter.\nRuntimeError: CUDA out of memory."
    assert explain_error(text, None).id == "gpu-memory"
    assert explain_error("RuntimeError: \nUnknown type name 'Foo':", None).id == "script-compile"

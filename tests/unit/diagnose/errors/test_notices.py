"""Warnings that stand beside an error."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_each_message_has_its_row() -> None:
    ids = {
        "Model was trained with torch 1.10.0+cu102, yours is 2.0.0. Bad things might happen": "load-warning",
        "The following keys are missing from the checkpoint": "weights-not-used",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids


def test_an_error_counts_more_than_a_warning() -> None:
    text = "UserWarning: TypedStorage is deprecated.\nRuntimeError: CUDA out of memory."
    assert explain_error(text, None).id == "gpu-memory"

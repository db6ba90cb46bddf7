"""Batches, targets and layouts."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_each_message_has_its_row() -> None:
    ids = {
        "ValueError: Expected input batch_size (324) to match target batch_size (4).": "target-shape",
        "RuntimeError: stack expects a non-empty TensorList": "no-samples",
        "RuntimeError: each element in list of batch should be of equal size": "batch-elements",
        "ValueError: Input contains NaN, infinity or a value too large": "not-a-number",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids

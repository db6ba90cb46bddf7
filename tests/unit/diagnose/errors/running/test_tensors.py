"""What tensors hold and how they are stored."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_each_message_has_its_row() -> None:
    ids = {
        "TypeError: len() of a 0-d tensor": "tensor-elements",
        "ValueError: only one element tensors can be converted to Python scalars": "tensor-elements",
        "ValueError: batch_sizes should always be on CPU.": "lengths-on-gpu",
        "RuntimeError: Trying to resize storage that is not resizable": "resize-storage",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids

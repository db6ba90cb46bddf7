"""What readers say of the contents of a file."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import on


def test_a_tensor_that_a_file_does_not_have() -> None:
    text = "safetensors_rust.SafetensorError: File does not contain tensor fc.weight"
    assert explain_error(text, on(("fc.weight", "cpu"))).fits == "no"
    near = explain_error(text, on(("model.fc.weight", "cpu")))
    assert (near.fits, near.paths) == ("yes", ("model.fc.weight",))
    assert explain_error(text, on(("a", "cpu"))).here == "This file has no tensor fc.weight."

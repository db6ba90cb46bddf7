"""Tensors without data, and tensors that NumPy cannot have."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.sweep import table
from tests.unit.diagnose.explaining import explained, on

META = "NotImplementedError: Cannot copy out of meta tensor; no data!"


def test_meta_tensors_of_a_file() -> None:
    assert explained(META, on(("a", "meta"), ("b", "cpu")), id_="meta-tensor").paths == ("a",)
    assert explained(META, on(("b", "cpu")), id_="meta-tensor").fits == "no"


@table(
    ("text", "word"),
    [
        (
            "copying from a non-meta parameter to a meta parameter in the current model, which is a no-op",
            "assign=True",
        ),
        ("Tensor on device cuda:0 is not on the expected device meta!", "device_map"),
        (META, "to_empty"),
        ("RuntimeError: Can't call numpy() on Tensor that requires grad.", "detach"),
        ("TypeError: Got unsupported ScalarType BFloat16", "tensor.float()"),
        ("TypeError: can't convert cuda:0 device type tensor to numpy.", "tensor.detach().cpu()"),
    ],
)
def test_what_helps(text: str, word: str) -> None:
    assert word in explain_error(text, None).advice

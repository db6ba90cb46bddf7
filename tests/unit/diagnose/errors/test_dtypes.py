"""Messages about dtypes: they are about precision, never about devices."""

from __future__ import annotations

from inspector.diagnose.errors.running import read_type
from tests.sweep import table
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, tensor


def test_the_dtypes_of_a_file() -> None:
    text = "expected scalar type Half but found Float"
    half = checkpoint(tensor("a", dtype="float16"), tensor("b"))
    found = explained(text, half, id_="dtype-mix")
    assert found.fits == "unknown"
    assert "float16 (1 tensor), float32 (1 tensor)" in found.here
    assert "copies them into the dtypes that the model was built with" in found.here
    whole = checkpoint(tensor("a"), module_class="a.Net")
    assert explained(text, whole, id_="dtype-mix").fits == "yes"
    assert "no weights" in explained(text, on(), id_="dtype-mix").here


@table(
    ("text", "place", "dtype"),
    [
        ("torch.cuda.HalfTensor", "cuda", "float16"),
        ("torch.FloatTensor", "cpu", "float32"),
        ("torch.FloatT ensor", "cpu", "float32"),
        ("CUDABFloat16Type", "cuda", "bfloat16"),
        ("MPSFloatType", "mps", "float32"),
        ("CPUFloatType", "cpu", "float32"),
        ("c10::Half", "", "float16"),
        ("float", "", "float32"),
        ("unsigned char", "", "uint8"),
        ("long int", "", "int64"),
        ("Double", "", "float64"),
        ("torch.float64", "", "float64"),
        ("odd", "", ""),
    ],
)
def test_names(text: str, place: str, dtype: str) -> None:
    found = read_type(text)
    assert (found.place, found.dtype) == (place, dtype)

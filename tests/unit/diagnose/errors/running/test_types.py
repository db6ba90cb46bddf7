"""Names of types, read as a place and a dtype."""

from __future__ import annotations

from inspector.diagnose.errors.running.types import are_apart, differ, read_type
from tests.sweep import table


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


def test_comparisons() -> None:
    gpu, cpu, half = (
        read_type("torch.cuda.FloatTensor"),
        read_type("torch.FloatTensor"),
        read_type("c10::Half"),
    )
    assert are_apart(gpu, cpu)
    assert not are_apart(gpu, half)
    assert not differ(gpu, cpu)
    assert differ(cpu, half)
    assert not differ(read_type("odd"), half)

"""torch's own dtypes, compared with torch."""

from __future__ import annotations

import pytest

from inspector.model.dtypes import ITEMSIZES, is_whole, known_dtype, stored_nbytes

torch = pytest.importorskip("torch")


def dtypes() -> dict[str, object]:
    found = {name: item for name in dir(torch) if isinstance(item := getattr(torch, name), torch.dtype)}
    return {name: item for name, item in found.items() if name != "bit"}  # an alias no pickle holds


def test_every_dtype_of_torch_is_known_with_its_size() -> None:
    for name, dtype in dtypes().items():
        canonical = known_dtype(name)
        assert canonical == str(dtype).removeprefix("torch."), name
        assert ITEMSIZES[canonical] == dtype.itemsize, name


def test_whole_numbers() -> None:
    for name in ("float32", "complex64", "bfloat16", "qint8", "float8_e5m2"):
        assert not is_whole(name)
    for name in ("int64", "uint8", "bool", "bits8", "uint3"):
        assert is_whole(name)


def test_unknown_names() -> None:
    assert known_dtype("float33") is None


@pytest.mark.parametrize(
    ("dtype", "numel", "nbytes"),
    [("quint4x2", 3, 2), ("quint2x4", 9, 3), ("float32", 3, 12), ("other", 3, 3)],
)
def test_stored_nbytes(dtype: str, numel: int, nbytes: int) -> None:
    assert stored_nbytes(dtype, numel) == nbytes

"""Element types, against torch's own."""

from __future__ import annotations

import pytest

from inspector.model.tensors.dtypes import ITEMSIZES, PLAIN_ITEMSIZES, is_whole, known_dtype, stored_nbytes


@pytest.mark.torch
def test_table_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    theirs = {str(dtype).removeprefix("torch."): dtype.itemsize for dtype in dtypes}
    assert theirs == ITEMSIZES
    for alias, value in vars(torch).items():
        if isinstance(value, torch.dtype):
            assert known_dtype(alias) == str(value).removeprefix("torch.")


@pytest.mark.torch
def test_whole_numbers_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    for name in ITEMSIZES:
        dtype = getattr(torch, name)
        number = dtype.is_floating_point or dtype.is_complex
        assert is_whole(name) == (not number and not name.startswith("q"))


def test_unknown_types() -> None:
    assert known_dtype("float7") is None
    assert known_dtype("") is None


def test_packed_types() -> None:
    assert stored_nbytes("float32", 3) == 12
    assert stored_nbytes("quint4x2", 3) == 2
    assert stored_nbytes("quint2x4", 5) == 2
    assert stored_nbytes("unknown", 5) == 5
    assert set(ITEMSIZES) - set(PLAIN_ITEMSIZES) == {"quint4x2", "quint2x4"}

"""The element types: those that safetensors itself names, no more and no fewer."""

from __future__ import annotations

import re

import pytest

from inspector.containers.safetensors import CODES
from inspector.model.tensors.dtypes import ITEMSIZES, element_nbytes, stored_nbytes
from tests.builders.safetensors import row, safetensors


def test_types_are_those_of_the_library() -> None:
    library = pytest.importorskip("safetensors")
    with pytest.raises(library.SafetensorError) as caught:
        library.deserialize(safetensors({"a": row("NONE")}, 8))
    assert set(re.findall(r"`([A-Z0-9_]+)`", str(caught.value))) - {"NONE"} == set(CODES)


def test_each_has_a_size() -> None:
    for code in CODES.values():
        assert (code.dtype in ITEMSIZES) == code.loads
        assert stored_nbytes(code.dtype, 16 // code.packed) == 2 * code.bits
        assert element_nbytes(code.dtype, 16 // code.packed) == 2 * code.bits

from __future__ import annotations

import pytest

from inspector.diff.content import Elements, elements_of, has_elements, refuse_endless, swapped
from inspector.errors import ContainerError
from inspector.model.tensors.row_blocks import View
from tests.unit.diff.facts.test_tensors import ROW


def test_where_elements_are_follows_from_the_row() -> None:
    found = elements_of(ROW._replace(storage_offset=4))
    assert found == Elements("0", 4, View((2, 3), (3, 1), 4), 4)
    assert (found.nbytes, found.is_plain, found.is_dense) == (24, True, True)
    assert elements_of(ROW._replace(dtype="complex64")).unit == 4
    turned = elements_of(ROW._replace(stride=(1, 2)))
    assert (turned.is_plain, turned.is_dense) == (False, True)
    assert not elements_of(ROW._replace(stride=(1, 5))).is_dense
    bare = elements_of(ROW._replace(stride=None, storage_offset=None, shape=(6,)))
    assert bare.view == View((6,), (1,), 0)


def test_elements_that_share_a_byte_are_read_as_bytes() -> None:
    packed = elements_of(ROW._replace(dtype="quint4x2", shape=(7,), stride=(1,), storage_offset=2))
    assert packed == Elements("0", 1, View((4,), (1,), 1), 1)
    block = elements_of(ROW._replace(dtype="q8_0", shape=(64,), stride=None, storage_offset=0))
    assert block.nbytes == 68


def test_what_cannot_be_true_is_refused() -> None:
    with pytest.raises(ContainerError, match="past the end"):
        elements_of(ROW._replace(problem="runs past the end"))
    with pytest.raises(ContainerError, match="too often"):
        refuse_endless(Elements("0", 4, View((1 << 30, 2), (0, 1), 0), 4))
    refuse_endless(Elements("0", 4, View((1 << 20, 2), (0, 1), 0), 4))


def test_composites_and_meta_tensors_have_no_elements() -> None:
    assert has_elements(ROW)
    assert not has_elements(ROW._replace(storage=None))
    assert not has_elements(ROW._replace(device="meta"))


def test_bytes_are_swapped_by_unit() -> None:
    assert swapped(b"abcdefgh", 4) == b"dcbahgfe"
    assert swapped(b"abcd", 1) == b"abcd"

"""Storages: what of them is viewed, and what of them is there."""

from __future__ import annotations

import random

import pytest

from inspector.model.tensors.storages import Views
from tests.builders.pickles import number
from tests.unit.model.making import by_hand, numbers, pairs, storage, view


def total(*spans: tuple[int, int]) -> tuple[int, int]:
    views = Views()
    for span in spans:
        views.add("0", span)
    return views.total("0")


def test_union_is_that_of_sets() -> None:
    random.seed(3)
    for _ in range(200):
        spans = [(start, start + random.randint(0, 9)) for start in random.choices(range(30), k=6)]
        places = {place for start, end in spans for place in range(start, end)}
        assert total(*spans) == (len(places), 6)


def test_views_with_holes_count_from_the_first_to_the_last_byte() -> None:
    checkpoint = by_hand(view(storage(numel=10), offset=number(1), size=numbers(2, 2), stride=numbers(5, 1)))
    assert checkpoint.storages[0].viewed_nbytes == 7 * 4


def test_nothing_is_viewed_beyond_what_there_is() -> None:
    checkpoint = by_hand(view(size=numbers(9)))
    assert checkpoint.storages[0].viewed_nbytes == 16


def test_bytes_that_are_not_there() -> None:
    checkpoint = by_hand(pairs(a=view(storage("0")), b=view(storage("1"))), stored={"0": 16})
    whole, lost = checkpoint.storages
    assert (whole.missing, whole.file_offset, whole.nbytes) == (False, 64, 16)
    assert (lost.missing, lost.file_offset, lost.nbytes) == (True, None, 16)
    assert [tensor.problem for tensor in checkpoint.tensors] == [None, None]


@pytest.mark.parametrize("held", [8, 20])
def test_more_or_fewer_bytes_than_declared(held: int) -> None:
    checkpoint = by_hand(
        pairs(a=view(), b=view(size=numbers(9)), c=view(storage("1"))), stored={"0": held, "1": 16}
    )
    assert (checkpoint.storages[0].nbytes, checkpoint.storages[0].expected_nbytes) == (held, 16)
    first, second, third = (tensor.problem for tensor in checkpoint.tensors)
    assert first == f"its storage should have 16 bytes, and the file holds {held}"
    assert second is not None
    assert "runs past" in second
    assert third is None

"""Sums over a checkpoint."""

from __future__ import annotations

from inspector.model.totals import (
    device_totals,
    dtype_totals,
    role_totals,
    storage_nbytes_by,
    wasted_nbytes,
)
from tests.builders.pickles import list_, name, number, op, text
from tests.unit.model.making import by_hand, call, numbers, pairs, storage, view

CHECKPOINT = by_hand(
    pairs(
        model=pairs(
            a=view(storage("0", 4, device="cuda:0")),
            tied=view(storage("0", 4, device="cuda:0")),
            n=view(storage("1", 2, kind="LongStorage", device="cuda:0"), size=numbers(2)),
        ),
        others=list_(view(storage("2", 100)), number(1)),
        lost=pairs(x=number(1)),
    )
)


def test_devices() -> None:
    assert [(row.device, row.tensors, row.storages, row.nbytes) for row in device_totals(CHECKPOINT)] == [
        ("cuda:0", 3, 2, 32),
        ("cpu", 1, 1, 400),
    ]


def test_device_that_only_a_wrapper_has() -> None:
    sent = call(
        "torch._utils._rebuild_device_tensor_from_cpu_tensor",
        view(), name("torch.float"), text("xla:0"), op("NEWFALSE"),
    )  # fmt: skip
    rows = device_totals(by_hand(pairs(w=sent)))
    assert [(row.device, row.tensors, row.storages) for row in rows] == [("xla:0", 1, 0), ("cpu", 0, 1)]


def test_a_storage_counts_once_with_the_first_that_views_it() -> None:
    assert role_totals(CHECKPOINT) == (("parameter", 16), ("buffer", 16), ("other", 400))
    assert dtype_totals(CHECKPOINT) == (("float32", 416), ("int64", 16))


def test_waste() -> None:
    assert wasted_nbytes(CHECKPOINT.storages) == 384
    assert wasted_nbytes([]) == 0


def test_bytes_by_any_property_count_once_as_well() -> None:
    found = storage_nbytes_by(CHECKPOINT, lambda tensor: tensor.device)
    assert found == {"cuda:0": 32, "cpu": 400}

"""Rows are frozen, whatever they are made of."""

from __future__ import annotations

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import ROLES, Role
from inspector.records import replace
from tests.corpus import CORPUS

CHECKPOINT = open_checkpoint(str(CORPUS / "frameworks" / "lightning.ckpt"))


def test_rows_cannot_be_changed() -> None:
    rows = [
        CHECKPOINT,
        CHECKPOINT.tensors[0],
        CHECKPOINT.storages[0],
        CHECKPOINT.values[0],
        CHECKPOINT.globals[0],
        CHECKPOINT.optimizers[0],
        CHECKPOINT.safety,
    ]
    for row in rows:
        field = row._fields[0] if isinstance(row, tuple) else row.__record_fields__[0]
        with pytest.raises(AttributeError):
            setattr(row, field, "changed")


def test_changed_copies_are_made_by_replacing() -> None:
    tensor = CHECKPOINT.tensors[0]
    moved = tensor._replace(device="cpu")
    assert (moved.device, tensor.device) == ("cpu", "cuda:0")
    assert replace(CHECKPOINT, path="other").path == "other"


def test_rows_are_compared_and_hashed_by_their_contents() -> None:
    again = open_checkpoint(CHECKPOINT.path)
    assert again == CHECKPOINT
    assert hash(again.tensors[0]) == hash(CHECKPOINT.tensors[0])


def test_every_role_is_listed() -> None:
    assert set(ROLES) == set(Role.__args__)  # type: ignore[attr-defined]

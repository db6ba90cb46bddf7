"""Rows are frozen, whatever they are made of."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import ROLES, Role
from tests.corpus import CORPUS

CHECKPOINT = open_checkpoint(str(CORPUS / "frameworks" / "lightning.ckpt"))


def test_rows_are_compared_and_hashed_by_their_contents() -> None:
    again = open_checkpoint(CHECKPOINT.path)
    assert again == CHECKPOINT
    assert hash(again.tensors[0]) == hash(CHECKPOINT.tensors[0])


def test_every_role_is_listed() -> None:
    assert set(ROLES) == set(Role.__args__)  # type: ignore[attr-defined]

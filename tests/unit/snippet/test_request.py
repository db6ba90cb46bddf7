"""Variables are named for what they hold."""

from __future__ import annotations

import pytest

from inspector.model.checkpoint import Checkpoint
from inspector.snippet.inventory import take_inventory
from inspector.snippet.placement import place_devices
from inspector.snippet.request import Request, numbered
from inspector.target.machine.profile import CPU_ONLY
from tests.unit.snippet.rows import checkpoint, tensor


def request_for(rows: Checkpoint) -> Request:
    return Request(
        checkpoint=rows,
        inventory=take_inventory(rows),
        placement=place_devices(rows, CPU_ONLY, ()),
        target=CPU_ONLY,
        path=rows.path,
    )


def test_numbered() -> None:
    assert numbered("model", 0) == ()
    assert numbered("model", 3) == ("model", "model_2", "model_3")


@pytest.mark.parametrize(
    ("rows", "root"),
    [
        (checkpoint(tensor(role="other"), root="tensor"), "tensor"),
        (checkpoint(tensor("w")), "state_dict"),
        (checkpoint(tensor("model", "w")), "checkpoint"),
        (checkpoint(tensor("._parameters", "w"), root="module"), "model"),
        (checkpoint(root="sequence"), "checkpoint"),
    ],
)
def test_root(rows: Checkpoint, root: str) -> None:
    assert request_for(rows).root == root


def test_models_get_a_variable_each() -> None:
    found = request_for(checkpoint(tensor("a", "w"), tensor("b", "v"))).models
    assert [(name, model.keys) for name, model in found] == [("model", ("a",)), ("model_2", ("b",))]

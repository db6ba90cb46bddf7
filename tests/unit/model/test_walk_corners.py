"""Places in a walk that honest files hardly have."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import open_checkpoint
from inspector.model.roles.roles import Context, role_of_tensor
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.walk import walk
from inspector.pickles.values import Call, Dict, Global, PersistentId, Value
from inspector.progress import Progress

FLOAT, BYTE = Global("torch", "FloatStorage"), Global("torch", "ByteStorage")


def tensor(key: str = "0", cls: Global = FLOAT, numel: int = 4) -> Call:
    storage = PersistentId(("storage", cls, key, "cpu", numel))
    return Call(
        Global("torch._utils", "_rebuild_tensor_v2"), (storage, 0, (numel,), (1,), False, None), "reduce"
    )


def sparse(indices: Value, values: Value) -> Call:
    parts = (indices, values, (4, 4))
    return Call(Global("torch._utils", "_rebuild_sparse_tensor"), ("torch.sparse_coo", parts), "reduce")


def test_composites_of_composites_do_not_double_with_each_level() -> None:
    made = sparse(tensor("0"), tensor("1"))
    for _ in range(6):
        made = sparse(made, made)
    found = walk([made, made], DEFAULT_LIMITS, Progress())
    assert len(found.tensors) < 100


def test_a_tensor_right_in_a_parameters_state_is_a_slot() -> None:
    groups: list[Value] = [Dict([("params", [0])])]
    optimizer = Dict([("state", Dict([(0, tensor("0"))])), ("param_groups", groups)])
    found = walk(optimizer, DEFAULT_LIMITS, Progress())
    (row,) = found.tensors
    assert (row.role, row.slot) == ("optimizer", None)


def test_an_optimizers_slot_without_a_shape_of_its_own_is_left_unnamed() -> None:
    state = Dict([(0, Dict([("step", tensor("0", numel=1))]))])
    optimizer = Dict([("state", state), ("param_groups", [Dict([("params", [0])])])])
    found = walk(optimizer, DEFAULT_LIMITS, Progress())
    assert [tensor.slot for tensor in found.tensors] == ["step"]


@pytest.mark.torch
def test_an_optimizer_of_counters_alone_tells_no_shape(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "file.pt"
    state = {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"params": [0]}]}
    torch.save({"model": torch.nn.Linear(2, 2).state_dict(), "optimizer": state}, path)
    assert open_checkpoint(str(path)).optimizers[0].naming == "unknown"


def test_bytes_named_as_a_generators_state_are_one() -> None:
    facts = describe_tensor(tensor(cls=BYTE))
    assert facts is not None
    from inspector.model.roles.roles import ModelDraft

    inside = Context(model=ModelDraft((), ""))
    assert role_of_tensor(inside, ("rng_state",), facts) == "rng"
    assert role_of_tensor(inside, ("other",), facts) == "buffer"

"""State that stays on the CPU, against where torch itself puts it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.builders import pickles
from tests.unit.model.making import (
    by_hand,
    by_path,
    call,
    numbers,
    pairs,
    saved,
    storage,
    view,
)

# Parameters on meta, where everything that follows them is as well: what is on the CPU is there by design.
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "Adam": {},
    "AdamW": {"amsgrad": True},
    "NAdam": {},
    "RAdam": {},
    "Adamax": {},
    "Adadelta": {},
    "Adagrad": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Rprop": {},
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "ASGD": {},
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_slots_are_where_torch_puts_them(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2, device="meta")
    optimizer = getattr(torch.optim, kind)(model.parameters(), foreach=False, **OPTIMIZERS[kind])
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    with contextlib.suppress(RuntimeError):  # ASGD reads a number from meta once it has made its state
        optimizer.step()
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    slots = {tensor.path: tensor for tensor in checkpoint.tensors if tensor.slot}
    assert {tensor.device for tensor in slots.values()} <= {"cpu", "meta"}
    for tensor in slots.values():
        assert tensor.on_cpu_by_design == (tensor.device == "cpu"), tensor.path
    on_cpu = {tensor.slot for tensor in slots.values() if tensor.on_cpu_by_design}
    expected = {"SGD": set(), "ASGD": set(), "NAdam": {"step", "mu_product"}}.get(kind, {"step"})
    assert on_cpu == expected


@pytest.mark.torch
@pytest.mark.parametrize(
    ("kind", "option"), [("Adam", "capturable"), ("Adam", "fused"), ("RMSprop", "capturable")]
)
def test_capturable_and_fused_steps_follow_the_parameter(kind: str, option: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2)
    optimizer = getattr(torch.optim, kind)(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    state["param_groups"][0][option] = True
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": state})
    assert not any(tensor.on_cpu_by_design for tensor in checkpoint.tensors)
    assert checkpoint.optimizers[0].capturable


@pytest.mark.torch
def test_each_group_decides_for_its_own_parameters(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam([{"params": [model.weight]}, {"params": [model.bias]}])
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    state["param_groups"][1]["capturable"] = True
    state["state"][7] = {"step": torch.tensor(1.0), "exp_avg": torch.tensor(1.0)}  # in no group
    rows = by_path(saved(tmp_path, state))
    assert rows["state/0/step"].on_cpu_by_design
    assert not rows["state/1/step"].on_cpu_by_design
    assert rows["state/7/step"].on_cpu_by_design
    assert not rows["state/7/exp_avg"].on_cpu_by_design


@pytest.mark.torch
def test_step_of_several_numbers_is_no_counter(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = {"state": {0: {"step": torch.zeros(2)}, 1: {"step": torch.zeros(1)}}, "param_groups": []}
    rows = by_path(saved(tmp_path, state))
    assert not rows["state/0/step"].on_cpu_by_design
    assert rows["state/1/step"].on_cpu_by_design


@pytest.mark.torch
def test_generators_and_their_states_stay(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    rows = by_path(
        saved(
            tmp_path,
            {
                "generator": torch.Generator(),
                "torch_rng_state": torch.get_rng_state(),
                "cuda_rng_state": [torch.zeros(16, dtype=torch.uint8)],
                "picture": torch.zeros(16, dtype=torch.uint8),
            },
        )
    )
    assert {path: (row.role, row.on_cpu_by_design) for path, row in rows.items()} == {
        "generator/.state/2": ("rng", True),
        "torch_rng_state": ("rng", True),
        "cuda_rng_state/0": ("rng", True),
        "picture": ("other", False),
    }


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_metadata_of_nested_and_jagged_tensors_stays(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    parts = [torch.zeros(2, 3), torch.zeros(4, 3)]
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    jagged._get_max_seqlen()
    jagged._get_min_seqlen()
    packed = torch.nn.utils.rnn.pack_sequence([torch.zeros(3), torch.zeros(2)])
    value = {"nested": torch.nested.nested_tensor(parts), "jagged": jagged, "packed": packed}
    rows = by_path(saved(tmp_path, value))
    kept = {path for path, row in rows.items() if row.on_cpu_by_design}
    lengths = {f"jagged/._metadata_cache/{which}_seqlen" for which in ("min", "max")}
    assert kept == {"nested/sizes", "nested/strides", "nested/offsets", "packed/1"} | lengths
    assert rows["nested/buffer"].part_of == 0


def test_ranks_of_a_mesh_stay() -> None:
    mesh = call("torch.distributed.device_mesh.DeviceMesh") + pairs(
        _rank_map=view(), _device_type=pickles.text("cuda")
    )
    rows = by_path(by_hand(pairs(mesh=mesh + pickles.op("BUILD"))))
    assert rows["mesh/._rank_map"].on_cpu_by_design


def test_parts_share_the_fate_of_what_they_belong_to() -> None:
    sparse = call(
        "torch._utils._rebuild_sparse_tensor",
        pickles.text("torch.sparse_coo"),
        pickles.tuple_(view(storage("0")), view(storage("1")), numbers(9)),
    )
    rows = by_path(by_hand(pairs(rng_state=pairs(a=sparse))))
    assert {path: row.on_cpu_by_design for path, row in rows.items()} == {
        "rng_state/a": True,
        "rng_state/a/indices": True,
        "rng_state/a/values": True,
    }

"""Tensors of classes that hold other tensors and name a device themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.plan import plan_remap, with_hidden
from inspector.remap.rules import parse_rule
from tests.corpus import CORPUS
from tests.sweep import IS_SWEEP, table
from tests.torch.remapping import remap
from tests.torch.sameness import assert_same

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
WAYS = ["cpu=cuda:0", "*=cuda:11", "cpu=mps", "cpu=xpu"]


def devices(path: Path) -> list[str]:
    return [row.device for row in open_checkpoint(str(path)).tensors]


def load(path: Path, **how: object) -> object:
    return torch.load(path, weights_only=False, **how)


def there_and_back(path: Path, rule: str, *, is_mapped: bool = True) -> Path:
    """Remap and return: the way there loads with a map to the CPU, the way back without one."""
    there = remap(path, rule, move_all=True)
    if is_mapped:
        assert_same(load(path), load(there, map_location="cpu"))
    with pytest.raises((RuntimeError, NotImplementedError, AssertionError)):
        load(there)
    back = remap(there, "*=cpu")
    assert_same(load(path), load(back))
    assert devices(back) == devices(path)
    return there


# Every protocol in both containers, each in another way; a sweep goes all ways.
MOVES = [
    (new, protocol, rule)
    for new in (True, False)
    for protocol in (2, 3, 4, 5)
    for way, rule in enumerate(WAYS)
    if IS_SWEEP or way == (protocol + new) % len(WAYS)
]


@table(("new", "protocol", "rule"), MOVES)
def test_a_wrapper_moves_whole(tmp_path: Path, rule: str, protocol: int, new: bool) -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    def two(number: int) -> TwoTensor:
        return TwoTensor(torch.full((4, 2), float(number)), torch.arange(8.0).reshape(4, 2))

    shared = torch.arange(8.0).reshape(4, 2)
    value = {
        "w": two(1),
        "p": torch.nn.Parameter(two(2)),
        "cpu": "cpu",
        "device": torch.device("cpu"),
        "inside": TwoTensor(two(3), two(4)),
        "plain": shared,
        "tied": TwoTensor(shared, shared),
    }
    path = tmp_path / "two.pt"
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=new)
    # In legacy files torch itself maps the parts of a wrapper and forgets the wrapper.
    there = there_and_back(path, rule, is_mapped=new)
    assert set(devices(there)) == {rule.partition("=")[2]}
    found = load(remap(there, "*=cpu"))
    assert (found["cpu"], found["device"]) == ("cpu", torch.device("cpu"))


def test_the_way_back_is_the_very_file(tmp_path: Path) -> None:
    """cuda:0 and cuda:1 are written alike, so that nothing tells the way back from the original."""
    from torch.testing._internal.two_tensor import TwoTensor

    path = tmp_path / "two.pt"
    torch.save({"w": TwoTensor(torch.ones(2), torch.ones(2))}, path)
    there = remap(path, "cpu=cuda:0")
    back = remap(remap(there, "cuda:0=cuda:1"), "cuda:1=cuda:0")
    assert back.read_bytes() == there.read_bytes()


def test_one_wrapper_of_several_moves(tmp_path: Path) -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    path = tmp_path / "two.pt"
    torch.save(
        {"a": TwoTensor(torch.ones(2), torch.ones(2)), "b": TwoTensor(torch.zeros(2), torch.ones(2))}, path
    )
    copy = remap(path, "path:a@cuda:1")
    assert devices(copy) == ["cuda:1"] * 3 + ["cpu"] * 3
    assert_same(load(path), load(copy, map_location="cpu"))


# --- distributed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", WAYS)
def test_a_distributed_tensor_moves_and_its_mesh_stays(
    tmp_path: Path, process_group: None, rule: str
) -> None:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Shard

    mesh = DeviceMesh("cpu", [0, 1])
    sharded = DTensor.from_local(torch.arange(6.0).reshape(2, 3), mesh, [Shard(0)], run_check=False)
    path = tmp_path / "dtensor.pt"
    torch.save({"w": sharded, "p": torch.nn.Parameter(sharded)}, path)
    there = remap(path, rule, move_all=True)
    to = rule.partition("=")[2]
    for row in open_checkpoint(str(there)).tensors:  # the ranks of the mesh are on the CPU for good
        assert row.device == ("cpu" if row.keys[-1] == "._rank_map" else to)
    for found in (load(there, map_location="cpu"), load(remap(there, "*=cpu"))):
        assert found["w"].device_mesh.device_type == "cpu"
        assert found["w"].placements == sharded.placements
        assert torch.equal(found["w"].to_local(), sharded.to_local())
        assert isinstance(found["p"], torch.nn.Parameter)
        assert found["p"].device.type == found["p"].to_local().device.type == "cpu"


@pytest.mark.parametrize("rule", WAYS)
def test_a_sharded_tensor_moves_with_its_shards(tmp_path: Path, process_group: None, rule: str) -> None:
    path = CORPUS / "dist" / "sharded_tensor.pt"
    copy = tmp_path / "in.pt"
    copy.write_bytes(path.read_bytes())
    there = remap(copy, rule, move_all=True)
    checkpoint = open_checkpoint(str(there))
    to = rule.partition("=")[2]
    assert {row.device for row in checkpoint.tensors} == {row.device for row in checkpoint.storages} == {to}
    assert {hidden.device for hidden in checkpoint.hidden_devices} == {"cpu"}  # where shards are placed
    before = open_checkpoint(str(path))
    assert open_checkpoint(str(remap(there, "*=cpu"))).tensors == before.tensors


def test_devices_of_a_sharding_spec_are_the_user_s(tmp_path: Path, process_group: None) -> None:
    path = tmp_path / "in.pt"
    path.write_bytes((CORPUS / "dist" / "sharding_spec_cuda.pt").read_bytes())
    assert pickle_equal(remap(path, "*=cpu"), path)
    placements = load(remap(path, "*=cpu"))["spec"].placements
    assert [str(place.device()) for place in placements] == ["cuda:0", "cuda:1"]
    checkpoint = open_checkpoint(str(path))
    plan = with_hidden(checkpoint, plan_remap(checkpoint, [parse_rule("cuda:1=cpu")]))
    export_copy(str(path), tmp_path / "chosen.pt", plan)
    placements = load(tmp_path / "chosen.pt")["spec"].placements
    assert [str(place.device()) for place in placements] == ["cuda:0", "cpu"]


def pickle_equal(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


# --- others made of parts -----------------------------------------------------------------------------------


def test_nested_tensors_keep_their_sizes_on_the_cpu(tmp_path: Path) -> None:
    path = tmp_path / "nested.pt"
    torch.save({"n": torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])}, path)
    there = remap(path, "*=cuda:0", move_all=True)
    assert devices(there) == ["cuda:0", "cuda:0", "cpu", "cpu", "cpu"]
    assert_same(load(path), load(there, map_location="cpu"))
    assert_same(load(path), load(remap(there, "*=cpu")))


@table("name", ["sparse", "quantized", "nested", "math_bits", "new_dtypes", "views"])
def test_parts_stay_together(tmp_path: Path, name: str) -> None:
    path = tmp_path / "in.pt"
    path.write_bytes((CORPUS / "zip" / f"{name}.pt").read_bytes())
    there_and_back(path, "cpu=cuda:3")

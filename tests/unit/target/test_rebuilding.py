"""What cannot be made on a device though its data got there; the texts are torch's where it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.model.checkpoint import HiddenDevice, HiddenPlace
from inspector.target.call import BAD_MAP, LoadCall
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import Landing, rebuild_failure
from tests.unit.model.making import saved
from tests.unit.report.rows import checkpoint, tensor

GPU = Profile(id="cuda:1", label="1 GPU", accelerators=(("cuda", 1),))
GENERATOR = HiddenDevice(path="g", device="cpu", what=HiddenPlace.GENERATOR)


def failure_of(found, target: Profile = CPU_ONLY, **how: object):
    return rebuild_failure(found, Landing("zip", target, LoadCall(**how)))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["by tensor", "by channel", "nested", "plain"])
def test_meta_against_torch(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    scales, zeros = torch.ones(2), torch.zeros(2, dtype=torch.int)
    value = {
        "by tensor": lambda: torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8),
        "by channel": lambda: torch.quantize_per_channel(torch.ones(2, 2), scales, zeros, 0, torch.quint8),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "plain": lambda: torch.ones(2),
    }[kind]()
    ours = failure_of(saved(tmp_path, {"a": torch.ones(1), "b": value}), map_location="meta")
    try:
        torch.load(tmp_path / "file.pt", map_location="meta", weights_only=False)
    except NotImplementedError as error:  # torch has no such function for meta: what we foretell
        assert ours is not None
        assert ours[0].path == "b"
        assert ours[1][0] == BAD_MAP
        assert f"NotImplementedError: {error}".startswith(ours[1][1])  # noqa: PT017 - it may also load
    else:
        assert ours is None
        assert kind == "plain"


def test_a_generator_s_state_belongs_on_the_cpu() -> None:
    found = checkpoint(
        tensor("w", storage="0"),
        tensor("g", ".state", 2, storage="1"),
        hidden_devices=(GENERATOR,),
    )
    failure = failure_of(found, GPU, map_location="cuda")
    assert failure is not None
    assert (failure[0].path, failure[1][0]) == ("g/.state/2", "rng-off-cpu")
    assert failure_of(found, GPU) is None
    assert failure_of(found, CPU_ONLY, map_location="cuda") is None  # stopped before, by the storage


def test_a_quantized_composite_is_told_by_its_parts() -> None:
    found = checkpoint(tensor("q", dtype="qint8", layout="sparse_coo", stride=None, device="cpu"))
    assert failure_of(found, map_location="meta") is None

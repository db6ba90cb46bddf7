"""Rules that match nothing are refused, unless they ask for whatever there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.remap.plan import refuse_unmatched
from inspector.remap.rules import parse_rule
from tests.builders.archives import archive
from tests.builders.pickles import call, dict_, number, proto, state_dict, storage, stream, tensor, text
from tests.sweep import table

Open = Callable[..., Checkpoint]


@pytest.fixture
def open_with(tmp_path: Path) -> Open:
    """Open a checkpoint with a tensor on each of these devices."""

    def open_with(*devices: str) -> Checkpoint:
        pairs = [(str(number), device) for number, device in enumerate(devices)]
        root = state_dict(**{f"t{key}": tensor(storage(key, location=at), 2) for key, at in pairs})
        path = tmp_path / "file.pt"
        path.write_bytes(archive(root, {key: bytes(8) for key, _ in pairs}))
        return open_checkpoint(str(path))

    return open_with


@table("devices", [(), ("cpu",), ("cuda:0", "mps"), ("strange9",)])
@table("rule", ["*=cpu", "cuda:*=cpu", "xpu:*=cpu"])
def test_rules_for_whatever_there_is_may_find_nothing(open_with: Open, devices, rule) -> None:
    refuse_unmatched([parse_rule(rule)], open_with(*devices))


@table(
    ("devices", "rule"),
    [
        (("cuda:0",), "cuda:0=cpu"),
        (("mps",), "mps:0=cpu"),
        (("strange9",), "strange9=cpu"),
        (("strange:9",), "strange:*=cpu"),
        (("cpu",), "path:t0@mps"),
        (("cpu",), "path:**@mps"),
        (("cpu",), "dtype:float32@mps"),
        (("cpu",), "role:parameter@mps"),
    ],
)
def test_rules_that_match_pass(open_with: Open, devices, rule) -> None:
    refuse_unmatched([parse_rule("*=cpu"), parse_rule(rule)], open_with(*devices))


@table(
    ("devices", "rule", "said"),
    [
        (("cuda:0",), "cuda0=cpu", "did you mean cuda:0=cpu[?] the file has cuda:0"),
        (("cuda:0",), "CUDA-0=cpu", "did you mean cuda:0=cpu"),
        (("cuda:0",), "cdua:0=cpu", "did you mean cuda:0=cpu"),
        (("cpu",), "cdua:*=cpu", r"did you mean cuda:[*]=cpu"),
        (("cuda:0",), "cuda:1=cpu", "did you mean cuda:0=cpu"),
        (("cuda:0",), "elsewhere=cpu", "the file has cuda:0; '[*]' stands for all"),
        ((), "cuda:0=cpu", "the file has no tensors"),
        (tuple(f"cuda:{at}" for at in range(9)), "xpu:3=cpu", "cuda:5 and 3 more"),
        (("cpu",), "path:t1@mps", "no tensor of the file has this path: path:t1@mps"),
        (("cpu",), "dtype:int8@mps", "has this dtype"),
        (("cpu",), "role:rng@mps", "has this role"),
    ],
)
def test_others_are_refused_with_what_was_meant(open_with: Open, devices, rule, said) -> None:
    with pytest.raises(PlanError, match=said):
        refuse_unmatched([parse_rule(rule)], open_with(*devices))


def test_devices_that_are_values_count(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    root = dict_((text("d"), call("torch.device", text("cuda"), number(3))))
    path.write_bytes(archive(stream(proto(), root), {}))
    refuse_unmatched([parse_rule("cuda:3=cpu")], open_checkpoint(str(path)))

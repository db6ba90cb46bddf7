"""Devices that no map_location reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.model.roles.hidden import hidden_devices
from inspector.pickles.values import Call, Value
from tests.builders.pickles import list_, name, number, op, text
from tests.sweep import table
from tests.unit.model.making import built, by_hand, call, pairs, root_of, saved


def found(value: Value) -> list[tuple[str, str]]:
    assert isinstance(value, Call)
    return hidden_devices(value)


MESH = "torch.distributed.device_mesh.DeviceMesh"
PARALLEL = name("torch.nn.parallel.data_parallel.DataParallel") + op("EMPTY_TUPLE") + op("NEWOBJ")


@table(
    ("made", "expected"),
    [
        (call("torch.device", text("cuda"), number(1)), [("cuda:1", "torch.device")]),
        (call("torch.device"), [("?", "torch.device")]),
        (call("torch._C.Generator", call("torch.device", text("cuda"))), [("cuda", "torch.Generator")]),
        (call("torch._C.Generator"), [("cpu", "torch.Generator")]),
        (name("torch._C.Generator") + number(1) + op("REDUCE"), [("cpu", "torch.Generator")]),
        (built(call(MESH), pairs(_device_type=text("cuda"))), [("cuda", "DeviceMesh")]),
        (built(call(MESH), pairs(_device_type=number(1))), []),
        (call(MESH), []),
        (
            built(
                PARALLEL, pairs(device_ids=list_(number(0), number(1), number(-1), number(5000), text("x")))
            ),
            [("cuda:0", "DataParallel"), ("cuda:1", "DataParallel")],
        ),
        (built(PARALLEL, pairs(device_ids=op("NONE"))), []),
        (call("a.B", text("cuda:0")), []),
    ],
)
def test_calls_that_name_a_device(made: bytes, expected: list[tuple[str, str]]) -> None:
    assert found(root_of(made)) == expected


@pytest.mark.torch
def test_places_are_told(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    checkpoint = saved(
        tmp_path,
        {
            "device": torch.device("cuda:1"),
            "pair": (torch.device("mps"), 1),
            "g": torch.Generator(),
            "a": "cuda",
        },
    )
    assert [(row.path, row.device, row.what) for row in checkpoint.hidden_devices] == [
        ("device", "cuda:1", "torch.device"),
        ("pair/0", "mps", "torch.device"),
        ("g", "cpu", "torch.Generator"),
    ]


def test_devices_inside_of_a_wrapper_are_found() -> None:
    shard = built(call("my.Shard"), pairs(device=call("torch.device", text("cuda"), number(3))))
    checkpoint = by_hand(pairs(w=list_(shard, number(1))))
    assert [row.path for row in checkpoint.hidden_devices] == ["w/0/.device"]

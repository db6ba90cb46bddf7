from __future__ import annotations

import json

import pytest

from inspector.containers.pt2 import (
    Meta,
    device_of,
    devices_in_graph,
    parse_json,
    parse_payloads,
)
from inspector.errors import ContainerError
from tests.builders.exports import config as listed
from tests.builders.exports import graph, meta, payload


def test_weights_are_read_as_they_are_written() -> None:
    rows = listed(w=payload("weight_0", 2, 3, device="cuda", index=1), b=payload("weight_0", is_param=False))
    first, second = parse_payloads(rows, "x")
    assert (first.name, first.record, first.is_parameter, first.is_pickled) == ("w", "weight_0", True, False)
    assert first.meta == Meta("float32", 4, (2, 3), (3, 1), 0, False, "cuda:1")
    assert (second.is_parameter, second.meta) == (False, Meta("float32", 4, (), (), 0, False, "cpu"))


def test_what_is_no_plain_tensor_has_no_description() -> None:
    odd = [
        {"dtype": 0},
        {"dtype": "7"},
        {"layout": 1},
        {"sizes": [{"as_expr": "s0"}]},
        {"sizes": [{"as_int": -1}]},
        {"sizes": [{"as_int": 1 << 70}]},
        {"sizes": [{"as_int": 1}] * 100},
        {"sizes": None},
        {"strides": []},
        {"storage_offset": {"as_int": -1}},
        {"storage_offset": None},
        {"device": {"type": "\x1b[31m"}},
        {"device": None},
    ]
    rows = [{"path_name": "r", "tensor_meta": {**meta(2), **one}} for one in odd]
    found = [parse_payloads(listed(w=row), "x")[0].meta for row in rows]
    assert found == [None] * len(odd)
    assert parse_payloads(listed(w={"path_name": "r"}), "x")[0].meta is None


def test_devices_are_texts() -> None:
    cases = [({"type": "cuda", "index": 0}, "cuda:0"), ({"type": "cpu", "index": None}, "cpu")]
    cases += [({"type": "cuda", "index": -1}, "cuda"), ({"type": "x" * 99, "index": 0}, None), ("cuda", None)]
    assert [device_of(row) for row, _ in cases] == [text for _, text in cases]


def test_devices_in_graphs_are_told_with_their_nodes() -> None:
    assert list(devices_in_graph(json.loads(graph("cuda", "cpu")))) == [
        ("cuda:0", "zeros_0 = torch.ops.aten.zeros.default"),
        ("cpu:0", "zeros_1 = torch.ops.aten.zeros.default"),
    ]
    for broken in (None, [], {"graph_module": {"graph": {"nodes": 3}}}):
        assert list(devices_in_graph(broken)) == []
    assert list(devices_in_graph({"graph_module": {"graph": {"nodes": [{"inputs": 1}, 2]}}})) == []


def test_what_is_not_read_is_said() -> None:
    for data in (b"", b"{", b"[" * 100_000, b"\xff", b"1" * 5000):
        with pytest.raises(ContainerError, match="the JSON in the archive cannot be read"):
            parse_json(data, "x")
    with pytest.raises(ContainerError, match="the list of weights cannot be read"):
        parse_payloads(b"{}", "x")
    with pytest.raises(ContainerError, match="a weight has no record") as caught:
        parse_payloads(listed(w={"path_name": 3}), "x")
    assert caught.value.where == "x: w"

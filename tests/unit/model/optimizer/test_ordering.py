"""The order of a model whose file sorted its names, against modules that register them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.optimizer import ordering
from inspector.model.optimizer.naming import Names
from inspector.model.optimizer.ordering import name_in_any_order, registered_orders
from inspector.model.optimizer.parameters import Parameters
from tests.unit.model.optimizer.test_naming import owned

torch = pytest.importorskip("torch")


def orders(names: Sequence[str], kind: str = "") -> list[list[str]]:
    shapes = [(place,) for place in range(len(names))]
    found = registered_orders(Parameters("m", list(names), shapes), kind)
    for way in found:  # each keeps its shape
        assert all(names[size] == name for name, (size,) in zip(way.names, way.shapes, strict=True))
    return [way.names for way in found]


def test_numbers_count_up_and_weights_come_before_their_bias() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(12)))
    names = [name for name, _ in model.named_parameters()]
    assert orders(sorted(names)) == [names]
    assert orders(sorted(names)) != [sorted(names)]


def test_parts_stand_together_in_every_order_of_few() -> None:
    names = ["b.0.weight", "b.0.bias", "a.weight", "a.bias", "b.1.weight"]
    found = orders(sorted(names))
    assert len(found) == 2
    assert ["a.weight", "a.bias", "b.0.weight", "b.0.bias", "b.1.weight"] in found
    assert ["b.0.weight", "b.0.bias", "b.1.weight", "a.weight", "a.bias"] in found
    assert len(orders(list("abcd"))) == 24
    assert orders(list("abcde")) == []
    assert orders(["x.a", "x.b", "y.c", "y.d", "y.e", "y.f"]) == []
    # The same parts in each block were registered alike.
    assert len(orders([f"{block}.{part}" for block in range(9) for part in "qk"])) == 2


def test_transformers_are_told_by_their_type() -> None:
    block = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj"]
    rest = ["mlp.up_proj", "mlp.down_proj", "input_layernorm", "post_attention_layernorm"]
    names = [f"model.layers.{n}.{part}.weight" for n in range(11) for part in (*block, *rest)]
    names = ["model.embed_tokens.weight", *names, "model.norm.weight", "lm_head.weight"]
    assert orders(sorted(names), "llama") == [names]
    assert orders(sorted(names), "") == []
    assert orders(sorted(names), "gpt2") == []


def test_types_are_lists_of_parts() -> None:
    text = (Path(ordering.__file__).parent / "orders.json").read_text(encoding="utf-8")
    types = json.loads(text)["types"]
    assert len(types) > 50
    for kind, rows in types.items():
        for row in rows:
            parts = row.split()
            assert len(parts) > 1, kind
            assert len(set(parts)) == len(parts), kind


def test_odd_names_are_sorted_all_the_same() -> None:
    assert orders([]) == [[]]
    assert orders(["a", "a.b", "a.", "."]) != [["a"]]
    assert orders(["0", "00", "1"]) == [["0", "00", "1"]]
    assert len(orders(["9" * 9, "8" * 9])) == 2


def test_too_many_names_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "_MOST_PARAMETERS", 2)
    assert orders(["a", "b"]) != []
    assert orders(["0", "1", "2"]) == []


# --- what several orders say --------------------------------------------------------------------------------

A, B = (4, 4), (2, 2)


def said(groups: list[list[Any]], *models: list[Any]) -> Names:
    ways = [
        [Parameters("m", [f"{name}" for name, _ in model], [shape for _, shape in model])] for model in models
    ]
    (found,) = name_in_any_order([owned(*groups)], ways)
    return found


def test_order_that_fits_alone_names_all() -> None:
    found = said([[A, B]], [("a", A), ("b", B)], [("b", B), ("a", A)])
    assert (found.by_id, found.naming) == ({0: "a", 1: "b"}, "order")


def test_orders_that_fit_equally_well_name_what_they_agree_on() -> None:
    found = said([[A, A, B]], [("a", A), ("c", A), ("b", B)], [("c", A), ("a", A), ("b", B)])
    assert (found.by_id, found.naming) == ({2: "b"}, "partial")
    assert "several orders fit" in found.detail
    found = said([[A, A]], *([(x, A) for x in way] for way in permutations("ab")))
    assert (found.by_id, found.naming) == ({}, "unknown")


def test_order_that_explains_less_contradicts_only_what_it_names() -> None:
    whole = [("a", A), ("c", B), ("b", B)]
    # Of the second order the shapes decide the first parameter alone.
    assert said([[A, B, B]], whole, [("x", A), ("c", B), ("b", B), ("d", B)]).by_id == {1: "c", 2: "b"}
    assert said([[A, B, B]], whole, [("a", A), ("c", B), ("b", B), ("d", B)]).naming == "order"


def test_nothing_fits() -> None:
    assert said([[A]], [("a", B)], [("b", B)]).naming == "unknown"


def test_slots_beside_a_safetensors_file(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(11)))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    checkpoint = open_checkpoint(str(tmp_path / "optimizer.pt"), beside=True)
    names = [name for name, _ in model.named_parameters()]
    assert {tensor.keys[1]: tensor.parameter for tensor in checkpoint.tensors} == dict(enumerate(names))
    assert "model.safetensors" in checkpoint.optimizers[0].detail


@pytest.mark.parametrize(
    ("config", "is_named"),
    [
        (b'{"model_type": "bert"}', True),
        (b'{"model_type": "bert", "text_config": {"model_type": "gpt2"}}', False),
        (b'{"model_type": "none"}', False),
        (b"", False),
        (None, False),
    ],
)
def test_type_of_model_is_read_from_the_configuration(
    config: bytes | None, is_named: bool, tmp_path: Path
) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    parts = ("query", "key", "value")
    attention = torch.nn.ModuleDict({part: torch.nn.Linear(2, 2) for part in parts})
    model = torch.nn.ModuleDict({"self": attention})
    optimizer = torch.optim.Adam(model.parameters())
    sum(layer(torch.ones(1, 2)).sum() for layer in attention.values()).backward()
    optimizer.step()
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    if config is not None:
        (tmp_path / "config.json").write_bytes(config)
    checkpoint = open_checkpoint(str(tmp_path / "optimizer.pt"), beside=True)
    names = [name for name, _ in model.named_parameters()]
    said = {tensor.keys[1]: tensor.parameter for tensor in checkpoint.tensors}
    assert said == (dict(enumerate(names)) if is_named else dict.fromkeys(range(6)))

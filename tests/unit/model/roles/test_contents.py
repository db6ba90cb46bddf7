"""What containers are told to be, from what is in them."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.roles.roles import holds_data
from tests.builders import pickles
from tests.unit.model.making import by_hand, pairs, root_of, saved, storage, view

torch = pytest.importorskip("torch")


def roles(folder: Path, value: Any) -> dict[str, str]:
    return {tensor.path: tensor.role for tensor in saved(folder, value).tensors}


def test_scores_are_no_model_unless_the_key_says_so(tmp_path: Path) -> None:
    score = torch.tensor(0.5)
    found = roles(
        tmp_path,
        {
            "best": {"one.ckpt": score, "two.ckpt": score + 1},
            "state_dict": {"scale": torch.tensor(1.0), "shift": torch.tensor(0.0)},
            "head": {"scale": torch.tensor(1.0), "weight": torch.ones(2)},
        },
    )
    assert found == {
        "best/one.ckpt": "other",
        "best/two.ckpt": "other",
        "state_dict/scale": "parameter",
        "state_dict/shift": "parameter",
        "head/scale": "parameter",
        "head/weight": "parameter",
    }


def test_averaged_model_is_told_by_its_count(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    average = torch.optim.swa_utils.AveragedModel(model)
    assert set(roles(tmp_path, average.state_dict()).values()) == {"ema"}
    assert set(roles(tmp_path, OrderedDict(sorted(average.state_dict().items()))).values()) == {"ema"}
    assert set(roles(tmp_path, {"swa": average})) == {
        "swa/._buffers/n_averaged",
        "swa/._modules/module/._parameters/weight",
        "swa/._modules/module/._parameters/bias",
    }
    assert set(roles(tmp_path, average).values()) == {"ema"}
    # A model that counts something of its own by that name is a model.
    own = {"n_averaged": torch.tensor(1), "weight": torch.ones(2, 2), "bias": torch.ones(2)}
    assert set(roles(tmp_path, own).values()) == {"parameter", "buffer"}


def test_optimizer_is_named_by_averages_only_where_there_is_nothing_else(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    average = torch.optim.swa_utils.AveragedModel(model)
    state = {"ema": average.state_dict(), "optimizer": optimizer.state_dict()}
    alone = saved(tmp_path, state)
    assert alone.optimizers[0].models == ("ema",)
    assert {tensor.parameter for tensor in alone.tensors if tensor.slot} == {
        f"module.{name}" for name, _ in model.named_parameters()
    }
    both = saved(tmp_path, {"model": model.state_dict(), **state})
    assert both.optimizers[0].models == ("model",)
    assert {tensor.role for tensor in both.tensors if tensor.path.startswith("ema/")} == {"ema"}


def test_tensor_beside_the_dictionaries_of_a_module_is_no_weight(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    model.stride = torch.tensor([8.0, 16.0])
    model[0].anchors = torch.ones(3)
    found = roles(tmp_path, model)
    assert found.pop(".stride") == found.pop("._modules/0/.anchors") == "other"
    assert set(found.values()) == {"parameter", "buffer"}


def test_graphs_are_data() -> None:
    mapping = pairs(x=view(), edge_attr=view(storage("1")), weight=view(storage("2")))
    graph = pickles.name("torch_geometric.data.data.Data") + pickles.tuple_() + pickles.op("NEWOBJ")
    store = pickles.dict_((pickles.text("_mapping"), mapping))
    inside = by_hand(graph + pickles.dict_((pickles.text("_store"), store)) + pickles.op("BUILD"))
    assert {tensor.role for tensor in inside.tensors} == {"other"}
    assert {tensor.role for tensor in by_hand(mapping).tensors} == {"parameter"}
    plain = by_hand(pairs(x=view(), edge_index=view(storage("1"))))
    assert {tensor.role for tensor in plain.tensors} == {"other"}


def test_large_mapping_is_not_searched_for_the_names_of_data() -> None:
    few = root_of(pairs(**{f"k{number}": pickles.number(number) for number in range(9)}, edge_index=view()))
    assert holds_data(few, [("edge_index", None)])
    assert not holds_data(few, [("edge_index", None)] * 65)
    assert not holds_data([], [("edge_index", None)])


def test_texts_beside_the_tensors_of_a_safetensors_file_are_no_part_of_the_model(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "adapter.safetensors"
    safetensors.save_file({"prompt_embeddings": torch.ones(2, 3)}, path, metadata={"format": "pt"})
    (tensor,) = open_checkpoint(str(path)).tensors
    assert tensor.role == "parameter"

"""Twelve pairs of files as their writers make them, with labels: all that differs is found, and no more."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from inspector.diff.compare import Wish, compare_paths
from inspector.report.comparing.document import diff_document

Label = tuple[str, str]
"""What differs, and where: the path in the first file, or in the second for what was added."""


def trained(steps: int = 1) -> dict[str, Any]:
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(steps):
        net(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
    return {"model": dict(net.state_dict()), "optimizer": optimizer.state_dict(), "epoch": steps}


def weights() -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in trained()["model"].items()}


def _value(a: Path, b: Path) -> set[Label]:
    one, other = trained(), copy.deepcopy(trained())
    other["model"]["0.weight"][1, 2] += 0.25
    other["optimizer"]["param_groups"][0]["lr"] = 0.001
    other["epoch"] = 2
    torch.save(one, a)
    torch.save(other, b)
    return {("model/0.weight", "values"), ("optimizer/param_groups/0/lr", "value"), ("epoch", "value")}


def _steps(a: Path, b: Path) -> set[Label]:
    torch.save(trained(1), a)
    torch.save(trained(2), b)
    model = {
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "2.weight",
        "2.bias",
        "1.running_mean",
        "1.running_var",
    }
    found = {(f"model/{name}", "values") for name in (*model, "1.num_batches_tracked")}
    slots = {"step", "exp_avg", "exp_avg_sq"}
    return (
        found
        | {(f"optimizer/state/{n}/{slot}", "values") for n in range(6) for slot in slots}
        | {("epoch", "value")}
    )


def _dtype(a: Path, b: Path) -> set[Label]:
    state = weights()
    torch.save(state, a)
    torch.save({name: one.bfloat16() if one.is_floating_point() else one for name, one in state.items()}, b)
    floating = {name for name, one in state.items() if one.is_floating_point()}
    return {(name, "dtype") for name in floating} | {
        (name, "values") for name in floating if not torch.equal(state[name], state[name].bfloat16().float())
    }


def _wrapped(a: Path, b: Path) -> set[Label]:
    state = weights()
    torch.save({f"module._orig_mod.{name}": one for name, one in state.items()}, a)
    torch.save(state, b)
    return {(f"module._orig_mod.{name}", "renamed") for name in state}


def _formats(a: Path, b: Path) -> set[Label]:
    state = weights()
    torch.save({"state_dict": state, "epoch": 3}, a)
    changed = {**state, "2.bias": state["2.bias"] + 1}
    save_file(changed, b)
    return {(f"state_dict/{name}", "renamed") for name in state} | {
        ("state_dict/2.bias", "values"),
        ("epoch", "removed"),
    }


def _legacy(a: Path, b: Path) -> set[Label]:
    torch.save(trained(), a)
    torch.save(trained(), b, _use_new_zipfile_serialization=False)
    return set()


def _shapes(a: Path, b: Path) -> set[Label]:
    state = weights()
    torch.save(state, a)
    head = {
        "2.weight": torch.zeros(5, 6),
        "2.bias": state["2.bias"].reshape(1, 3),
        "3.new": torch.arange(4.0),
    }
    torch.save({**{name: one for name, one in state.items() if name != "1.bias"}, **head}, b)
    return {("2.weight", "shape"), ("2.bias", "shape"), ("1.bias", "removed"), ("3.new", "added")}


def _layouts(a: Path, b: Path) -> set[Label]:
    one = torch.arange(12.0).reshape(3, 4)
    torch.save({"t": one, "s": one.to_sparse(), "v": one[1:], "e": torch.ones(1).expand(50, 3)}, a)
    torch.save({"t": one.t().contiguous().t(), "s": one, "v": one[1:].clone(), "e": torch.ones(50, 3)}, b)
    return {
        ("t", "stride"),
        ("s", "layout"),
        ("s/indices", "removed"),
        ("s/values", "removed"),
        ("e", "stride"),
        ("t, v", "tied"),
    }


def _ties(a: Path, b: Path) -> set[Label]:
    table = torch.randn(6, 3)
    torch.save({"embed": table, "head": table, "other": table.clone()}, a)
    own = table.clone()
    torch.save({"embed": table.clone(), "head": own, "other": own}, b)
    return {("embed, head", "tied"), ("head, other", "tied")}


def _parameters(a: Path, b: Path) -> set[Label]:
    one = torch.randn(3)
    torch.save(
        {"w": torch.nn.Parameter(one), "g": one.clone(), "c": torch.view_as_complex(torch.ones(3, 2))}, a
    )
    torch.save(
        {
            "w": one.clone(),
            "g": one.clone().requires_grad_(),
            "c": torch.view_as_complex(torch.ones(3, 2)).conj(),
        },
        b,
    )
    return {
        ("w", "class"),
        ("w", "requires_grad"),
        ("g", "requires_grad"),
        ("c", "metadata"),
        ("c", "values"),
    }


def _quantized(a: Path, b: Path) -> set[Label]:
    one = torch.quantize_per_tensor(torch.arange(4.0), 0.5, 2, torch.qint8)
    other = torch._make_per_tensor_quantized_tensor(one.int_repr(), 0.25, 2)
    channels = torch.quantize_per_channel(
        torch.eye(2), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.quint8
    )
    torch.save({"q": one, "p": channels, "same": one}, a)
    torch.save({"q": other, "p": channels, "same": one}, b)
    return {("q", "metadata"), ("q, same", "tied")}


def _numbers(a: Path, b: Path) -> set[Label]:
    nan = torch.tensor([0x7FC00001, 0x3F800000], dtype=torch.int32).view(torch.float32)
    torch.save({"n": nan, "z": torch.tensor([0.0, 1.0]), "i": torch.tensor([1.0, float("inf")])}, a)
    torch.save({"n": -nan.abs(), "z": torch.tensor([-0.0, 1.0]), "i": torch.tensor([1.0, float("nan")])}, b)
    return {("n", "values"), ("i", "values")}


PAIRS: tuple[Callable[[Path, Path], set[Label]], ...] = (
    _value,
    _steps,
    _dtype,
    _wrapped,
    _formats,
    _legacy,
    _shapes,
    _layouts,
    _ties,
    _parameters,
    _quantized,
    _numbers,
)


def found_between(a: Path, b: Path) -> set[Label]:
    document = diff_document(compare_paths(str(a), str(b), Wish(mode="numbers")))
    found = {(path, "added") for path in document["added"]} | {
        (path, "removed") for path in document["removed"]
    }
    found |= {(row["a"], "renamed") for row in document["renamed"]}
    found |= {(row["path"], what) for row in document["changed"] for what in row["what"]}
    found |= {(", ".join(row["paths"]), "tied") for row in document["sharing"]}
    assert document["equal"] == (not found)
    assert document["runs"] == []
    return found


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_precision_and_recall_are_one(tmp_path: Path) -> None:
    assert len(PAIRS) == 12
    right = labels = answers = 0
    wrong = []
    for number, make in enumerate(PAIRS):
        a, b = (
            tmp_path / f"{number}a.pt",
            tmp_path / f"{number}b.{'safetensors' if make is _formats else 'pt'}",
        )
        expected = make(a, b)
        found = found_between(a, b)
        right += len(found & expected)
        labels += len(expected)
        answers += len(found)
        if found != expected:
            wrong.append(
                f"{make.__name__}: missed {sorted(expected - found)}, said {sorted(found - expected)}"
            )
    assert not wrong, "\n".join(wrong)
    assert labels > 70
    assert right / answers == right / labels == 1

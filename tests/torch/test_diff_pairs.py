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
Pair = tuple[Any, Any, set[Label]]


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


def _value() -> Pair:
    one, other = trained(), copy.deepcopy(trained())
    other["model"]["0.weight"][1, 2] += 0.25
    other["optimizer"]["param_groups"][0]["lr"] = 0.001
    other["epoch"] = 2
    a = one
    b = other
    return a, b, {("model/0.weight", "values"), ("optimizer/param_groups/0/lr", "value"), ("epoch", "value")}


def _steps() -> Pair:
    one, other = trained(1), trained(2)
    found = {(f"model/{name}", "values") for name in one["model"]}
    slots = {"step", "exp_avg", "exp_avg_sq"}
    found |= {(f"optimizer/state/{n}/{slot}", "values") for n in range(6) for slot in slots}
    return one, other, found | {("epoch", "value")}


def _dtype() -> Pair:
    state = weights()
    other = {name: one.bfloat16() if one.is_floating_point() else one for name, one in state.items()}
    floating = {name for name, one in state.items() if one.is_floating_point()}
    lossy = {name for name in floating if not torch.equal(state[name], other[name].float())}
    return state, other, {(name, "dtype") for name in floating} | {(name, "values") for name in lossy}


def _wrapped() -> Pair:
    state = weights()
    wrapped = {f"module._orig_mod.{name}": one for name, one in state.items()}
    return wrapped, state, {(name, "renamed") for name in wrapped}


def _formats() -> Pair:
    state = weights()
    changed = {**state, "2.bias": state["2.bias"] + 1}
    found = {(f"state_dict/{name}", "renamed") for name in state}
    found |= {("state_dict/2.bias", "values"), ("epoch", "removed")}
    return {"state_dict": state, "epoch": 3}, changed, found


def _legacy() -> Pair:
    return trained(), trained(), set()


def _shapes() -> Pair:
    state = weights()
    head = {
        "2.weight": torch.zeros(5, 6),
        "2.bias": state["2.bias"].reshape(1, 3),
        "3.new": torch.arange(4.0),
    }
    other = {**{name: one for name, one in state.items() if name != "1.bias"}, **head}
    found = {("2.weight", "shape"), ("2.bias", "shape"), ("1.bias", "removed"), ("3.new", "added")}
    return state, other, found


def _layouts() -> Pair:
    one = torch.arange(12.0).reshape(3, 4)
    a = {"t": one, "s": one.to_sparse(), "v": one[1:], "e": torch.ones(1).expand(50, 3)}
    b = {"t": one.t().contiguous().t(), "s": one, "v": one[1:].clone(), "e": torch.ones(50, 3)}
    return (
        a,
        b,
        {
            ("t", "stride"),
            ("s", "layout"),
            ("s/indices", "removed"),
            ("s/values", "removed"),
            ("e", "stride"),
            ("t, v", "tied"),
        },
    )


def _ties() -> Pair:
    table = torch.randn(6, 3)
    a = {"embed": table, "head": table, "other": table.clone()}
    own = table.clone()
    b = {"embed": table.clone(), "head": own, "other": own}
    return a, b, {("embed, head", "tied"), ("head, other", "tied")}


def _parameters() -> Pair:
    one = torch.randn(3)
    a = {"w": torch.nn.Parameter(one), "g": one.clone(), "c": torch.view_as_complex(torch.ones(3, 2))}
    b = {
        "w": one.clone(),
        "g": one.clone().requires_grad_(),
        "c": torch.view_as_complex(torch.ones(3, 2)).conj(),
    }
    return (
        a,
        b,
        {("w", "class"), ("w", "requires_grad"), ("g", "requires_grad"), ("c", "metadata"), ("c", "values")},
    )


def _quantized() -> Pair:
    one = torch.quantize_per_tensor(torch.arange(4.0), 0.5, 2, torch.qint8)
    other = torch._make_per_tensor_quantized_tensor(one.int_repr(), 0.25, 2)
    channels = torch.quantize_per_channel(
        torch.eye(2), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.quint8
    )
    a = {"q": one, "p": channels, "same": one}
    b = {"q": other, "p": channels, "same": one}
    return a, b, {("q", "metadata"), ("q, same", "tied")}


def _numbers() -> Pair:
    nan = torch.tensor([0x7FC00001, 0x3F800000], dtype=torch.int32).view(torch.float32)
    a = {"n": nan, "z": torch.tensor([0.0, 1.0]), "i": torch.tensor([1.0, float("inf")])}
    b = {"n": -nan.abs(), "z": torch.tensor([-0.0, 1.0]), "i": torch.tensor([1.0, float("nan")])}
    return a, b, {("n", "values"), ("i", "values")}


PAIRS: tuple[Callable[[], Pair], ...] = (
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
        a, b = tmp_path / f"{number}a.pt", tmp_path / f"{number}b.pt"
        one, other, expected = make()
        torch.save(one, a)
        if make is _formats:
            b = b.with_suffix(".safetensors")
            save_file(other, b)
        else:
            torch.save(other, b, _use_new_zipfile_serialization=make is not _legacy)
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

"""Optimizers that were pickled whole, and fastai's: whose their slots are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.model.optimizer import naming
from inspector.model.optimizer.naming import held_views, names_held
from inspector.model.optimizer.parameters import Parameters
from inspector.model.optimizer.state_dict import Groups, OptimizerDraft
from inspector.model.tensors.views import Known
from tests.builders import pickles
from tests.unit.model.making import root_of, saved

torch = pytest.importorskip("torch")


def trained(kind: Any = None, **options: Any) -> tuple[Any, Any]:
    """Return a model all of whose layers have one shape, so that no shape tells anything."""
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(3)))
    optimizer = (kind or torch.optim.Adam)(model.parameters(), **options)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    model.zero_grad()
    return model, optimizer


def names(checkpoint: Any) -> dict[str, str | None]:
    return {tensor.path: tensor.parameter for tensor in checkpoint.tensors if tensor.slot == "exp_avg"}


@pytest.mark.parametrize("whole", [False, True])
def test_slots_get_the_names_of_the_parameters_themselves(whole: bool, tmp_path: Path) -> None:
    model, optimizer = trained()
    optimizer.param_groups[0]["params"].reverse()
    checkpoint = saved(tmp_path, {"m": model if whole else model.state_dict(), "optimizer": optimizer})
    expected = [name for name, _ in model.named_parameters()]
    assert list(names(checkpoint).values()) == expected
    assert list(names(checkpoint)) == [f"optimizer/.state/Parameter {n}/exp_avg" for n in range(6)]
    (row,) = checkpoint.optimizers
    assert (row.naming, row.models, row.parameters, row.with_state) == ("names", ("m",), 6, 6)
    assert "6 of 6 are those of m" in row.detail
    roles = {tensor.path: tensor.role for tensor in checkpoint.tensors}
    assert roles["optimizer/.param_groups/0/params/0"] == "parameter"
    assert roles["optimizer/.state/Parameter 0/step"] == "optimizer"
    steps = [tensor for tensor in checkpoint.tensors if tensor.slot == "step"]
    assert len(steps) == 6
    assert all(tensor.on_cpu_by_design for tensor in steps)


def test_slots_of_parameters_that_no_model_has_stay_without_names(tmp_path: Path) -> None:
    model, optimizer = trained()
    other, _ = trained()
    for state in (optimizer, {"model": other.state_dict(), "optimizer": optimizer}):
        checkpoint = saved(tmp_path, state)
        assert set(names(checkpoint).values()) == {None}
        assert checkpoint.optimizers[0].naming == "unknown"
        assert "no model in this file has them" in checkpoint.optimizers[0].detail
    half = {name: item for name, item in model.state_dict().items() if name.startswith("1.")}
    checkpoint = saved(tmp_path, {"model": other.state_dict(), "part": half, "optimizer": optimizer})
    assert [name for name in names(checkpoint).values() if name] == ["1.weight", "1.bias"]
    assert checkpoint.optimizers[0].naming == "partial"


def test_parameters_without_state_are_counted(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    optimizer = torch.optim.Adam([{"params": list(model[0].parameters())}, {"params": model[1].weight}])
    model[1](torch.ones(1, 2)).sum().backward()
    optimizer.step()
    checkpoint = saved(tmp_path, {"model": model, "optimizer": optimizer})
    assert list(names(checkpoint).values()) == ["1.weight"]
    (row,) = checkpoint.optimizers
    assert (row.parameters, row.with_state, row.groups) == (3, 1, (2, 1))


def test_what_is_held_and_no_tensor_is_passed_over() -> None:
    bare = root_of(pickles.number(1))
    draft = OptimizerDraft(keys=(), path="", listed=Groups([]), state_ids=[], held={"a": bare})
    assert held_views(draft, Known({})) == {}
    model = Parameters("m", ["w", "v"], [(2,), (2,)], ("m",), (("0", 0, 2), None))
    assert names_held({"a": ("0", 0, 2), "b": ("1", 0, 2)}, model) == {"a": "w"}


def test_fastai_lists_its_slots_in_the_order_of_the_model(tmp_path: Path) -> None:
    shapes = {"a.weight": (3, 2), "a.bias": (3,), "b.weight": (1, 3), "b.bias": (1,)}
    model = {name: torch.ones(shape) for name, shape in shapes.items()}
    slots = [{"exp_avg": torch.ones(shape), "step": 2} for shape in shapes.values()]
    state = {"model": model, "opt": {"state": [{}, *slots[1:]], "hypers": [{"lr": 0.1}]}}
    checkpoint = saved(tmp_path, state)
    assert names(checkpoint) == {
        "opt/state/1/exp_avg": "a.bias",
        "opt/state/2/exp_avg": "b.weight",
        "opt/state/3/exp_avg": "b.bias",
    }
    (row,) = checkpoint.optimizers
    assert (row.naming, row.parameters, row.with_state) == ("order", 4, 3)
    state["opt"]["state"].reverse()
    assert set(names(saved(tmp_path, state)).values()) == {None}


def test_more_models_than_may_be_compared_name_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimizer = trained()
    # Looking for a model with all of the optimizer's parameters costs 7, looking at its slots 14.
    monkeypatch.setattr(naming, "MOST_COMPARED", 7 + 14 + 12)
    checkpoint = saved(tmp_path, {"m": model.state_dict(), "optimizer": optimizer})
    assert set(names(checkpoint).values()) == {None}
    assert "too many" in checkpoint.optimizers[0].detail
    monkeypatch.setattr(naming, "MOST_COMPARED", 7 + 14 + 13)
    checkpoint = saved(tmp_path, {"m": model.state_dict(), "optimizer": optimizer})
    assert None not in names(checkpoint).values()

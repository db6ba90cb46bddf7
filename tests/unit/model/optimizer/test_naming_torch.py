# ruff: noqa: PLW0108 - the table of optimizers reads as calls
"""Optimizer slots against torch: a name is the truth, or there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from tests.sweep import put_through, table
from tests.unit.model.making import saved

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.torch


def conv_net() -> Any:
    """Convolution, norm and two linears: no two parameters of one shape in different orders."""
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 5), nn.Linear(5, 3)
    )


def square_net(layers: int = 3) -> Any:
    """Every layer has the same shapes."""
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers)))


def shapes_net() -> Any:
    """Every shape occurs once."""
    return nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 7), nn.Linear(7, 2))


def train(model: Any, optimizer: Any, steps: int = 2) -> None:
    for _ in range(steps):

        def closure() -> Any:
            optimizer.zero_grad()
            loss = sum((parameter**2).sum() for parameter in model.parameters() if parameter.requires_grad)
            loss.backward()
            return loss

        optimizer.step(closure)


def truth(model: Any, optimizer: Any) -> dict[int, str]:
    """The name of each number in the optimizer's state dict."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    given = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {number: names.get(id(parameter), "<not of this model>") for number, parameter in enumerate(given)}


def check(checkpoint: Checkpoint, names: dict[int, str], optimizer: str = "optimizer") -> tuple[int, int]:
    """Compare every slot with the truth; give how many are named, of how many."""
    slots = [
        tensor
        for tensor in checkpoint.tensors
        if tensor.slot is not None and tensor.keys[0] == optimizer and tensor.part_of is None
    ]
    for tensor in slots:
        assert tensor.role == "optimizer"
        assert tensor.parameter in {None, names[tensor.keys[2]]}, tensor.path
        assert tensor.slot == "/".join(str(key) for key in tensor.keys[3:])
    return sum(tensor.parameter is not None for tensor in slots), len(slots)


OPTIMIZERS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "Adam": lambda given: torch.optim.Adam(given),
    "Adam-amsgrad": lambda given: torch.optim.Adam(given, amsgrad=True),
    "Adam-fused": lambda given: torch.optim.Adam(given, fused=True),
    "AdamW": lambda given: torch.optim.AdamW(given),
    "AdamW-foreach": lambda given: torch.optim.AdamW(given, foreach=True),
    "NAdam": lambda given: torch.optim.NAdam(given),
    "RAdam": lambda given: torch.optim.RAdam(given),
    "Adamax": lambda given: torch.optim.Adamax(given),
    "Adadelta": lambda given: torch.optim.Adadelta(given),
    "Adagrad": lambda given: torch.optim.Adagrad(given),
    "Adafactor": lambda given: torch.optim.Adafactor(given),
    "SGD-momentum": lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.9),
    "RMSprop": lambda given: torch.optim.RMSprop(given, momentum=0.9, centered=True),
    "Rprop": lambda given: torch.optim.Rprop(given),
    "ASGD": lambda given: torch.optim.ASGD(given),
}


@pytest.mark.wide
@table("kind", OPTIMIZERS)
@table("net", [conv_net, square_net, shapes_net])
def test_one_group_of_all_parameters_is_named_wholly(
    kind: str, net: Callable[[], Any], tmp_path: Path
) -> None:
    model = net()
    optimizer = OPTIMIZERS[kind](model.parameters())
    train(model, optimizer)
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    named, of = check(checkpoint, truth(model, optimizer))
    assert named == of > 0
    (row,) = checkpoint.optimizers
    assert (row.naming, row.path) == ("order", "optimizer")
    assert row.parameters == row.with_state == len(list(model.parameters()))
    assert row.capturable == ("fused" in kind)


def test_lbfgs_keeps_one_state_for_all(tmp_path: Path) -> None:
    for model in (shapes_net(), nn.Linear(1, 4, bias=False)):
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        train(model, optimizer)
        checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        named, of = check(checkpoint, truth(model, optimizer))
        assert named == 0 < of
        assert checkpoint.optimizers[0].naming == "unknown"
        assert "together" in checkpoint.optimizers[0].detail


# --- several groups -----------------------------------------------------------------------------------------


def decay_groups(model: Any, *, ordered: Callable[[list[Any]], list[Any]] = list) -> list[dict[str, Any]]:
    decay = [item for item in model.named_parameters() if item[1].ndim >= 2]
    others = [item for item in model.named_parameters() if item[1].ndim < 2]
    return [
        {"params": [parameter for _, parameter in ordered(decay)], "weight_decay": 0.1},
        {"params": [parameter for _, parameter in ordered(others)], "weight_decay": 0.0},
    ]


ORDERS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "as in the model": list,
    "sorted by name": lambda items: sorted(items, key=lambda item: item[0]),
    "backwards": lambda items: items[::-1],
    "by size": lambda items: sorted(items, key=lambda item: item[1].numel()),
}


@table("order", ORDERS)
@table("net", [conv_net, shapes_net, square_net])
def test_groups_in_other_orders_keep_what_the_shapes_tell(
    order: str, net: Callable[[], Any], tmp_path: Path
) -> None:
    model = net()
    optimizer = torch.optim.AdamW(decay_groups(model, ordered=ORDERS[order]))
    train(model, optimizer)
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    row = checkpoint.optimizers[0]
    if (net, order) in {(conv_net, "sorted by name"), (square_net, "backwards")}:  # one shape changes places
        assert (row.naming, row.by_place) == ("recipe", True)
        assert "each in the model's order" in row.detail
        return
    named, of = check(checkpoint, truth(model, optimizer))
    if net is shapes_net:
        assert (row.naming, named) == ("shape", of)
    elif order == "as in the model" or net is square_net:  # whose names and sizes are in the model's order
        assert (row.naming, named) == ("recipe", of)
    else:
        assert row.naming == "partial"
        assert 0 < named < of


def test_recipes_that_disagree_leave_what_they_agree_on(tmp_path: Path) -> None:
    """Sorted by name, as minGPT does, the layers 10 and 11 come before 2: shapes tell neither."""
    model = square_net(12)
    optimizer = torch.optim.AdamW(decay_groups(model))
    train(model, optimizer)
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    assert check(checkpoint, truth(model, optimizer)) == (12, 72)
    assert checkpoint.optimizers[0].naming == "partial"


def test_what_follows_no_custom_gets_the_names_of_the_custom_and_says_so(tmp_path: Path) -> None:
    """Two layers of one shape that somebody swapped: nothing in the file tells, so the recipe is named."""
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3))
    parameters = list(model.parameters())
    parameters[2], parameters[4] = parameters[4], parameters[2]
    optimizer = torch.optim.Adam([{"params": parameters[::2]}, {"params": parameters[1::2]}])
    train(model, optimizer)
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    (row,) = checkpoint.optimizers
    assert row.naming == "recipe"
    assert "dimensions in one group" in row.detail


class Layers(nn.Module):
    """A transformer in small: an embedding, twelve equal layers, a norm and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 4)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(4, 2, 6) for _ in range(12))
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 11)


class Sided(nn.Module):
    """A backbone of equal layers and a head of the same shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.backbone = square_net(3)
        self.head = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def split(model: Any, *keys: Callable[[str, Any], Any], by_name: bool = False) -> list[dict[str, Any]]:
    """Groups of those parameters for which the keys say the same, in the order in which they begin."""
    groups: dict[Any, list[Any]] = {}
    named = list(model.named_parameters())
    for name, parameter in sorted(named) if by_name else named:
        groups.setdefault(tuple(key(name, parameter) for key in keys), []).append(parameter)
    return [{"params": group} for group in groups.values()]


def layer_of(name: str, _: Any) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[1].isdigit() else parts[0]


def is_decayed(name: str, parameter: Any) -> bool:
    return parameter.ndim > 1 and not name.endswith("bias")


def is_decayed_by_mingpt(name: str, _: Any) -> bool:
    return not (name.endswith("bias") or "norm" in name or "embed" in name)


def kind_of(name: str, parameter: Any) -> str:
    return "bias" if name.endswith("bias") else "weight" if parameter.ndim > 1 else "norm"


CUSTOMS: dict[str, tuple[Callable[[], Any], Callable[[Any], list[dict[str, Any]]]]] = {
    "Trainer": (Layers, lambda model: split(model, is_decayed)),
    "timm, no decay first": (Layers, lambda model: split(model, is_decayed)[::-1]),
    "nanoGPT": (Layers, lambda model: split(model, lambda _, parameter: parameter.ndim > 1)),
    "minGPT": (Layers, lambda model: split(model, is_decayed_by_mingpt, by_name=True)),
    "YOLO": (Sided, lambda model: split(model, kind_of)[::-1]),
    "layer decay": (Layers, lambda model: split(model, layer_of, is_decayed)),
    "a group for each layer": (Layers, lambda model: split(model, layer_of)),
    "layers from the top": (Layers, lambda model: split(model, layer_of)[::-1]),
    "a group for each parameter": (Layers, lambda model: split(model, lambda name, _: name)),
    "backbone and head": (Sided, lambda model: split(model, lambda name, _: name.startswith("head"))),
    "head and backbone": (Sided, lambda model: split(model, lambda name, _: name.startswith("head"))[::-1]),
    "head apart, with and without decay": (
        Sided,
        lambda model: split(model, lambda name, _: name.startswith("head"), is_decayed),
    ),
    "bias": (Sided, lambda model: split(model, lambda name, _: name.endswith("bias"))),
}


@pytest.mark.wide
def test_groups_of_every_custom_are_named_wholly(tmp_path: Path) -> None:
    def check_one(custom: str) -> None:
        make, groups = CUSTOMS[custom]
        model = make()
        optimizer = torch.optim.SGD(groups(model), lr=0.1, momentum=0.9)
        train(model, optimizer)
        checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        named, of = check(checkpoint, truth(model, optimizer))
        (row,) = checkpoint.optimizers
        assert (row.naming, named, row.models) == ("recipe", of, ("model",)), row.detail

    put_through(check_one, CUSTOMS)


# --- frozen and tied parameters -----------------------------------------------------------------------------


def test_frozen_parameters_handed_over_have_no_state_and_shift_nothing(tmp_path: Path) -> None:
    model = square_net()
    model[1].weight.requires_grad = False
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer)
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    named, of = check(checkpoint, truth(model, optimizer))
    assert named == of == 15
    assert (checkpoint.optimizers[0].parameters, checkpoint.optimizers[0].with_state) == (6, 5)


def test_frozen_layer_among_equal_ones_could_be_any(tmp_path: Path) -> None:
    model = square_net()
    for parameter in model[0].parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.Adam(filter(lambda parameter: parameter.requires_grad, model.parameters()))
    train(model, optimizer)
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    assert check(checkpoint, truth(model, optimizer)) == (0, 12)
    assert checkpoint.optimizers[0].naming == "unknown"
    assert "left out" in checkpoint.optimizers[0].detail


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.ones(4))


def test_tied_weights_count_once(tmp_path: Path) -> None:
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer)
    state = {"model": {k: v for k, v in model.state_dict().items() if k != "scale"}}
    checkpoint = saved(tmp_path, {**state, "optimizer": optimizer.state_dict()})
    named, of = check(checkpoint, truth(model, optimizer))
    assert named == of == 9


# --- names in the file --------------------------------------------------------------------------------------


def test_named_parameters_are_believed(tmp_path: Path) -> None:
    model = square_net(12)
    groups = decay_groups(model, ordered=ORDERS["backwards"])
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for group in groups:
        group["params"] = [(names[id(parameter)], parameter) for parameter in group["params"]]
    optimizer = torch.optim.AdamW(groups)
    train(model, optimizer)
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    assert "param_names" in optimizer.state_dict()["param_groups"][0]
    named, of = check(checkpoint, truth(model, optimizer))
    assert named == of > 0
    assert checkpoint.optimizers[0].naming == "names"


def test_state_by_name_is_believed_and_numbers_as_texts_are_not(tmp_path: Path) -> None:
    model = square_net(2)
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer)
    names, numbered = truth(model, optimizer), optimizer.state_dict()
    for kind, naming in ((names.get, "names"), (str, "unknown")):
        state = {kind(number): slots for number, slots in numbered["state"].items()}
        groups = [{"params": list(state), "lr": 0.1}]
        optimizer_state = {"state": state, "param_groups": groups}
        # Without the model in the file, nothing but the keys can tell.
        checkpoint = saved(tmp_path, {"optimizer": optimizer_state})
        assert checkpoint.optimizers[0].naming == naming
        expected = set(names.values()) if naming == "names" else {None}
        assert {tensor.parameter for tensor in checkpoint.tensors} == expected
    checkpoint = saved(tmp_path, {"model": model.state_dict(), "optimizer": optimizer_state})
    assert checkpoint.optimizers[0].naming == "order"
    assert {tensor.keys[2]: tensor.parameter for tensor in checkpoint.tensors if tensor.slot} == {
        str(number): name for number, name in names.items()
    }


# --- several models and optimizers --------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 2])
def test_one_optimizer_over_several_models_names_them_by_model(groups: int, tmp_path: Path) -> None:
    encoder, decoder, other = conv_net(), shapes_net(), square_net()
    parts = [list(decoder.parameters()), list(encoder.parameters())]
    optimizer = torch.optim.Adam(
        [{"params": part} for part in parts] if groups == 2 else [*parts[0], *parts[1]]
    )
    for model in (encoder, decoder):
        train(model, optimizer)
    file = {"encoder": encoder, "other": other, "decoder": decoder, "optimizer": optimizer}
    checkpoint = saved(tmp_path, {name: part.state_dict() for name, part in file.items()})
    whole = nn.ModuleDict({"encoder": encoder, "decoder": decoder})
    named, of = check(checkpoint, truth(whole, optimizer))
    assert named == of > 0
    models = checkpoint.optimizers[0].models
    assert models == ("decoder", "encoder") if groups == 1 else set(models) == {"decoder", "encoder"}


def test_models_that_fit_equally_well_under_other_names_name_nothing(tmp_path: Path) -> None:
    one, other = square_net(2), square_net(2)
    optimizer = torch.optim.Adam(one.parameters())
    train(one, optimizer)
    prefixed = {f"other.{name}": value for name, value in other.state_dict().items()}
    checkpoint = saved(tmp_path, {"a": one.state_dict(), "b": prefixed, "optimizer": optimizer.state_dict()})
    assert check(checkpoint, truth(one, optimizer))[0] == 0
    assert "equally well" in checkpoint.optimizers[0].detail


def test_optimizer_of_a_model_that_is_not_in_the_file_takes_no_names_from_another(tmp_path: Path) -> None:
    model, absent = conv_net(), nn.Sequential(nn.Linear(18, 5), nn.Linear(5, 3))
    own, others = torch.optim.Adam(model.parameters()), torch.optim.Adam(absent.parameters())
    train(model, own)
    train(absent, others)
    checkpoint = saved(
        tmp_path,
        {"model": model.state_dict(), "optimizer": own.state_dict(), "lost": others.state_dict()},
    )
    assert [row.naming for row in checkpoint.optimizers] == ["order", "unknown"]
    assert {tensor.parameter for tensor in checkpoint.tensors if tensor.keys[0] == "lost"} == {None}


def test_ema_beside_the_model_changes_nothing(tmp_path: Path) -> None:
    model = conv_net()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer)
    averaged.update_parameters(model)
    checkpoint = saved(
        tmp_path,
        {
            "model": model.state_dict(),
            "ema": averaged.state_dict(),
            "optimizer": optimizer.state_dict(),
            "shadow_params": list(model.parameters()),
        },
    )
    named, of = check(checkpoint, truth(model, optimizer))
    assert named == of > 0
    roles = {tensor.keys[0]: tensor.role for tensor in checkpoint.tensors}
    assert roles == {"model": "parameter", "ema": "ema", "optimizer": "optimizer", "shadow_params": "ema"}


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_distributed_checkpoint_names_what_torch_save_names(tmp_path: Path) -> None:
    """DCP makes texts of the numbers of parameters, and leaves those in the groups as they are."""
    import torch.distributed.checkpoint as dcp

    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    saved = {"model": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(saved, tmp_path / "one.pth")
    dcp.save(saved, checkpoint_id=tmp_path / "folder")
    one, other = (open_checkpoint(str(tmp_path / name)) for name in ("one.pth", "folder"))
    names = [[row.parameter for row in found.tensors if row.slot is not None] for found in (one, other)]
    assert names[0] == names[1]
    assert None not in names[0]
    assert one.optimizers[0].naming == other.optimizers[0].naming

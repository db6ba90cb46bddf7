"""Models are found wherever a training script puts them."""

from __future__ import annotations

import pytest

from inspector.model.checkpoint import Tensor
from inspector.snippet.models import Model, find_models
from tests.unit.snippet.rows import checkpoint, tensor, value


def only(*tensors: Tensor, **options: object) -> Model:
    (model,) = find_models(checkpoint(*tensors, **options))
    return model


def test_state_dict_under_a_key() -> None:
    model = only(
        tensor("model", "l.weight", device="cuda:1"),
        tensor("model", "l.bias", device="cuda:0"),
        tensor("model", "l.mean", role="buffer", device="cuda:1"),
        tensor("optimizer", "state", 0, "exp_avg", role="optimizer"),
    )
    assert model.keys == ("model",)
    assert model.names == ("l.weight", "l.bias", "l.mean")
    assert model.devices == ("cuda:1", "cuda:0")
    assert not model.is_module
    assert not model.is_mixed


def test_state_dict_at_the_root_and_deep_inside() -> None:
    assert only(tensor("l.weight")).keys == ()
    assert only(tensor("a", 0, "b", "l.weight")).keys == ("a", 0, "b")


def test_whole_module_at_the_root_and_under_a_key() -> None:
    model = only(tensor("._parameters", "w"), tensor("._modules", "l", "._buffers", "b", role="buffer"))
    assert model.is_module
    assert (model.keys, model.names) == ((), ())
    assert only(tensor("net", "._modules", "l", "._parameters", "w")).keys == ("net",)


def test_several_models_and_several_copies_of_one() -> None:
    found = find_models(
        checkpoint(
            tensor("generator", "g.weight"),
            tensor("discriminator", "d.weight"),
            tensor("best", "g.weight"),
        )
    )
    assert [model.keys for model in found] == [("generator",), ("discriminator",)]


@pytest.mark.parametrize(
    "row",
    [
        tensor(),  # the root itself
        tensor("list", 0),
        tensor("model", "w", role="other"),
        tensor(".attribute", "w"),
        tensor("model", "w", "values", part_of=0),
    ],
)
def test_what_is_no_state_dict(row: Tensor) -> None:
    assert find_models(checkpoint(row)) == ()


@pytest.mark.parametrize(
    ("names", "prefixes"),
    [
        (["module.l.weight", "module.l.bias"], ("module.",)),
        (["_orig_mod.l.weight"], ("_orig_mod.",)),
        (["module._orig_mod.w", "module._orig_mod.b"], ("module.", "_orig_mod.")),
        (["_orig_mod.module.w"], ("_orig_mod.", "module.")),
        (["module.module.w"], ("module.",)),
        (["module.w", "n_averaged"], ()),
        (["modules.w"], ()),
    ],
)
def test_prefixes(names: list[str], prefixes: tuple[str, ...]) -> None:
    assert only(*(tensor("model", name) for name in names)).prefixes == prefixes


def test_whole_module_has_no_prefixes() -> None:
    assert only(tensor("._parameters", "module.w")).prefixes == ()


@pytest.mark.parametrize(
    ("keys", "is_mixed"),
    [
        (("epoch",), True),
        ((7,), True),
        (("config", "lr"), True),
        (("._metadata", "", "version"), False),
        (("l._extra_state",), False),
        (("w", ".note"), False),  # an attribute of the tensor
    ],
)
def test_what_stands_among_the_weights(keys: tuple[str | int, ...], is_mixed: bool) -> None:
    assert only(tensor("w"), tensor("b"), values=(value(*keys),)).is_mixed == is_mixed
    assert only(tensor("m", "w"), values=(value("m", *keys), value("epoch"))).is_mixed == is_mixed


def test_other_tensors_and_parts_among_the_weights() -> None:
    assert only(tensor("w"), tensor("ema", "w", role="ema")).is_mixed
    assert not only(tensor("w"), tensor("w", "values", part_of=0)).is_mixed

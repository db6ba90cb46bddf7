"""Models are found wherever a training script puts them."""

from __future__ import annotations

from inspector.model.checkpoint import OddKey, Tensor
from inspector.snippet.models import MOST_OF_A_KIND, Model, find_models, has_model
from tests.sweep import table
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


def test_attributes_of_a_module_are_none_of_its_parameters() -> None:
    attribute = tensor("net", "._modules", "head", ".anchors", dtype="int64")
    model = only(tensor("net", "._parameters", "w"), attribute)
    assert (model.keys, model.is_module, model.dtypes) == (("net",), True, {"float32"})


def test_a_module_that_another_keeps_as_an_attribute_is_a_part_of_it() -> None:
    inner = tensor("net", ".teacher", "._parameters", "v")
    assert only(tensor("net", "._parameters", "w"), inner).keys == ("net",)


def test_losses_have_the_names_that_they_have_elsewhere() -> None:
    for name, is_loss in (("losses", True), ("loss_cls", True), ("loss_history", False)):
        assert only(tensor(name, "l.weight")).is_loss == is_loss


def test_several_models_and_several_copies_of_one() -> None:
    found = find_models(
        checkpoint(
            tensor("generator", "g.weight"),
            tensor("discriminator", "d.weight"),
            tensor("best", "g.weight"),
        )
    )
    assert [model.keys for model in found] == [("generator",), ("discriminator",)]


def test_no_more_models_are_listed_than_code_is_written_for() -> None:
    found = find_models(checkpoint(*(tensor(f"m{number}", f"l{number}.weight") for number in range(20))))
    assert len(found) == MOST_OF_A_KIND


@table(
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


@table(
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


@table(
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
    assert find_models(checkpoint(tensor("w"), tensor("ema", "w", role="ema")))[0].is_mixed
    assert not only(tensor("w"), tensor("w", "values", part_of=0)).is_mixed


def keys_of(*rows: Tensor) -> list[tuple[str | int, ...]]:
    return [model.keys for model in find_models(checkpoint(*rows))]


def test_models_of_one_architecture_are_all_models() -> None:
    assert keys_of(tensor("policy_net", "w"), tensor("target_net", "w")) == [("policy_net",), ("target_net",)]
    assert keys_of(tensor("last", "w"), tensor("best_model", "w")) == [("last",)]


@table(
    "rows",
    [
        [tensor("replay", index, "obs") for index in range(3)],
        [tensor("buffer", "obs"), tensor("buffer", "reward")],
        [tensor("model", "w", ".scale")],
        [tensor(OddKey("(1, 2)"), "w")],
        [tensor("m", OddKey("(1, 2)"))],
        [tensor("m", "w", role="other")],
    ],
)
def test_what_only_looks_like_a_model(rows: list[Tensor]) -> None:
    assert keys_of(*rows) == []
    assert not has_model(checkpoint(*rows))


def test_many_alike_in_a_list_are_samples_unless_their_names_are_those_of_layers() -> None:
    assert len(keys_of(*(tensor("list", index, "p") for index in range(9)))) == 4
    assert len(keys_of(*(tensor("list", index, "l.p") for index in range(9)))) == 9
    assert len(keys_of(*(tensor(f"net{index}", "p") for index in range(9)))) == 9


def test_loss_and_single_weights_are_models_by_their_names() -> None:
    loss = only(tensor("criterion", "pos_weight", role="other"))
    assert loss.is_loss
    head = only(tensor("head", "fc.weight", role="other"))
    assert (head.keys, head.is_loss) == (("head",), False)
    assert keys_of(tensor(0, "x", role="other")) == []


def test_averages_and_strangers() -> None:
    average = only(tensor("ema", "w", role="ema"), tensor("ema", "b", role="ema"))
    assert average.is_average
    rows = [tensor("w"), tensor("rng", role="rng"), tensor("x", "y", role="other"), tensor(3, role="other")]
    assert only(*rows).strangers == ("rng",)


def test_shapes_of_parameters_count_tied_ones_once() -> None:
    first = tensor("m", "a.w")._replace(storage="0", storage_offset=0)
    tied = tensor("m", "b.w")._replace(storage="0", storage_offset=0)
    mean = tensor("m", "mean", role="buffer")
    halves = [tensor("m", f"h{at}")._replace(storage="0", storage_offset=2, shape=(2,)) for at in range(2)]
    assert only(first, *halves, tied, *halves).shapes == ((4,), (2,))
    assert only(first, tied, tensor("m", "c.w", nbytes=9), mean).shapes == ((4,), (9,))
    assert only(first, mean._replace(dtype="int64")).dtypes == {"float32", "int64"}

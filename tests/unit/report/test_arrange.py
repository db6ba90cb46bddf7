from __future__ import annotations

from collections.abc import Callable

from inspector.model.checkpoint import Checkpoint
from inspector.report.arrange import NO_NAME, Group, _is_dotted, arrange
from tests.sweep import table
from tests.unit.report.rows import checkpoint, optimizer, tensor, value
from tests.work import growth


def shown(rows: Checkpoint) -> list[str]:
    """The arrangement as lines, indented by level; tensors end in their index, values in ~index."""
    arrangement = arrange(rows)
    lines: list[str] = []
    stack = [(item, 0) for item in reversed(arrangement.root.below)]
    while stack:
        item, level = stack.pop()
        if isinstance(item, Group):
            lines.append(f"{'  ' * level}{item.name}")
            stack += [(below, level + 1) for below in reversed(item.below)]
        else:
            name = arrangement.name_of(item)
            lines.append(f"{'  ' * level}{name} {item if item >= 0 else f'~{~item}'}")
            stack += [(part, level + 1) for part in reversed(arrangement.parts.get(item, []))]
    return lines


def test_dotted_names_are_nested_and_groups_are_shared() -> None:
    rows = checkpoint(
        tensor("model", "layer1.0.weight"),
        tensor("model", "layer2.weight"),
        tensor("model", "layer1.0.bias"),
        tensor("model", "top"),
    )
    assert shown(rows) == [
        "model",
        "  layer1",
        "    0",
        "      weight 0",
        "      bias 2",
        "  layer2",
        "    weight 1",
        "  top 3",
    ]


@table("name", [".hidden", "ends.", "a..b", ".", "..", "a." * 80 + "b", "", "plain"])
def test_other_names_stay_whole(name: str) -> None:
    assert shown(checkpoint(tensor("model", name))) == ["model", f"  {name or NO_NAME} 0"]


def test_rows_stand_in_the_order_of_the_file() -> None:
    rows = checkpoint(
        value("epoch"), tensor("a"), value("b"), value("c", 0), tensor("d", 0), value("d", 1), value("e")
    )
    assert shown(rows) == ["epoch ~0", "a 0", "b ~1", "c", "  0 ~2", "d", "  0 1", "  1 ~3", "e ~4"]


def test_values_that_claim_another_order_are_not_lost() -> None:
    late, early = value("late", after=9), value("early")
    found = arrange(checkpoint_of(late, early))
    assert [found.name_of(leaf) for leaf in found.root.below] == ["late", "early"]


def checkpoint_of(*values: object) -> Checkpoint:
    from inspector.records import replace

    return replace(checkpoint(tensor("a")), values=values, tensors=())


def test_a_dotted_value_is_nested_only_beside_tensors_that_are() -> None:
    rows = checkpoint(
        tensor("model", "bn.weight"), value("model", "bn.steps"), value("config", "train.lr"), value("x.y")
    )
    assert shown(rows) == [
        "model",
        "  bn",
        "    weight 0",
        "    steps ~0",
        "config",
        "  train.lr ~1",
        "x.y ~2",
    ]


def test_slots_and_values_stand_under_the_name_of_their_parameter() -> None:
    rows = checkpoint(
        optimizer("optim"),
        value("optim", "state", 0, "step"),
        tensor("optim", "state", 0, "exp_avg", parameter="layer1.weight", slot="exp_avg"),
        tensor("optim", "state", 1, "factored", "row", parameter=None, slot="factored/row"),
        tensor("optim", "state", 2, "state", "a/b", parameter="x/y", slot="state/a~1b"),
        value("optim", "state", 3),
        value("optim", "param_groups", 0, "lr"),
    )
    assert shown(rows) == [
        "optim",
        "  layer1.weight",
        "    step ~0",
        "    exp_avg 0",
        "  parameter 1",
        "    factored",
        "      row 1",
        "  x/y",
        "    state",
        "      a/b 2",
        "  state",
        "    3 ~1",
        "  param_groups",
        "    0",
        "      lr ~2",
    ]


def test_an_optimizer_may_be_the_whole_file() -> None:
    rows = checkpoint(optimizer(), tensor("state", 0, "exp_avg", parameter="weight", slot="exp_avg"))
    assert shown(rows) == ["weight", "  exp_avg 0"]


def test_a_state_outside_an_optimizer_is_an_ordinary_name() -> None:
    rows = checkpoint(tensor("ema", "state", 0, "x"))
    assert shown(rows) == ["ema", "  state", "    0", "      x 0"]


def test_dictionaries_of_modules_are_left_out_and_their_empty_hooks_too() -> None:
    module = ("._modules", "l")
    rows = checkpoint(
        value(*module, "._buffers", text="{}"),
        value(*module, "._backward_hooks", text="collections.OrderedDict()"),
        value(*module, "._backend", text="None"),
        tensor(*module, "._parameters", "weight"),
        value(*module, "._parameters", "bias", text="None"),
        value(*module, "._forward_hooks", 7, text="evil.hook"),
        value(*module, "._modules", text="the same object as ._modules"),
        value(*module, "._scale", text="{}"),
    )
    assert shown(rows) == [
        "l",
        "  weight 0",
        "  bias ~3",
        "  ._forward_hooks",
        "    7 ~4",
        "  ._modules ~5",
        "  ._scale ~6",
    ]


def test_parts_stand_below_their_composite() -> None:
    rows = checkpoint(
        tensor("sparse", layout="sparse_coo"),
        tensor("sparse", "indices", part_of=0),
        tensor("sparse", "values", part_of=0),
        tensor("dense"),
    )
    assert shown(rows) == ["sparse 0", "  indices 1", "  values 2", "dense 3"]


def test_the_root_may_be_a_leaf() -> None:
    assert shown(checkpoint(tensor())) == ["(tensor) 0"]
    assert shown(checkpoint(value())) == ["(value) ~0"]


def test_an_empty_key_is_a_level_of_its_own() -> None:
    rows = checkpoint(tensor("a"), tensor("", "a"), value("", "b"))
    assert shown(rows) == ["a 0", '""', "  a 1", "  b ~0"]


def test_many_optimizers_are_arranged_in_proportion() -> None:
    def prepare(number: int) -> Callable[[], object]:
        optimizers = [optimizer("o", place) for place in range(number)]
        slots = [tensor("o", place, "state", 0, "m", slot="m", parameter="w") for place in range(number)]
        made = checkpoint(*optimizers, *slots)
        return lambda: arrange(made)

    assert growth(prepare, 100, 400) < 1.2


def test_keys_that_are_no_names_are_one_step() -> None:
    assert not _is_dotted('torch.device("cuda", 1)')
    assert not _is_dotted("(torch.device(…), 3)")
    assert _is_dotted("layer.1.weight")

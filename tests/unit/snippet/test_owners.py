"""An optimizer's models are told by count, order and shapes, then by names."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, Optimizer, Tensor
from inspector.records import replace
from inspector.snippet.models import find_models
from inspector.snippet.request import Owned, find_owned, likeness
from tests.sweep import table
from tests.unit.snippet.rows import checkpoint, optimizer, tensor

A = [tensor("netA", "l.weight", nbytes=5), tensor("netA", "l.bias", nbytes=2)]
B = [tensor("netB", "l.weight", nbytes=7)]
TWIN = [tensor("twin", "l.weight", nbytes=5), tensor("twin", "l.bias", nbytes=2)]


def adam(*sizes: int, groups: tuple[int, ...] = ()) -> tuple[Optimizer, list[Tensor]]:
    slots = [
        tensor("opt", "state", number, name, role="optimizer", nbytes=size)._replace(slot=name)
        for number, size in enumerate(sizes)
        for name in ("exp_avg", "exp_avg_sq")
        if size
    ]
    return replace(optimizer("opt"), parameters=len(sizes), groups=groups or (len(sizes),)), slots


def owned(*sizes: int, models: list[Tensor], name: str = "opt", groups: tuple[int, ...] = ()) -> Owned:
    one, slots = adam(*sizes, groups=groups)
    rows: Checkpoint = checkpoint(*models, *slots, optimizers=(one,))
    named = [(str(model.keys[0]), model) for model in find_models(rows)]
    return find_owned(rows, one, name, named)


def test_one_model() -> None:
    assert owned(5, 2, models=[*A, *B]) == Owned(models=(0,))
    assert owned(7, models=[*A, *B]) == Owned(models=(1,))
    assert owned(2, 5, models=[*A, *B]) == Owned()
    assert owned(2, 5, models=[*A, *B], groups=(1, 1)) == Owned(models=(0,))


def test_optimizer_without_slots_is_told_by_its_count() -> None:
    assert owned(0, 0, models=[*A, *B]) == Owned(models=(0,))
    assert owned(0, 0, 0, models=[*A, *B]) == Owned(models=(0, 1), is_ordered=False)
    assert owned(0, models=A) == Owned()


def test_one_optimizer_over_two_modules() -> None:
    assert owned(5, 2, 7, models=[*A, *B]) == Owned(models=(0, 1))
    assert owned(7, 5, 2, models=[*A, *B]) == Owned(models=(1, 0))
    assert owned(7, 2, 5, models=[*A, *B]) == Owned()
    assert owned(5, 2, 5, 2, models=[*A, *TWIN]) == Owned(models=(0, 1), is_ordered=False)


def test_so_many_parameters_are_only_looked_at_in_the_order_of_the_file() -> None:
    many = [tensor(name, f"l{index}.weight", nbytes=5) for name in ("a", "b") for index in range(2_600)]
    assert owned(*[5] * 5_200, models=many) == Owned(models=(0, 1))


def test_part_of_a_model() -> None:
    assert owned(2, models=A) == Owned(models=(0,), is_part=True)
    assert owned(3, models=A) == Owned()


@table(
    ("names", "name", "expected"),
    [
        (("netG", "netD"), "optimizer_D", "netD"),
        (("generator", "discriminator"), "optimizerD", "discriminator"),
        (("target_net", "policy_net"), "optimizer", "policy_net"),
        (("teacher", "student"), "opt", "student"),
        (("first", "second"), "opt", "first"),
    ],
)
def test_of_several_that_fit_the_name_decides(names: tuple[str, ...], name: str, expected: str) -> None:
    models = [tensor(model, "l.weight", nbytes=5) for model in names]
    assert owned(5, models=models, name=name) == Owned(models=(names.index(expected),))


def test_averages_are_not_trained() -> None:
    average = tensor("ema", "l.weight", role="ema", nbytes=5)
    assert owned(5, models=[average, tensor("net", "l.weight", nbytes=5)]) == Owned(models=(1,))


def test_only_this_optimizers_slots_count() -> None:
    one, slots = adam(5)
    odd = slots[0]._replace(keys=("opt", "state", "x", "exp_avg"), path="opt/state/x/exp_avg")
    far = slots[0]._replace(keys=("opt", "state", 9, "exp_avg"), path="opt/state/9/exp_avg")
    more = [slots[0]._replace(path=f"opt/state/0/s{index}", slot="other") for index in range(20)]
    rows = checkpoint(*A, *B, *slots, odd, far, *more, optimizers=(one,))
    named = [(str(model.keys[0]), model) for model in find_models(rows)]
    assert find_owned(rows, one, "opt", named) == Owned(models=(0,), is_part=True)
    at_root = replace(one, keys=(), path="")
    bare = slots[0]._replace(keys=("state", 0, "exp_avg"), path="state/0/exp_avg")
    assert find_owned(checkpoint(*A, bare), at_root, "opt", named) == Owned(models=(0,), is_part=True)


def test_likeness() -> None:
    assert likeness("optimizerG", "netG") == 2
    assert likeness("g_optimizer", "generator") == 1
    assert likeness("optimizer", "model") == 0
    assert likeness("optimizer_G", "discriminator") == 0

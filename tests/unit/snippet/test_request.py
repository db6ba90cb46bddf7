"""Variables are named for what they hold."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.snippet.inventory import take_inventory
from inspector.snippet.placement import place_devices
from inspector.snippet.request import Owned, Request, build_request
from inspector.target.profile import CPU_ONLY, Profile
from tests.sweep import table
from tests.unit.snippet.rows import checkpoint, optimizer, tensor, value


def request_for(rows: Checkpoint, target: Profile = CPU_ONLY) -> Request:
    inventory = take_inventory(rows)
    placement = place_devices(rows, target, (), inventory.models)
    return build_request(rows, inventory, placement, target, rows.path)


@table(
    ("rows", "root"),
    [
        (checkpoint(tensor(role="other"), root="tensor"), "tensor"),
        (checkpoint(tensor("w")), "state_dict"),
        (checkpoint(tensor("w"), values=(value("epoch"),)), "checkpoint"),
        (checkpoint(tensor("model", "w")), "checkpoint"),
        (checkpoint(tensor("._parameters", "w"), root="module"), "model"),
        (checkpoint(root="sequence"), "checkpoint"),
    ],
)
def test_root(rows: Checkpoint, root: str) -> None:
    assert request_for(rows).root == root


def test_models_are_named_after_their_keys() -> None:
    found = request_for(checkpoint(tensor("netG", "w"), tensor("netD_state_dict", "v"))).models
    assert [(name, model.keys) for name, model in found] == [
        ("netG", ("netG",)),
        ("netD", ("netD_state_dict",)),
    ]


def test_averages_stand_apart_unless_there_is_nothing_else() -> None:
    average = tensor("ema", "w", role="ema")
    alone = request_for(checkpoint(average))
    assert [name for name, _ in alone.models] == ["ema"]
    assert alone.averages == ()
    both = request_for(checkpoint(tensor("net", "w"), average))
    assert [name for name, _ in both.models] == ["net"]
    assert [name for name, _ in both.averages] == ["ema"]


def schedulers(*places: tuple[str | int, ...]) -> tuple[object, ...]:
    return tuple(value(*keys, name) for keys in places for name in ("last_epoch", "base_lrs"))


@table(
    ("optimizers", "places", "expected"),
    [
        ([("optimizer",)], [("a",), ("b",)], [0, 0]),
        ([("G", "optimizer"), ("D", "optimizer")], [("D", "scheduler"), ("G", "scheduler")], [1, 0]),
        ([("optimizer_G",), ("optimizer_D",)], [("scheduler_D",), ("scheduler_G",)], [1, 0]),
        ([("optimizer", 0), ("optimizer", 1)], [("scheduler", 0), ("scheduler", 1)], [0, 1]),
        ([("first",), ("second",)], [("scheduler",)], [None]),
    ],
)
def test_schedulers_stand_with_their_optimizers(
    optimizers: list[tuple[str, ...]], places: list[tuple[str, ...]], expected: list[int | None]
) -> None:
    rows = checkpoint(values=schedulers(*places), optimizers=tuple(optimizer(*keys) for keys in optimizers))
    parts = request_for(rows).parts
    found = {part.keys: part.optimizer for part in parts if part.kind == "scheduler"}
    assert [found[keys] for keys in places] == expected
    owners = [part for part in parts if part.kind == "optimizer"]
    for part in parts:
        if part.optimizer is not None:
            assert parts.index(owners[part.optimizer]) < parts.index(part)


def test_everything_has_a_name_of_its_own() -> None:
    rows = checkpoint(
        tensor("a b", "w"),
        tensor("a_b", "v"),
        tensor("torch", "w"),
        tensor("mean", role="other", device="cuda:0"),
        values=(*schedulers(("s", 0)), value("amp", "scale"), value("amp", "_growth_tracker")),
        optimizers=(optimizer("opt"),),
        names=("a_b_2.Thing",),
    )
    request = request_for(rows)
    names = [name for name, _ in request.all_models] + [part.name for part in request.parts]
    assert names == ["a_b", "a_b_3", "torch_model", "opt", "scheduler_s", "amp"]
    assert request.loose == (("mean", ("mean",)),)
    assert request.parts[0].owned == Owned(models=(0,))
    assert request.model_devices == ("cpu", "cpu", "cpu")

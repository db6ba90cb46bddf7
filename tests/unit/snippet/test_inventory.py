"""Everything that a training run restores is found by what it is, not by its key."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, Key, OddKey
from inspector.resources import demo_path
from inspector.snippet.inventory import Inventory, take_inventory
from tests.sweep import table
from tests.unit.snippet.rows import checkpoint, optimizer, tensor, value


def values(*places: tuple[Key, ...]) -> Checkpoint:
    return checkpoint(values=tuple(value(*keys) for keys in places))


def test_demo() -> None:
    inventory = take_inventory(open_checkpoint(str(demo_path())))
    assert [model.keys for model in inventory.models] == [("model",), ("ema",)]
    assert [optimizer.keys for optimizer in inventory.optimizers] == [("optimizer",)]
    assert inventory == Inventory(
        models=inventory.models,
        optimizers=inventory.optimizers,
        schedulers=(("scheduler",),),
        scalers=(("scaler",),),
        averages=(),
        loose=(),
        cpu_state=("rng_state", "torch"),
        cuda_states=(("rng_state", "cuda", 0), ("rng_state", "cuda", 1)),
        python_state=None,
        numpy_state=None,
        counters=(("epoch", ("epoch",)),),
        plain=(("best_accuracy",), ("config",)),
    )


def test_nothing() -> None:
    inventory = take_inventory(checkpoint(values=(value(),)))  # the root is a value itself
    assert inventory == Inventory(
        models=(),
        optimizers=(),
        schedulers=(),
        scalers=(),
        averages=(),
        loose=(),
        cpu_state=None,
        cuda_states=(),
        python_state=None,
        numpy_state=None,
        counters=(),
    )


def test_optimizers() -> None:
    found = take_inventory(checkpoint(optimizers=(optimizer("o", 0), optimizer("o", 1), optimizer(".o"))))
    assert [one.keys for one in found.optimizers] == [("o", 0), ("o", 1)]


@table("beside", ["base_lrs", "_last_lr", "_step_count", "num_bad_epochs"])
def test_scheduler(beside: str) -> None:
    assert take_inventory(values(("x", 0, "last_epoch"), ("x", 0, beside))).schedulers == (("x", 0),)


def test_counter_alone_is_no_scheduler() -> None:
    assert take_inventory(values(("x", "last_epoch"))).schedulers == ()


def test_chained_schedulers_are_one() -> None:
    inner = ("s", "_schedulers", 0)
    found = take_inventory(
        values((*inner, "last_epoch"), (*inner, "base_lrs"), ("s", "last_epoch"), ("s", "_last_lr"))
    )
    assert found.schedulers == (("s",),)


def test_scaler() -> None:
    assert take_inventory(values(("amp", "scale"), ("amp", "_growth_tracker"))).scalers == (("amp",),)
    assert take_inventory(values(("quantizer", "scale"))).scalers == ()


def test_averages_are_models_or_objects() -> None:
    plain = [tensor("ema", "net", "a", role="ema"), tensor("ema", "other", "b", role="ema")]
    found = take_inventory(checkpoint(*plain))
    assert [(model.keys, model.is_average) for model in found.models] == [
        (("ema", "net"), True),
        (("ema", "other"), True),
    ]
    assert found.averages == ()
    listed = take_inventory(checkpoint(tensor("a", "ema", "shadow_params", 0, role="ema")))
    assert (listed.models, listed.averages) == ((), (("a", "ema"),))
    counted = take_inventory(checkpoint(*plain, values=(value("ema", "decay"),)))
    assert (counted.models, counted.averages) == ((), (("ema",),))
    hidden = take_inventory(checkpoint(tensor("ema", ".list", 0, role="ema")))
    assert hidden.averages == ()


def test_tensors_by_themselves_that_were_on_a_gpu() -> None:
    gpu = {"role": "other", "device": "cuda:0"}
    rows = checkpoint(
        tensor("mean", **gpu), tensor("cpu", role="other"), tensor("x", "y", **gpu), tensor(3, **gpu)
    )
    assert take_inventory(rows).loose == (("mean",),)
    assert take_inventory(checkpoint(*(tensor(f"x{index}", **gpu) for index in range(5)))).loose == ()


def test_what_code_cannot_reach_is_left_out() -> None:
    odd = OddKey("(1, 2)")
    rows = checkpoint(
        tensor(odd, "cuda", role="rng", nbytes=16),
        tensor(".rng", role="rng", nbytes=5056),
        values=(
            *(value(odd, "s", name) for name in ("last_epoch", "base_lrs", "scale", "_growth_tracker")),
            value(odd, 0, text="3"),
            value(odd, 1, type="tuple"),
            value(odd, 2, type="NoneType"),
        ),
    )
    assert take_inventory(rows) == take_inventory(checkpoint())


@table(
    ("row", "cpu", "cuda"),
    [
        (tensor("rng", role="rng", nbytes=5056), True, False),
        (tensor("rng", role="rng", nbytes=5048), False, False),
        (tensor("cuda_rng_state", role="rng", nbytes=16), False, True),
        (tensor("rng", 0, role="rng", nbytes=16), False, False),  # of whatever device
        (tensor("cuda_rng_state", role="rng", nbytes=824_040), False, False),  # no torch takes it any more
        (tensor("x", role="other", nbytes=5056), False, False),
    ],
)
def test_random_states_of_torch(row: object, cpu: bool, cuda: bool) -> None:
    inventory = take_inventory(checkpoint(row))
    assert (inventory.cpu_state is not None, bool(inventory.cuda_states)) == (cpu, cuda)


def test_random_state_of_python() -> None:
    state = [value("r", 0, text="3"), value("r", 1, type="tuple"), value("r", 2, type="NoneType")]
    assert take_inventory(checkpoint(values=tuple(state))).python_state == ("r",)
    assert take_inventory(checkpoint(values=(value("r", 0, text="2"), *state[1:]))).python_state is None
    assert take_inventory(checkpoint(values=tuple(state[:2]))).python_state is None


def test_random_state_of_numpy() -> None:
    array = value("r", 1, type="numpy.ndarray")
    for text, found in (("MT19937", ("r",)), ("PCG64", None)):
        named = value("r", 0, type="str", text=text)
        assert take_inventory(checkpoint(values=(named, array))).numpy_state == found


def test_counters() -> None:
    found = take_inventory(values(("current_epoch",), ("epochs",), ("iter",), ("deep", "epoch")))
    assert found.counters == (("epoch", ("current_epoch",)), ("step", ("iter",)))
    assert take_inventory(checkpoint(values=(value("epoch", type="str"),))).counters == ()

"""Messages of optimizers, schedulers and random generators, tied to their state in the file."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.model.findings import Fix
from inspector.records import replace
from tests.builders.pickles import op
from tests.sweep import table
from tests.unit.diagnose.cases import generator_state, trained, unnamed, whole_optimizer
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, optimizer, value

SIZE = "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
INITIAL = "param 'initial_lr' is not specified in param_groups[0] when resuming an optimizer"


def test_groups_of_the_file_are_shown() -> None:
    found = explained(SIZE, unnamed((4,), (2, 2)), id_="optimizer-group-size")
    assert (found.fits, found.fix) == ("yes", Fix(style="resume"))
    assert "optimizer has 1 group of 2 parameters. The model in the file has 2 parameters." in found.here
    alone = checkpoint(optimizer("", groups=(3, 1_000)), optimizer("o"))
    here = explained(SIZE, alone, id_="optimizer-group-size").here
    assert "The optimizer has 2 groups of 3, 1,000 parameters. o has 0 groups of no parameters." in here
    assert "The model in the file" not in here
    assert explained(SIZE, on(("a", "cpu")), id_="optimizer-group-size").fits == "no"
    more = explained(SIZE, unnamed((4,), (2, 2), (4,)), id_="optimizer-group-size")
    assert more.paths == ("optimizer",)


def test_first_learning_rate() -> None:
    rate = value("o", "param_groups", 0, "initial_lr", type="float", text="0.1")
    assert "load it before" in explained(INITIAL, checkpoint(optimizer("o"), rate), id_="initial-lr").here
    without = explained(INITIAL, checkpoint(optimizer("o")), id_="initial-lr")
    assert "saved without a scheduler" in without.here
    assert explained(INITIAL, checkpoint(), id_="initial-lr").fits == "no"


@table(
    ("text", "id_", "has", "lacks", "finding"),
    [
        (
            "If capturable=False, state_steps should not be CUDA tensors.",
            "step-on-gpu",
            trained("cuda:0", "cuda:0"),
            trained("cpu", "cuda:0"),
            "step-on-accelerator",
        ),
        (
            "If capturable=True, params and state_steps must be CUDA tensors.",
            "step-on-cpu",
            whole_optimizer("cpu", "cuda:0", capturable=op("NEWTRUE")),
            trained("cpu", "cuda:0", capturable=op("NEWTRUE")),
            "step-off-accelerator",
        ),
        (
            "Tensors of the same index must be on the same device and the same dtype",
            "foreach-device",
            trained("cpu", "cpu"),
            trained("cpu", "cuda:0"),
            "optimizer-off-parameter-device",
        ),
        (
            "Tensors of the same index must be on the same device and the same dtype",
            "foreach-device",
            trained("cuda:1", "cuda:0"),
            trained("cuda:0", "cuda:0"),
            "step-on-accelerator",
        ),
        (
            "If capturable=True, params, mus, etas, and state_steps must be on supported devices: ['cuda'].",
            "step-on-cpu",
            whole_optimizer("cpu", "cuda:0", capturable=op("NEWTRUE")),
            trained("cpu", "cuda:0", capturable=op("NEWTRUE")),
            "step-off-accelerator",
        ),
        (
            "RNG state must be a torch.ByteTensor",
            "rng-device",
            generator_state("cuda:0"),
            generator_state("cpu"),
            "rng-off-cpu",
        ),
    ],
)
def test_the_finding_of_the_file_decides(text: str, id_: str, has, lacks, finding: str) -> None:
    found = explained(text, has, id_=id_)
    assert (found.fits, found.finding) == ("yes", finding)
    assert found.paths
    assert found.fix is not None
    other = explained(text, lacks, id_=id_)
    assert (other.fits, other.fix) == ("no", None)


def test_sizes_of_random_states() -> None:
    found = explained("RNG state is wrong size", generator_state("cpu"), id_="rng-size")
    assert found.here == "This file holds rng_state (5,056 bytes)."
    assert found.paths == ("rng_state",)
    assert explained("RNG state is wrong size", on(("a", "cpu")), id_="rng-size").fits == "no"


STEP = '  File "/v/site-packages/torch/optim/adam.py", line 7, in step\n    x\n'


def test_keys_of_optimizers() -> None:
    found = explained("KeyError: 'exp_avg_sq'", trained("cpu", "cpu"), id_="optimizer-state-missing")
    assert (found.fits, "slots exp_avg, step" in found.here) == ("unknown", True)
    assert explained("KeyError: 'exp_avg'", on(("a", "cpu")), id_="optimizer-state-missing").fits == "no"
    assert explain_error(f"{STEP}KeyError: 'step'", None).id == "optimizer-state-missing"
    elsewhere = '  File "a.py", line 7, in f\n    x["step"]\nKeyError: \'step\''
    assert explain_error(elsewhere, None).id == "unrecognised"


def test_an_optimizer_without_slots() -> None:
    made = trained("cpu", "cpu")
    bare = replace(made, tensors=tuple(row for row in made.tensors if row.slot is None))
    assert (
        "before the first step" in explained("KeyError: 'exp_avg'", bare, id_="optimizer-state-missing").here
    )

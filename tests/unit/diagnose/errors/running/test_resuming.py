"""State of optimizers that is not complete."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.records import replace
from tests.unit.diagnose.cases import trained
from tests.unit.diagnose.explaining import explained, on

STEP = '  File "/v/site-packages/torch/optim/adam.py", line 7, in step\n    x\n'


def test_keys_of_optimizers() -> None:
    found = explained("KeyError: 'exp_avg_sq'", trained("cpu", "cpu"), id_="optimizer-state-missing")
    assert (found.fits, "slots exp_avg, step" in found.here) == ("unknown", True)
    assert explained("KeyError: 'exp_avg'", on(("a", "cpu")), id_="optimizer-state-missing").fits == "no"
    assert explain_error(f"{STEP}KeyError: 'step'", None).id == "optimizer-state-missing"
    elsewhere = '  File "a.py", line 7, in f\n    x["step"]\nKeyError: \'step\''
    assert explain_error(elsewhere, None).id == "unrecognised"


def test_numbers_of_parameters() -> None:
    assert explain_error(f"{STEP}KeyError: 140", None).id == "optimizer-index"
    assert explain_error("KeyError: 140", None).id == "unrecognised"


def test_an_optimizer_without_slots() -> None:
    made = trained("cpu", "cpu")
    bare = replace(made, tensors=tuple(row for row in made.tensors if row.slot is None))
    assert (
        "before the first step" in explained("KeyError: 'exp_avg'", bare, id_="optimizer-state-missing").here
    )

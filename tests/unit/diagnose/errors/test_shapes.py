"""Shapes that do not fit, compared with those of a file."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, tensor

GROUPS = (
    "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 1, 2, 2] to have 3 "
    "channels"
)


def test_the_weight_that_the_message_names() -> None:
    made = checkpoint(tensor("conv.weight", shape=(64, 3, 7, 7)))
    found = explained(GROUPS, made, id_="input-shape")
    assert (found.fits, found.paths) == ("unknown", ("conv.weight",))
    assert explained(GROUPS, on(("a", "cpu")), id_="input-shape").fits == "no"
    loose = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x3 and 2x2)"
    assert "the input does not fit" in explained(loose, on(("a", "cpu")), id_="input-shape").here
    plane = "RuntimeError: Given groups=1, weight of size [3, 7], expected input"
    turned = checkpoint(tensor("a", shape=(7, 3)), tensor("b", shape=(3, 7)))
    assert explained(plane, turned, id_="input-shape").count == 2


def test_sizes_in_an_optimizer() -> None:
    text = (
        "RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton "
        "dimension 0"
    )
    assert "pad in collate_fn" in explain_error(text, None).advice
    frame = '  File "/v/site-packages/torch/optim/adam.py", line 7, in step\n    x\n'
    assert "Optimizer state belongs to" in explain_error(frame + text, None).title


SIZES = "RuntimeError: The size of tensor a (768) must match the size of tensor b (2)"
IN = '  File "{}", line 7, in {}\n    {}\n'


def test_optimizers_of_others_and_their_closures() -> None:
    for path, function, code in (
        ("lgesql/utils/optimization.py", "step", "x"),
        ("/v/site-packages/timm/optim/lamb.py", "step", "x"),
        ("lamb.py", "apply", "exp_avg.mul_(beta1).add_(grad)"),
    ):
        assert "Optimizer state" in explain_error(IN.format(path, function, code) + SIZES, None).title, path
    step = IN.format("/v/site-packages/torch/optim/adam.py", "step", "loss = closure()")
    closure = IN.format("train.py", "training_step", "return (x + y).sum()")
    assert "pad in collate_fn" in explain_error(step + closure + SIZES, None).advice
    metric = IN.format("/v/site-packages/torchmetrics/metric.py", "update", "total + batch")
    assert "pad in collate_fn" in explain_error(step + metric + SIZES, None).advice
    kernel = IN.format("/v/site-packages/bitsandbytes/functional.py", "update_32bit", "x")
    own = IN.format("/v/site-packages/bitsandbytes/optim/optimizer.py", "update_step", "x") + kernel
    assert "Optimizer state" in explain_error(own + SIZES, None).title


def test_sizes_while_resuming_without_frames() -> None:
    assert "Optimizer state" in explain_error(f"{SIZES} when resuming adam optimizer", None).title
    assert "Optimizer state" not in explain_error(f"{SIZES} when resuming", None).title


def test_sizes_that_are_not_named() -> None:
    assert (
        explain_error("RuntimeError: stack expects each tensor to be equal size", None).id == "sizes-differ"
    )


def test_flat_shards_of_another_number_of_processes() -> None:
    text = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension 0"
    assert "number of processes" in explain_error(text.format(56124554, 14031139), None).title
    assert "number of processes" not in explain_error(text.format(56124554, 14031100), None).title
    assert "number of processes" not in explain_error(text.format(1536, 768), None).title


def test_each_message_has_its_row() -> None:
    ids = {
        "ValueError: Expected input batch_size (324) to match target batch_size (4).": "target-shape",
        "RuntimeError: stack expects a non-empty TensorList": "no-samples",
        "RuntimeError: each element in list of batch should be of equal size": "batch-elements",
        "ValueError: Input contains NaN, infinity or a value too large": "not-a-number",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids

"""What is said of a tensor after the load: by kind and form of the part that it belongs to."""

from __future__ import annotations

from inspector.model.checkpoint import Tensor
from inspector.report.words.verdicts import AfterWords
from tests.unit.report.rows import checkpoint, optimizer, tensor


def said(*rows: Tensor, index: int = 0) -> str:
    return AfterWords(checkpoint(*rows, optimizer("o"))).of(index)


def test_the_file_decides_where_tensors_stay() -> None:
    stays = "It stays where torch.load puts it"
    assert said(tensor("anchors", role="other")) == f"{stays}."
    assert said(tensor("net", "._parameters", "w")) == f"{stays}, until .to(device) moves the module."
    attribute = said(tensor("net", ".mask", role="other"), tensor("net", "._parameters", "w"))
    assert attribute == f"{stays}: .to(device) does not move plain attributes."
    assert said(tensor("rng", role="rng")).startswith(f"{stays}, and is accepted on the CPU only")
    whole = (tensor("q", ".state", "p", "exp_avg"), tensor("q", ".param_groups", 0, "params", 0))
    assert said(*whole).startswith("The optimizer is used as loaded")


def test_the_code_decides_where_tensors_are_copied() -> None:
    model = "load_state_dict copies it to the device of your model's own tensor."
    assert said(tensor("model", "a.weight")) == model
    assert said(tensor("ema", "a.weight", role="ema")) == model
    assert said(tensor("criterion", "weight", role="other")).endswith("to where your code made the loss.")


def test_state_of_an_optimizer() -> None:
    slot = tensor("o", "state", 0, "exp_avg", role="optimizer", slot="exp_avg")
    assert said(slot) == "optimizer.load_state_dict gives it the device and dtype of its parameter."
    step = tensor("o", "state", 0, "step", role="optimizer", slot="step")
    assert said(step) == "optimizer.load_state_dict leaves it where torch.load puts it."
    assert said(tensor("o", "param_groups", 0, "lr", role="optimizer")) == said(step)
    fused = AfterWords(checkpoint(step, optimizer("o", capturable=True))).of(0)
    assert fused.startswith("optimizer.load_state_dict moves it to its parameter")


def test_part_of_a_tensor_goes_where_that_goes() -> None:
    rows = (tensor("model", "a.weight"), tensor("model", "a.weight", "values", part_of=0))
    assert said(*rows, index=1) == said(*rows)

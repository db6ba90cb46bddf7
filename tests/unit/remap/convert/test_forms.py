from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.remap.forms import Form, check_form, refuse_suffix
from tests.sweep import table


@table(
    ("form", "plain", "takes_model"),
    [
        (Form(), True, False),
        (Form(compact=True), False, False),
        (Form(container="legacy"), False, False),
        (Form(exclude=("a",)), False, False),
        (Form(only_weights=True), False, True),
        (Form(shape="state-dict"), False, True),
        (Form(shape="safetensors"), False, True),
    ],
)
def test_forms_know_what_they_take(form, plain, takes_model) -> None:
    assert (form.is_plain, form.takes_model) == (plain, takes_model)
    check_form(form)


def test_model_replaces_the_prefix_that_named_it() -> None:
    assert Form(strip_prefix="g", compact=True).with_path("g") == Form(path="g", compact=True)


@table(
    ("form", "said"),
    [
        (Form(shape="safetensors", container="zip"), "safetensors is a container of its own"),
        (Form(cast="float16"), "only weights can be cast"),
        (Form(exclude=("a", "")), "an empty pattern leaves nothing out"),
    ],
)
def test_what_does_not_go_together_is_refused(form, said) -> None:
    with pytest.raises(PlanError, match=said):
        check_form(form)


def test_no_file_is_named_like_a_part_of_a_distributed_checkpoint() -> None:
    with pytest.raises(PlanError, match="a part of a distributed checkpoint"):
        refuse_suffix(Path("__0_0.distcp"), "same")


def test_no_file_is_named_like_one_that_another_program_reads() -> None:
    with pytest.raises(PlanError, match=r"one for ONNX, but the file would be for torch\.load"):
        refuse_suffix(Path("a.ONNX"), "same")
    with pytest.raises(PlanError, match="one for NumPy, but the file would be for safetensors"):
        refuse_suffix(Path("a.npz"), "safetensors")
    for name in ("a", "a.pkl", "a.zip", "a.tar", "a.model"):
        refuse_suffix(Path(name), "same")

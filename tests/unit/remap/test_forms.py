from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.remap.forms import Form, Patterns, check_form, choose_shape, lineage_of, refuse_suffix
from inspector.remap.rules import Rule, literal_pattern
from inspector.resources import demo_path
from tests.corpus import CORPUS
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


def test_the_name_of_the_output_and_the_source_tell_the_form() -> None:
    demo, shards = str(demo_path()), str(CORPUS / "hf_sharded")
    plain = str(CORPUS / "plain_pickle" / "state_p2.pkl")
    arrays = str(CORPUS / "joblib" / "arrays.joblib")
    wrong = {}
    for path, output, asked, expected in (
        (demo, "out.pth", None, ("same", "same")),
        (demo, "out.SafeTensors", None, ("safetensors", "same")),
        (demo, "out.safetensors", "safetensors", ("safetensors", "same")),
        (demo, "out.pth", "state-dict", ("state-dict", "same")),
        (demo, None, None, ("same", "same")),
        (shards, "out.pth", None, ("state-dict", "same")),
        (shards, "out", None, ("same", "same")),
        (plain, "copy.pkl", None, ("same", "same")),
        (plain, "copy.pt", None, ("same", "zip")),
        (arrays, "copy.pt", None, ("same", "zip")),
    ):
        found = choose_shape(path, output, asked)
        if found != expected:
            wrong[path, output, asked] = found
    assert wrong == {}


def test_a_name_of_another_format_is_refused() -> None:
    with pytest.raises(PlanError):
        choose_shape(str(demo_path()), "out.safetensors", "state-dict")


def test_patterns_cover_what_is_below() -> None:
    patterns = Patterns(("optimizer", "model/head.*", "**/bias"))
    covered = [
        path
        for path in ("optimizer/0", "optimizers", "model/head.w", "model/x", "a/b/bias")
        if patterns.cover(path)
    ]
    assert covered == ["optimizer/0", "model/head.w", "a/b/bias"]
    patterns.refuse_unused("best.pth")
    assert not Patterns(()).cover("anything")


def test_patterns_that_cover_nothing_are_mistyped() -> None:
    patterns = Patterns(("optimizer", "optimiser"))
    assert patterns.cover("x", "optimizer")
    assert not patterns.cover("x")
    with pytest.raises(PlanError, match="nothing in the file matches the pattern: optimiser"):
        patterns.refuse_unused("best.pth")


def test_two_spellings_of_one_path_both_cover_it() -> None:
    patterns = Patterns(("a[", literal_pattern("a["), "a[[]"))
    assert patterns.find("a[/b") == {0, 1}
    assert patterns.unused == ()


def test_patterns_that_are_looked_up_cover_what_they_would_if_they_were_tried() -> None:
    patterns = (
        "m/a.*",
        "m/a.b.*",
        "m/[*].*",
        ".*",
        "m/.*",
        "a..*",
        "a.*",
        "a[.*",
        "a[[].*",
        "m/a.b",
        "m/a**.*",
    )
    together = Patterns(patterns)
    paths = [
        "/".join(steps)
        for count in (1, 2)
        for steps in product(
            ("m", "a", "a.b", "a.b.c", "a.", "a..b", ".x", "*.b", "a[.c", "x.a.b"), repeat=count
        )
    ]
    wrong = []
    for path in paths:
        parts = lineage_of(path)
        told = {at for at, text in enumerate(patterns) if Rule(path=text, to="cpu").matches("", parts)}
        if together.find(path) != told:
            wrong.append((path, together.find(path), told))
    assert wrong == []
    assert len(together._globs) == 2

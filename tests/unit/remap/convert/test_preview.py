"""Previews agree with the exports that they announce."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.remap.forms import DROPPED, KEPT, NEVER, NO_TENSORS, NO_WEIGHTS, Form, FormPreview, LeftOut
from inspector.remap.preview import known_by, preview_form
from tests.unit.remap.form_samples import exported, file_of, mapping, module, tensor
from tests.unit.remap.samples import nested, sparse

TRAINING = mapping(
    {
        "model": mapping({"module.a": tensor("0"), "module.b": tensor("1"), "module.c": tensor("0")}),
        "optimizer": mapping({"t": tensor("2"), "p": nested(*map(tensor, "2323")), "n": b"K\x01"}),
        "epoch": b"K\x03",
    }
)
FORMS = [
    Form(only_weights=True),
    Form(only_weights=True, cast="float16"),
    Form(only_weights=True, exclude=("model/module.b", "optimizer/n")),
    Form(shape="state-dict"),
    Form(shape="safetensors"),
    Form(shape="safetensors", only_weights=True, cast="bfloat16"),
    Form(compact=True),
    Form(exclude=("optimizer", "epoch")),
    Form(exclude=("optimizer/n", "optimizer/t", "optimizer/p")),
    Form(strip_prefix="module."),
    Form(strip_prefix="model", only_weights=True),
]


def preview(path: Path, form: Form) -> FormPreview:
    return preview_form(open_checkpoint(str(path)), form)


@pytest.mark.parametrize("form", FORMS)
def test_preview_is_what_the_export_does(tmp_path, form, monkeypatch) -> None:
    source = file_of(tmp_path, TRAINING, keys="0123")
    told = preview(source, form)
    if form.cast is None:
        _, made = exported(source, form)
        assert told.tensors == made.tensors
        assert (told.model, told.prefix, told.tied) == (made.model, made.prefix, made.tied)
        assert sorted(told.left_out) == sorted(made.left_out)
        assert told.source_nbytes == made.source_nbytes
        assert 0.5 < told.nbytes / made.nbytes < 1.5
    assert told.refusals == ()


def test_cast_halves_what_is_cast(tmp_path) -> None:
    root = mapping({"a": tensor("0"), "b": tensor("1", cls="torch.IntStorage")})
    source = file_of(tmp_path, root)
    for shape in ("same", "safetensors"):
        sizes = [
            preview(source, Form(only_weights=True, shape=shape, cast=cast)).nbytes
            for cast in (None, "float16")
        ]
        assert sizes[0] - sizes[1] == 8


def test_compact_counts_what_is_viewed(tmp_path) -> None:
    root = mapping({"a": tensor("0", geometry="0;1;1"), "b": tensor("1")})
    source = file_of(tmp_path, root)
    whole, cut = (
        preview(source, Form(only_weights=True, compact=compact)).nbytes for compact in (False, True)
    )
    assert whole - cut == 12


def test_buffers_that_are_not_saved_are_told_from_their_text(tmp_path) -> None:
    root = module({"w": tensor("0")}, {"a": tensor("1"), "b": tensor("1")}, unsaved=("a",))
    source = file_of(tmp_path, root)
    told = preview(source, Form(shape="state-dict"))
    assert told.tensors == 2
    assert exported(source, Form(shape="state-dict"))[1].tensors == 2


def test_what_cannot_be_written_is_told(tmp_path) -> None:
    source = file_of(
        tmp_path, mapping({"a": tensor("0"), "s": sparse(tensor("0"), tensor("1")), "b": tensor("1")})
    )
    assert preview(source, Form(shape="safetensors")).refusals == ("s is sparse_coo",)
    assert preview(source, Form(only_weights=True)).refusals == ()
    with pytest.raises(PlanError, match="only weights can be cast"):
        preview(source, Form(cast="float16"))
    with pytest.raises(PlanError, match="do not begin with"):
        preview(source, Form(strip_prefix="net."))


def test_empty_tensors_are_not_tied(tmp_path) -> None:
    root = mapping({"a": tensor("0", numel=0) + b"q\x05", "b": b"h\x05", "c": tensor("1")})
    assert preview(file_of(tmp_path, root), Form(shape="safetensors")).tied == ()


def test_branches_are_told_once(tmp_path) -> None:
    source = file_of(tmp_path, TRAINING, keys="0123")
    assert preview(source, Form(exclude=("optimizer/**",))).left_out == (
        LeftOut("optimizer/t", "left out on request", 1, 16, is_asked=True),
        LeftOut("optimizer/p", "left out on request", 1, 16, is_asked=True),
        LeftOut("optimizer/n", "left out on request", 0, 0, is_asked=True),
    )


def test_preview_tells_the_fate_of_each_row(tmp_path) -> None:
    checkpoint = open_checkpoint(str(file_of(tmp_path, TRAINING, keys="0123")))
    rows = [row.path for row in checkpoint.tensors]
    parts = [row.part_of is not None for row in checkpoint.tensors]
    form = Form(exclude=("optimizer/t", "epoch", "none"))
    told = preview_form(checkpoint, form)
    assert [rows[i] for i, fate in enumerate(told.fates) if fate == DROPPED] == ["optimizer/t"]
    assert dict(zip([value.path for value in checkpoint.values], told.value_fates, strict=True)) == {
        "optimizer/n": KEPT,
        "epoch": DROPPED,
    }
    assert told.unused == ("none",)
    assert known_by(checkpoint, form)(checkpoint.tensors[0]) == (rows[0],)
    weights = Form(only_weights=True, exclude=("module.b", "optimizer/n"))
    told = preview_form(checkpoint, weights)
    fates = dict(zip(rows, told.fates, strict=True))
    assert (fates["model/module.a"], fates["model/module.b"], fates["optimizer/t"]) == (KEPT, DROPPED, NEVER)
    assert set(told.value_fates) == {NEVER}
    assert told.unused == ()
    assert any(parts)
    assert known_by(checkpoint, weights)(checkpoint.tensors[1]) == ("model/module.b", "module.b")
    assert known_by(checkpoint, weights)(checkpoint.values[0]) == (checkpoint.values[0].path,)


def test_nothing_left_is_refused_by_preview_and_export(tmp_path) -> None:
    source = file_of(tmp_path, TRAINING, keys="0123")
    wrong = []
    for form, why in (
        (Form(exclude=("**",)), NO_TENSORS),
        (Form(exclude=("model", "optimizer")), NO_TENSORS),
        (Form(only_weights=True, exclude=("model/*",)), NO_WEIGHTS),
        (Form(shape="safetensors", exclude=("model",)), NO_WEIGHTS),
    ):
        if preview(source, form).refusals != (why,):
            wrong.append(("preview", form))
        with pytest.raises(PlanError, match=why):
            exported(source, form)
    assert wrong == []

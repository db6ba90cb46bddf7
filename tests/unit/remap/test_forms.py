"""Which forms there are, and what patterns leave out."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import PlanError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.remap.forms import (
    DROPPED,
    KEPT,
    NEVER,
    NO_TENSORS,
    NO_WEIGHTS,
    Form,
    FormPreview,
    LeftOut,
    Patterns,
    check_form,
    choose_shape,
    lineage_of,
    refuse_suffix,
)
from inspector.remap.objects import Model, find_prefix, left_beside, name_in, select_model
from inspector.remap.preview import known_by, preview_form
from inspector.remap.rules import Rule, literal_pattern
from inspector.resources import demo_path
from tests.builders import pickles, scripts
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.remap.form_samples import exported, file_of, mapping, module, opened, tensor
from tests.unit.remap.samples import nested, sparse


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


# ------------------------------------------------------------------------------------------------------------
# What an export would hold, told from the rows alone.


WEIGHTS = Form(only_weights=True)
STATE = mapping({"a": tensor("0"), "b": tensor("1")})
OTHER = mapping({"x": tensor("0"), "y": tensor("1")})
NESTED = mapping({"model": mapping({"a": tensor(), "b": tensor(), "extra": OTHER})})


def paths(checkpoint: Checkpoint, **how: object) -> str:
    return select_model(checkpoint, Form(only_weights=True, **how)).path


@table(
    ("root", "expected"),
    [
        (STATE, Model((), "", False, False)),
        (mapping({"model": STATE, "epoch": b"K\x01"}), Model(("model",), "model", False, False)),
        (mapping({"state": mapping({"net": STATE})}), Model(("state", "net"), "state/net", False, False)),
        (module({"w": tensor()}), Model((), "", True, False)),
        (mapping({"net": module({"w": tensor()})}), Model(("net",), "net", True, False)),
        (mapping({"model": b"N", "ema": STATE}), Model(("ema",), "ema", False, True)),
        (mapping({"model": STATE, "model_ema": OTHER}), Model(("model",), "model", False, False)),
        # One tensor alone is not recognized as weights, but nothing else could be meant.
        (mapping({"w": tensor(), "c": mapping({"d": b"K\x01"})}), Model((), "", False, False)),
        # A dictionary within a model is a part of it.
        (NESTED, Model(("model",), "model", False, False)),
    ],
)  # fmt: skip
def test_model_is_found_where_it_stands(tmp_path: Path, root, expected) -> None:
    assert select_model(opened(tmp_path, root), WEIGHTS) == expected


def test_model_is_named_where_there_are_several(tmp_path) -> None:
    checkpoint = opened(tmp_path, mapping({"g": STATE, "d": mapping({"inner": OTHER}), "ema": STATE}))
    with pytest.raises(PlanError, match=r"the file holds several models: g, d/inner \(name one"):
        paths(checkpoint)
    assert paths(checkpoint, path="g") == "g"
    assert paths(checkpoint, path="d") == "d/inner"
    assert paths(checkpoint, strip_prefix="g") == "g"
    assert paths(checkpoint, ema=True) == "ema"
    with pytest.raises(PlanError, match=r"no weights stand at nowhere: g, d/inner, ema$"):
        paths(checkpoint, path="nowhere")


@table(
    ("root", "form", "said"),
    [
        (mapping({"a": b"K\x01"}), WEIGHTS, "no weights of a model were recognized"),
        (
            STATE,
            Form(only_weights=True, ema=True),
            "no averaged weights were recognized: the checkpoint itself",
        ),
        (tensor(), WEIGHTS, "no weights of a model were recognized"),
        (pickles.list_(tensor(), tensor("1")), WEIGHTS, "no weights of a model were recognized"),
    ],
)
def test_what_is_not_there_is_said(tmp_path, root, form, said) -> None:
    with pytest.raises(PlanError, match=said):
        select_model(opened(tmp_path, root), form)


def test_names_are_those_that_torch_gives(tmp_path) -> None:
    root = mapping(
        {"net": module({"w": tensor()}, modules={"a": module({}, {"m": tensor("1")})}), "b": tensor()}
    )
    checkpoint = opened(tmp_path, root)
    model = select_model(checkpoint, Form(shape="state-dict", path="net"))
    assert [name_in(model, row) for row in checkpoint.tensors] == ["w", "a.m", None]
    flat = select_model(opened(tmp_path, mapping({"model": mapping({"a.b": tensor(), "c": OTHER})})), WEIGHTS)
    rows = opened(tmp_path, mapping({"model": mapping({"a.b": tensor(), "c": OTHER})})).tensors
    assert [name_in(flat, row) for row in rows] == ["a.b", None, None]


def test_tensors_elsewhere_in_a_module_have_no_name(tmp_path) -> None:
    state = mapping(
        {"_parameters": mapping({"w": tensor()}), "_modules": b"}", "cache": mapping({"t": tensor("1")})}
    )
    checkpoint = opened(tmp_path, pickles.name("mine.Net") + b")\x81" + state + b"b")
    model = select_model(checkpoint, WEIGHTS)
    assert [name_in(model, row) for row in checkpoint.tensors] == ["w", None]


# --- prefixes -----------------------------------------------------------------------------------------------


@table(
    ("form", "names", "expected"),
    [
        (WEIGHTS, ["module.a", "module.b"], "module."),
        (WEIGHTS, ["_orig_mod.module.a"], "_orig_mod.module."),
        (WEIGHTS, ["module._orig_mod.module.a"], "module._orig_mod.module."),
        (WEIGHTS, ["module.a", "b"], ""),
        (WEIGHTS, ["module."], ""),
        (WEIGHTS, ["net.a"], ""),
        (WEIGHTS, [], ""),
        (Form(shape="state-dict"), ["module.a"], ""),
        (Form(strip_prefix="net."), ["net.a", "net.b"], "net."),
        (Form(only_weights=True, strip_prefix="module."), ["module.module.a"], "module."),
    ],
)
def test_prefix_is_removed_if_all_names_have_it(form, names, expected) -> None:
    assert find_prefix(form, names) == expected


# --- what is left out ---------------------------------------------------------------------------------------


def test_what_stands_beside_a_model_is_one_row_a_branch(tmp_path) -> None:
    root = mapping(
        {
            "epoch": b"K\x01",
            "run": mapping(
                {"model": STATE, "note": b"K\x02", "aux": mapping({"n": b"K\x01", "t": tensor("0")})}
            ),
            "model_ema": OTHER,
            "rng_state": tensor("1"),
        }
    )
    checkpoint = opened(tmp_path, root)
    found = left_beside(checkpoint, select_model(checkpoint, WEIGHTS))
    assert found == [
        LeftOut("run/aux", "not among the model's weights", 1, 16),
        LeftOut("model_ema", "averaged weights", 2, 32),
        LeftOut("rng_state", "the state of a random generator", 1, 16),
        LeftOut("epoch", "no tensor", 0, 0),
        LeftOut("run/note", "no tensor", 0, 0),
    ]


def test_what_a_module_packs_in_its_own_way_is_lost(tmp_path) -> None:
    packed = mapping({"_parameters": mapping({"w": tensor()}), "packed": module({"x": tensor("1")})})
    checkpoint = opened(tmp_path, pickles.name("mine.Net") + b")\x81" + packed + b"b")
    (left,) = left_beside(checkpoint, select_model(checkpoint, WEIGHTS))
    assert (left.path, left.tensors, left.is_lost) == (".packed/._parameters/x", 1, True)
    assert left.why == "its module packs it in its own way"


def test_program_is_one_model_with_dotted_names() -> None:
    script = build_checkpoint(read_container(BytesSource(scripts.script(), "net.pt")))
    model = select_model(script, Form(only_weights=True))
    assert model == Model((), "", False, False, True)
    names = [name_in(model, row) for row in script.tensors]
    assert names == ["weight", "mean", None, "child.b"]
    (left,) = left_beside(script, model)
    assert (left.path, left.tensors, left.nbytes) == ("kept", 1, 16)
    frozen = scripts.script(pickles.new("__torch__.Net"), constants=pickles.tuple_(scripts.weight()))
    with pytest.raises(PlanError, match="no weights with names"):
        select_model(build_checkpoint(read_container(BytesSource(frozen, "net.pt"))), Form(only_weights=True))


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

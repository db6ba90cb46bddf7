from __future__ import annotations

from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import PlanError
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.remap.forms import Form, LeftOut
from inspector.remap.selection import Model, find_prefix, left_beside, name_in, select_model, without_choice
from tests.builders import pickles, scripts
from tests.sweep import table
from tests.unit.remap.form_samples import mapping, module, opened, tensor

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


def test_names_without_the_prefix_are_told() -> None:
    names = ["net.a", "net.", "x" * 200, *"bcdefg"]
    with pytest.raises(PlanError, match=r"8 names do not begin with 'net\.': net\., x{79}., b, c, d, e$"):
        find_prefix(Form(strip_prefix="net."), names)


def test_prefix_that_named_a_model_is_none(tmp_path) -> None:
    model = Model(("g",), "g", False, False)
    assert without_choice(Form(strip_prefix="g"), model) == Form(path="g")
    assert without_choice(Form(strip_prefix="g."), model) == Form(strip_prefix="g.")
    assert without_choice(Form(strip_prefix="g", path="g"), model) == Form(strip_prefix="g", path="g")


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

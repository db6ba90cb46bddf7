"""Which styles a file offers, and that nothing in a file can become code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.records import replace
from inspector.snippet.styles.table import offered_styles, render, styles
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.sweep import table, tries
from tests.unit.snippet.free import comments_of, shape_of
from tests.unit.snippet.rows import SAFE, THIS, checkpoint, optimizer, storage, tensor, value
from tests.work import growth

ANYTHING = st.one_of(
    st.text(st.characters(), max_size=8),
    st.sampled_from(
        [
            'x"); evil("',
            "x'); evil('",
            "\nevil()\n",
            "\r\x0b\x0c\x1c\x85\u2028evil()",
            "\\",
            '"""',
            "{evil()}",
            "#",
            "\\\nevil()",
            "\ud800",
            "model",
            "module.evil",
            "_orig_mod.evil",
        ]
    ),
)


PRETRAINED = "folder/pytorch_model.bin"
LIGHTNING = checkpoint(
    tensor("state_dict", "model.w", device="cuda:0"),
    values=(value("pytorch-lightning_version", type="str"), value("hyper_parameters", "lr")),
    names=("a.b",),
)
MODULE = checkpoint(tensor("._parameters", "w", device="cuda:0"), root="module", names=("nets.Net",))


SPREAD = ["distributed", "distributed-broadcast", "fsdp", "accelerate", "deepspeed"]


def ids(rows: Checkpoint) -> list[str]:
    return [style.id for style in styles(rows)]


def test_every_file_of_torch_offers_plain() -> None:
    both = [("plain", "Load"), ("save", "Save the next one")]
    assert [(style.id, style.label) for style in styles(checkpoint())] == both
    assert all(ids(checkpoint(form=form)) == ["plain", "save"] for form in ("zip", "legacy", "tar"))


def test_training_run_is_resumed() -> None:
    model, adam = tensor("m", "w"), optimizer("o")
    both = ids(checkpoint(model, optimizers=(adam,)))
    assert both == ["resume", "plain", *SPREAD, "save"]
    assert ids(checkpoint(model)) == ["plain", *SPREAD, "save"]
    assert ids(checkpoint(optimizers=(adam,))) == ["resume", "plain", "save"]


def test_each_kind_of_file_offers_its_own_styles_first() -> None:
    weights = tensor("state_dict", "l.weight")
    for rows, expected in (
        (LIGHTNING, ["lightning", "lightning-weights", "plain", *SPREAD, "save"]),
        (checkpoint(weights, path="a\\pytorch_model.bin"), ["plain", *SPREAD, "save", "transformers"]),
        (checkpoint(tensor("images")), ["data", "plain", "save"]),
        (MODULE, ["module", "plain", "module-weights", "distributed", "accelerate", "deepspeed", "save"]),
        (
            checkpoint(tensor("m", "q.lora_A.weight"), path="a/adapter_model.bin"),
            ["peft", "plain", *SPREAD, "save"],
        ),
    ):
        assert ids(rows) == expected


def test_only_what_the_file_speaks_for_is_offered_unasked() -> None:
    def offered(rows: Checkpoint, wanted: str | None = None) -> set[str]:
        return {style.id for style in offered_styles(rows, wanted)} & set(SPREAD)

    weights, both = tensor("net", "l.weight"), {"distributed", "distributed-broadcast"}
    version = value("ds_version", type="str")
    gpus = tuple(storage(f"cuda:{index}") for index in range(2))
    for rows, expected in (
        (checkpoint(weights), set()),
        (checkpoint(weights, storages=gpus[:1]), set()),
        (checkpoint(weights, storages=gpus), both),
        (checkpoint(tensor("net", "module.l.weight")), both),
        (checkpoint(tensor("net", "_fsdp_wrapped_module.l.weight")), {*both, "fsdp"}),
        (checkpoint(weights, path=PRETRAINED), {"accelerate"}),
        (checkpoint(tensor("module", "l.weight"), values=(version,)), {"deepspeed"}),
    ):
        assert offered(rows) == expected
        assert offered(rows, "fsdp") == {*expected, "fsdp"}


def test_from_pretrained_is_first_where_it_works(tmp_path) -> None:
    """Accelerate and DeepSpeed write weights of that name, too, beside no `config.json`."""
    rows = checkpoint(tensor("state_dict", "l.weight"), path=f"{tmp_path}/pytorch_model.bin")
    assert ids(rows) == ["plain", *SPREAD, "save", "transformers"]
    assert "lacks the config.json" in render(rows, style="transformers", target=THIS)
    (tmp_path / "config.json").touch()
    rows = replace(rows)
    assert ids(rows)[:2] == ["transformers", "plain"]
    assert "lacks" not in render(rows, style=None, target=THIS)


def test_what_fits_best_is_written_where_no_style_is_chosen() -> None:
    for rows in (LIGHTNING, MODULE, checkpoint(tensor("images")), checkpoint()):
        assert render(rows, style=None, target=THIS) == render(rows, style=ids(rows)[0], target=THIS)


def test_loaders_that_may_run_what_torch_refuses_are_not_offered() -> None:
    weights, names = tensor("state_dict", "q.lora_A.weight"), ("os.system",)
    version = value("ds_version", type="str")
    for rows, missing in (
        (replace(LIGHTNING, globals=(GlobalUse(name="os.system", count=1),)), "lightning"),
        (checkpoint(weights, path=PRETRAINED, names=names), "transformers"),
        (checkpoint(weights, path="adapter_model.bin", names=names), "peft"),
        (checkpoint(tensor("module", "l.weight"), values=(version,), names=names), "deepspeed"),
    ):
        assert missing not in ids(rows)
        assert missing in ids(replace(rows, globals=()))
        assert "plain" in ids(rows)
    assert "deepspeed" in ids(checkpoint(weights, names=names))


def test_every_style_that_is_offered_is_written() -> None:
    for rows in (LIGHTNING, MODULE, checkpoint(tensor("images")), checkpoint(tensor("w"), path=PRETRAINED)):
        for style in ids(rows):
            ast.parse(render(rows, style=style, target=THIS))


def test_data_is_no_model_even_if_its_names_could_be_those_of_parameters() -> None:
    rows = checkpoint(tensor("x", role="parameter"), tensor("y", role="buffer"))
    assert "load_state_dict" not in render(rows, style="plain", target=THIS)


def test_formats_that_need_only_their_loader() -> None:
    rows = checkpoint(tensor("w"), form="safetensors", path="model.safetensors")
    assert ids(rows) == ["plain", "transformers"]
    assert "load_file(" in render(rows, style="plain", target=THIS)
    assert '"other"' in render(rows, style="transformers", target=THIS, path="other/model.safetensors")


def test_a_plain_pickle_is_loaded_by_code_unless_that_runs_commands() -> None:
    made = open_checkpoint(str(CORPUS / "plain_pickle/state_p4.pkl"))
    assert ids(made) == ["plain"]
    several = open_checkpoint(str(CORPUS / "plain_pickle/two_dumps.pkl"))
    for style in (None, "plain"):
        assert "checkpoints.append(" in render(several, style=style, target=THIS)
        assert "checkpoint = CPUUnpickler(file).load()" in render(
            made, style=style, target=THIS, path="x.pkl"
        )
    with pytest.raises(PlanError, match="no snippet in the style 'resume'"):
        render(made, style="resume", target=THIS)
    evil = checkpoint(form="pickle", names=("os.system",), path="x.pkl")
    assert styles(evil) == ()


@pytest.mark.parametrize("form", ["nonsense"])
def test_formats_that_nothing_here_loads(form: str) -> None:
    rows = checkpoint(tensor("w"), form=form)
    assert styles(rows) == ()
    with pytest.raises(PlanError, match=r"no snippet in the style 'plain'.*does not open this format"):
        render(rows, style="plain", target=THIS)


LARGE: dict[str, Callable[[int], Checkpoint]] = {
    "training": lambda size: checkpoint(
        *(tensor("model", f"l{index}.weight") for index in range(size)),
        *(
            tensor("optimizer", "state", index, slot, role="optimizer")
            for index in range(size)
            for slot in ("exp_avg", "exp_avg_sq")
        ),
        optimizers=(optimizer("optimizer"),),
    ),
    "sequence": lambda size: checkpoint(
        *(tensor(index, role="other") for index in range(size)), root="sequence"
    ),
    "mapping": lambda size: checkpoint(*(tensor(f"x{index}", role="other") for index in range(size))),
    "models": lambda size: checkpoint(*(tensor(f"m{index}", f"w{index}") for index in range(size))),
    "nested": lambda size: checkpoint(*(tensor(index, index, "w") for index in range(size))),
    "devices": lambda size: checkpoint(*(tensor("w", device=f"cuda:{index}") for index in range(size))),
    "states": lambda size: checkpoint(
        tensor("m", "w"),
        values=tuple(
            value(name, place)
            for name in map(str, range(size))
            for place in ("last_epoch", "base_lrs", "scale", "_growth_tracker")
        ),
        optimizers=tuple(optimizer(index) for index in range(size)),
    ),
    "globals": lambda size: checkpoint(names=tuple(f"m.c{index}" for index in range(size))),
    "prefixes": lambda size: checkpoint(tensor("m", "module." * size)),
}


@pytest.mark.wide
@table("kind", LARGE)
def test_code_for_a_large_file_is_written_in_proportion(kind: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        rows = LARGE[kind](size)
        return lambda: [render(rows, style=style.id, target=THIS) for style in styles(rows)]

    assert growth(prepare, 300, 1_200) < 1.2


@table("style", ["resume", "nonsense", "evil\n"])
def test_style_that_is_not_offered(style: str) -> None:
    with pytest.raises(PlanError, match=r"no snippet in the style.*it offers plain, save"):
        render(checkpoint(), style=style, target=THIS)


def test_path_is_the_checkpoints_own_unless_another_is_given() -> None:
    rows = checkpoint(path="mine.pt")
    assert '"mine.pt"' in render(rows, style="plain", target=THIS)
    assert '"other.pt"' in render(rows, style="plain", target=THIS, path="other.pt")


def training_run(texts: tuple[str, ...], names: tuple[str, ...]) -> Checkpoint:
    """A checkpoint with a place for each text, of the same shape whatever the texts are."""
    model, adam, key, state, path, device = texts
    return checkpoint(
        tensor(f"m{model}", f"w{key}", device=f"!{device}"),
        tensor("o", adam, "state", 0, f"s{key}", role="optimizer", device=f"!{device}"),
        tensor(f"r{state}", "cuda", 0, role="rng", nbytes=16),
        tensor(f"r{state}", "cpu", role="rng", nbytes=5056),
        tensor("e", f"e{key}", "w", role="ema"),
        values=(
            value(f"s{state}", "last_epoch"),
            value(f"s{state}", "base_lrs"),
            value(f"a{state}", "scale"),
            value(f"a{state}", "_growth_tracker"),
            value("epoch", text=key),
        ),
        optimizers=(optimizer("o", adam),),
        names=names,
        path=path,
    )


@pytest.mark.wide
@settings(max_examples=tries(8, 30))
@given(st.tuples(*[ANYTHING] * 6))
def test_no_key_path_or_device_can_change_what_a_snippet_does(texts: tuple[str, ...]) -> None:
    tame = training_run(("a", "b", "c", "d", "e", "f"), ())
    wild = training_run(texts, ())
    for style, target in product(("plain", "resume", *SPREAD, "save"), (CPU_ONLY, THIS)):
        expected = render(tame, style=style, target=target)
        code = render(wild, style=style, target=target)
        assert code.isascii()
        assert shape_of(code) == shape_of(expected)
        assert comments_of(code) == comments_of(expected)


def odd_files(texts: tuple[str, ...]) -> Iterator[Checkpoint]:
    """A file for each of the other styles, of the same shape whatever the texts are."""
    key, other, path, device = texts
    name = f"w{key}"
    yield checkpoint(
        tensor("state_dict", f"n.{name}", device=f"!{device}"),
        values=(value("pytorch-lightning_version"), value("hyper_parameters", other)),
        path=f"{path}/pytorch_model.bin",
    )
    yield checkpoint(tensor(f"m{other}", "._parameters", name, device=f"!{device}"), path=path)
    yield checkpoint(tensor("x", f"c{key.replace('.', '')}", device=f"!{device}"), path=path)
    dataset = tensor(f"d{key}", ".tensors", 0, role="other", device=f"!{device}")
    yield checkpoint(dataset, names=("torch.utils.data.dataset.TensorDataset",), path=path)


@pytest.mark.wide
@settings(max_examples=tries(5, 15))
@given(st.tuples(*[ANYTHING] * 4))
def test_nor_does_it_in_files_of_other_kinds(texts: tuple[str, ...]) -> None:
    for tame, wild in zip(odd_files(("a", "b", "c", "d")), odd_files(texts), strict=True):
        assert ids(wild) == ids(tame)
        for style, target in product(ids(tame), (CPU_ONLY, THIS)):
            expected = render(tame, style=style, target=target)
            code = render(wild, style=style, target=target)
            assert code.isascii()
            assert shape_of(code) == shape_of(expected)
            assert comments_of(code) == comments_of(expected)


@given(st.text("ab._", max_size=6) | ANYTHING)
def test_a_module_is_imported_by_a_plain_name_or_not(name: str) -> None:
    rows = checkpoint(tensor("._parameters", "w"), root="module", names=(f"{name}.Net",), safety=SAFE)
    tree = ast.parse(render(rows, style="module", target=THIS))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    asked = {
        "hasattr",
        "torch.cuda.is_available",
        "torch.xpu.is_available",
        "torch.backends.mps.is_available",
    }
    calls = {call.replace("model_2", "model") for call in calls}
    assert calls <= {"torch.load", "importlib.import_module", "model.eval", "model.to", *asked}
    (names,) = [node.iter for node in tree.body if isinstance(node, ast.For)] or [ast.List(elts=[])]
    assert all(part.isidentifier() for item in names.elts for part in item.value.split("."))


@given(st.tuples(ANYTHING, ANYTHING))
def test_no_destination_can_either(texts: tuple[str, str]) -> None:
    rows = checkpoint(tensor("m", "w", device="cuda:0"), optimizers=(optimizer("o"),))
    for style in ("plain", "resume"):
        tame = render(rows, style=style, target=THIS, mapping=(("cuda:0", "x"),))
        wild = render(rows, style=style, target=THIS, mapping=(("cuda:0", texts[0] + "!"), (texts[1], "y")))
        assert shape_of(wild) == shape_of(tame)


@given(st.lists(st.one_of(ANYTHING, st.text("ab._", max_size=6)), min_size=1, max_size=3))
def test_a_global_becomes_a_plain_name_or_nothing(parts: list[str]) -> None:
    code = render(checkpoint(names=(".".join(parts),)), style="plain", target=THIS)
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    assert all(isinstance(node, allowed) for node in ast.parse(code).body)
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    assert set(calls) <= {
        "torch.load",
        "torch.serialization.add_safe_globals",
        "type",
        "numpy.dtype",
        "resolve_name",
    }
    assert "evil()" not in code

from __future__ import annotations

import ast
import json

import pytest

from inspector.resources import demo_path
from tests.builders.scripts import evil, script
from tests.corpus import CORPUS
from tests.sweep import table

DEMO = demo_path()


def test_a_snippet_is_code_and_nothing_else(cli) -> None:
    answer = cli("snippet", DEMO)
    assert (answer.code, answer.err) == (0, "")
    ast.parse(answer.out)
    assert "torch.load" in answer.out
    assert answer.out.endswith("\n")


def test_style_that_fits_best_is_the_default(cli) -> None:
    assert cli("snippet", DEMO).out == cli("snippet", DEMO, "--style", "resume").out
    data = CORPUS / "zip" / "many_storages.pt"
    assert cli("snippet", data, "--target", "cpu").code == 0


def test_code_that_saves(cli) -> None:
    answer = cli("snippet", DEMO, "--save")
    assert answer.out == cli("snippet", DEMO, "--style", "save").out
    assert "torch.save(checkpoint, " in answer.out
    assert cli("snippet", DEMO, "--save", "--style", "plain").code == 2


@table("style", ["plain", "resume"])
@table(
    "options",
    [
        [],
        ["--target", "cpu"],
        ["--target", "this"],
        ["--target", "2xcuda", "--map", "cuda:1=cpu"],
        ["--map", "*=cpu"],
    ],
)
def test_snippets_for_maps_and_targets(cli, style, options) -> None:
    answer = cli("snippet", DEMO, "--style", style, *options)
    assert answer.code == 0
    ast.parse(answer.out)
    assert "cpu" in answer.out or not options or options == ["--target", "this"]


@table(
    ("arguments", "code", "said"),
    [
        (["missing"], 3, "no such file: missing"),
        ([DEMO, "--map", "cuda0=cpu"], 2, "the rule matches nothing: nothing in the file is on 'cuda0'"),
        ([DEMO, "--style", "baroque"], 2, "there is no style 'baroque' (styles are lightning, "),
        ([DEMO, "--style", "resme"], 2, "there is no style 'resme' (did you mean resume? styles are "),
        ([DEMO, "--style", "peft"], 2, "this file offers no snippet in the style 'peft' (it offers resume, "),
        ([DEMO, "--target", "moon"], 2, "unknown target 'moon'"),
        ([DEMO, "--map", "moon"], 2, "the rule 'moon' is not understood"),
        ([DEMO, "--map", "path:optimizer/**@cpu"], 2, "snippets can map devices only, not paths"),
    ],
)
def test_snippets_that_cannot_be_given(cli, arguments, code, said) -> None:
    answer = cli("snippet", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith(f"checkpoint-inspector: error: {said}")
    assert answer.err.count("\n") == 1


def test_code_for_torchscript_takes_one_device(cli) -> None:
    for options, said in (
        ([], "map_location=device"),
        (["--map", "*=cpu"], 'map_location="cpu"'),
        (["--map", "cpu=cuda:3"], 'map_location="cuda:3"'),
    ):
        answer = cli("snippet", CORPUS / "torchscript/conv.pt", *options)
        assert (answer.code, answer.err) == (0, ""), options
        ast.parse(answer.out)
        assert said in answer.out, options
        assert "torch.jit.load(" in answer.out


def test_code_for_other_loaders(cli) -> None:
    for name, options, said in (
        ("safetensors/all.safetensors", ["--target", "cuda"], 'device="cuda:0"'),
        ("export/model.pt2", [], "torch.export.load("),
        ("hf_sharded/pytorch_model.bin.index.json", [], '["weight_map"]'),
        ("hf_sharded/pytorch_model.bin.index.json", ["--style", "transformers"], "from_pretrained("),
        ("package/pkg.pt", [], 'importer.load_pickle("model", "sd.pkl", map_location=device)'),
    ):
        answer = cli("snippet", CORPUS / name, *options)
        assert (answer.code, answer.err) == (0, ""), name
        ast.parse(answer.out)
        assert said in answer.out, name


def test_no_code_for_archives_that_do_harm(cli, tmp_path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(script(evil()))
    answer = cli("snippet", path)
    assert (answer.code, answer.out) == (2, "")
    assert "none: a pickle in it is made to run commands" in answer.err


def test_code_for_what_is_not_read_comes_with_the_reason(cli, tmp_path) -> None:
    (tmp_path / "config.json").write_text("{}")
    answer = cli("snippet", tmp_path, "--style", "transformers")
    assert answer.code == 0
    ast.parse(answer.out)
    assert "from_pretrained(" in answer.out
    assert answer.err.startswith("checkpoint-inspector: the file itself was not read: ")
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text("{")
    answer = cli("snippet", index, "--map", "*=cpu")
    assert answer.code == 0
    assert str(index) in answer.out
    assert "device" not in answer.out
    assert answer.err.startswith("checkpoint-inspector: the file itself was not read: the file is no valid ")


@pytest.mark.parametrize(
    ("options", "said"), [([], "dcp_to_torch_save("), (["--style", "distributed"], "dcp.load(")]
)
def test_code_for_distributed_checkpoints(cli, options, said) -> None:
    answer = cli("snippet", CORPUS / "dcp/plain", *options)
    assert (answer.code, answer.err) == (0, "")
    ast.parse(answer.out)
    assert said in answer.out


@pytest.mark.parametrize(
    ("name", "style", "code"),
    [("zip", "plain", 3), ("torchscript/conv.pt", "lightning", 2)],
)
def test_no_code_for_what_no_loader_is_known_for(cli, name, style, code) -> None:
    answer = cli("snippet", CORPUS / name, "--style", style)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("checkpoint-inspector: error: this ")


# --- files of frameworks, with code that torch runs ---------------------------------------------------------

FRAMEWORKS = CORPUS.parent / "frameworks"


def net(torch):
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(3, 4, 3),
        layers.BatchNorm2d(4),
        layers.Flatten(),
        layers.Linear(16, 5),
        layers.Linear(5, 5),
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("optimizer_object.pt", "resume"),
        ("optimizer_alone_cuda.pt", "resume"),
        ("swa_model.pt", "resume"),
        ("averaged_state.pt", "resume"),
        ("averaged_state.pt", "plain"),
    ],
)
def test_code_for_files_of_frameworks_is_run_by_torch(name: str, style: str, cli) -> None:
    torch = pytest.importorskip("torch")
    code = cli("snippet", FRAMEWORKS / "torch" / name, "--target", "cpu", "--style", style).out
    model = net(torch)
    kind = torch.optim.SGD if name == "swa_model.pt" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=0.5)
    found = {
        "model": model,
        "optimizer": optimizer,
        "swa_scheduler": torch.optim.swa_utils.SWALR(optimizer, 1),
    }
    exec(compile(code, "snippet", "exec"), found)
    if "optimizer" in code:
        assert optimizer.param_groups[0]["lr"] != 0.5
        assert len(optimizer.state) == 8
    if "Averaged" in code:
        averages = found["swa_model" if "swa_model" in code else "model"]
        assert int(averages.n_averaged) == 1


def test_every_style_takes_the_state_of_an_optimizer_that_was_pickled_whole(cli) -> None:
    for style in ("resume", "accelerate", "distributed", "fsdp"):
        answer = cli("snippet", FRAMEWORKS / "torch" / "optimizer_object.pt", "--style", style)
        if answer.code == 0 and 'checkpoint["optimizer"]' in answer.out:
            assert 'checkpoint["optimizer"].state_dict()' in answer.out, style


def test_code_is_written_to_a_file_whole_or_not_at_all(cli, tmp_path) -> None:
    out = tmp_path / "load.py"
    answer = cli("snippet", DEMO, "-o", out)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    code = cli("snippet", DEMO, "-o", "-").out
    assert out.read_text() == code == cli("snippet", DEMO).out
    said = {
        ("-o", out): (4, "the file already exists"),
        ("-o", tmp_path / "x.pth"): (
            2,
            "the file name is one for a checkpoint, but the file would hold Python",
        ),
        ("-o", tmp_path / "x.safetensors", "--json"): (2, "the file name is one for a checkpoint"),
        ("-o", tmp_path / "no" / "x.py"): (4, "no such folder"),
        (DEMO, "-o", tmp_path / "y.py"): (2, "-o is for the code of one file"),
    }
    for options, (code_of, sentence) in said.items():
        answer = cli("snippet", DEMO, *options)
        assert (answer.code, sentence in answer.err) == (code_of, True), options
    assert json.loads(cli("snippet", DEMO, "-o", out, "--force", "--json").out)["code"] == code
    assert list(tmp_path.iterdir()) == [out]


def test_code_for_several_files_stands_below_their_names(cli) -> None:
    answer = cli("snippet", DEMO, DEMO, "missing.pth")
    ast.parse(answer.out)
    assert [line for line in answer.out.splitlines() if line == f"# {DEMO}"] == [f"# {DEMO}"] * 2
    assert answer.code == 3
    assert answer.err.splitlines()[-1] == (
        "checkpoint-inspector: 3 files: 2 have their code above, 1 could not be read"
    )

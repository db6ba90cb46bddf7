"""Formats whose loader is all one has to know, as text; `tests/torch/test_snippets_formats.py` runs them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.errors import CheckpointError, PlanError
from inspector.model.build import open_checkpoint
from inspector.snippet.unopened import code_for_refused, render_unopened, unopened_styles
from inspector.target.profile import CPU_ONLY, presets
from inspector.target.wish import parse_target
from tests.builders.folders import two_shards
from tests.builders.pickles import call, proto, stream, text
from tests.sweep import table
from tests.unit.snippet.rows import THIS

FORMS = {
    "torchscript": "model.pt",
    "pt2": "model.pt2",
    "safetensors": "run/model.safetensors",
    "tied": "run/model.safetensors",
    "folder": "run",
    "sharded": "run/pytorch_model.bin.index.json",
    "dcp": "run/step_10",
    "megatron": "run",
    "npy": "a.npy",
    "npz": "a.npz",
    "stable-baselines3": "agent.zip",
    "pickle": "data.pkl",
    "gguf": "model.gguf",
    "pretrained": "run",
}


def test_styles() -> None:
    assert unopened_styles("safetensors", "a/model.safetensors") == ("plain", "transformers")
    assert unopened_styles("safetensors", "a/lora.safetensors") == ("plain",)
    assert unopened_styles("safetensors", "a/adapter_model.safetensors") == ("plain", "peft")
    assert unopened_styles("dcp", "run") == ("plain", "distributed")
    assert unopened_styles("pretrained", "run") == ("transformers",)
    assert unopened_styles("zip", "a.pt") == unopened_styles("nonsense", "a.pt") == ()


@table(("form", "path"), FORMS.items())
def test_every_style_is_code_for_every_machine(form: str, path: str) -> None:
    for style in unopened_styles(form, path):
        for target in (*presets(), THIS):
            text = render_unopened(form, path, target, style=style)
            ast.parse(text)
            assert ("device = " in text) == (target is THIS and "device" in text)


def test_plain_stands_for_the_only_style() -> None:
    assert render_unopened("pretrained", "run", THIS) == render_unopened(
        "pretrained", "run", THIS, style="transformers"
    )


@pytest.mark.parametrize(("form", "style"), [("torchscript", "resume"), ("odd", "plain")])
def test_style_that_is_not_offered(form: str, style: str) -> None:
    with pytest.raises(PlanError, match="offers no snippet"):
        render_unopened(form, "a.pt", THIS, style=style)


@table(
    ("form", "target", "expected"),
    [
        ("torchscript", "mps", 'model = torch.jit.load("model.pt", map_location="mps")\n'),
        ("pt2", "cuda", 'program = move_to_device_pass(program, "cuda:0")\n'),
        ("pt2", "cpu", 'program = torch.export.load("model.pt2")\nmodel = program.module()\n'),
        ("safetensors", "xpu", 'state_dict = load_file("run/model.safetensors", device="xpu:0")\n'),
        ("safetensors", "cpu", 'state_dict = load_file("run/model.safetensors")\n'),
        ("gguf", "cuda", "import torch\nfrom gguf import GGUFReader, dequantize\n"),
        ("gguf", "cuda", 'reader = GGUFReader("model.gguf")\n'),
        ("dcp", "cpu", 'dcp_to_torch_save("run/step_10", "run/step_10.pth")\n'),
    ],
)
def test_what_is_written(form: str, target: str, expected: str) -> None:
    assert expected in render_unopened(form, FORMS[form], parse_target(target))


def test_shards_are_read_by_what_they_are() -> None:
    of_torch = render_unopened("sharded", "pytorch_model.bin.index.json", CPU_ONLY)
    assert "safetensors" not in of_torch
    safe = render_unopened("sharded", "model.safetensors.index.json", CPU_ONLY)
    assert "state_dict.update(load_file(index.with_name(name)))" in safe
    assert "import torch\n" not in safe


def test_folder_of_adapters() -> None:
    text = render_unopened("safetensors", "run/adapter_model.safetensors", THIS, style="peft")
    assert 'folder = "run"\n' in text
    assert "AutoPeftModelForCausalLM.from_pretrained(folder)\nmodel.to(device)\n" in text


def test_folder_of_a_model() -> None:
    assert 'folder = "run"\n' in render_unopened("pretrained", "run", THIS)
    assert 'folder = "run"\n' in render_unopened("sharded", FORMS["sharded"], THIS, style="transformers")
    assert 'folder = "."\n' in render_unopened("safetensors", "model.safetensors", THIS, style="transformers")


def shape_of(code: str) -> str:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


@pytest.mark.wide
@settings(max_examples=30)  # of some twenty programs each
@given(st.text(st.characters(), max_size=9) | st.sampled_from(['x"); evil("', "\nevil()\n", "{evil()}"]))
def test_no_path_can_change_what_a_snippet_does(path: str) -> None:
    for form in FORMS:
        for style in unopened_styles(form, "x.pt"):
            code = render_unopened(form, f"{path}!", THIS, style=style)
            assert code.isascii()
            assert shape_of(code) == shape_of(render_unopened(form, "x.pt", THIS, style=style))


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(str(path))
    return code_for_refused(str(path), caught.value, THIS)


def test_no_code_that_would_run_commands_is_handed_out(tmp_path: Path) -> None:
    payload = stream(proto(), call("posix.system", text("id")))
    assert refused(tmp_path / "a.pkl", payload[:-1] + b"\xff what no unpickler knows") == ""


def test_no_code_for_a_folder_whose_files_run_commands(tmp_path: Path) -> None:
    index = two_shards(tmp_path)
    evil = stream(proto(), call("posix.system", text("id")))[:-1] + b"\xff what no unpickler knows"
    for path in tmp_path.glob("*.bin"):
        path.write_bytes(evil)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(str(index))
    assert caught.value.programs
    assert code_for_refused(str(index), caught.value, THIS) == ""
    assert "weight_map" in code_for_refused(str(index), CheckpointError("cannot be read"), THIS)


def test_folders_of_several_processes_are_named_by_their_folder(tmp_path: Path) -> None:
    (tmp_path / "latest").write_text("step1")
    root = str(tmp_path)
    for path, said in ((root, ""), (f"{root}/latest", ""), (f"{root}/step1", 'tag="step1"')):
        code = render_unopened("deepspeed", path, CPU_ONLY)
        assert f'"{root}"' in code
        assert said in code
        assert ("tag=" in code) == bool(said)
    assert '"."' in render_unopened("deepspeed", "latest", CPU_ONLY)
    for name in (".metadata", "__0_0.distcp"):
        code = render_unopened("dcp", f"{root}/{name}", CPU_ONLY)
        assert f'dcp_to_torch_save("{root}"' in code.replace("\n    ", "")
    assert "checkpoint-inspector export" in render_unopened("distcp", "a.distcp", CPU_ONLY)


def test_code_for_one_pickle_of_a_package() -> None:
    code = render_unopened("package", "a.pt", CPU_ONLY, inside="a/b/sd.pkl")
    assert 'importer = PackageImporter("a.pt")\n' in code
    assert 'checkpoint = importer.load_pickle("a.b", "sd.pkl", map_location="cpu")\n' in code
    assert '"model", "model.pkl"' in render_unopened("package", "a.pt", CPU_ONLY)
    assert render_unopened("pt2", "a.pt2", CPU_ONLY, inside="x") == render_unopened("pt2", "a.pt2", CPU_ONLY)

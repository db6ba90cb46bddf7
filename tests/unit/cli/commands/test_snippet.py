from __future__ import annotations

import ast
import json

import pytest

from inspector.resources import demo_path
from tests.builders.scripts import evil, script
from tests.corpus import CORPUS

DEMO = demo_path()


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

from __future__ import annotations

from inspector.diagnose.script.answer import answer_script
from inspector.model.build import open_checkpoint
from tests.unit.diagnose.script.following import FILES, check, follow, loaded_as, machine

CORPUS = FILES.parents[1] / "corpus"


def test_loading() -> None:
    check("loading")


def test_files_that_torch_load_is_not_for_and_roots_of_other_kinds() -> None:
    rows = [
        ("import torch\nx = torch.load('sd_cpu.pth')\nx.numpy()\n", {"root": "tensor"}, "works"),
        ("import torch\nx = torch.load('sd_cpu.pth')\nx[0]\n", {"root": "sequence"}, "works"),
        (
            "import torch\nx = torch.load('sd_cpu.pth', map_location=m)\nx.numpy()\n",
            {"root": "tensor"},
            "works",
        ),
        (
            "import torch\nx = torch.load('sd_cpu.pth', map_location=m)\nx.fc1(y)\n",
            {"root": "module"},
            "lost",
        ),
        ("import torch\nx = torch.load('sd_cpu.pth')\n", {"format": "safetensors"}, "fails"),
        (
            "import torch\nx = torch.load('sd_cpu.pth', map_location=m)\n",
            {"format": "safetensors"},
            "lost",
        ),
    ]
    for text, changes, wanted in rows:
        answer = answer_script(text, "a.py", loaded_as("sd_cpu.pth", **changes), machine("cpu"))
        assert answer.outcome == wanted, (text, answer)


def test_files_that_no_argument_opens() -> None:
    rows = [
        (
            "hostile/os_system.pt",
            "",
            "refused",
            "It is refused for good reason: loading this file can run commands",
        ),
        ("zip/proto4.pt", "", "refused", "Only for a file whose maker you trust"),
        ("old/t1.4_py27_zip_cuda_sd.pt", "", "load-fails", "The file itself stops torch.load"),
        ("legacy/tied.pt", ", mmap=True", "load-fails", "mmap=True does not go"),
    ]
    for file, more, kind, said in rows:
        checkpoint = open_checkpoint(str(CORPUS / file))
        text = f'import torch\nx = torch.load("{checkpoint.path}"{more})\n'
        answer = answer_script(text, "a.py", checkpoint, machine("cpu"))
        assert (answer.kind, said in answer.why + answer.advice) == (kind, True), answer
        assert ("+x" in answer.diff) == bool(more), answer.diff


def test_classes_of_the_script_that_saved_the_file() -> None:
    text = 'import torch\nm = torch.load("whole_cpu.pth", weights_only=False)\n'
    assert follow(text, "whole_cpu.pth").kind == "class-missing"
    assert (
        "add_safe_globals([argparse.Namespace])"
        in follow('import torch\nx = torch.load("args_cuda.pth", "cpu")\n', "args_cuda.pth").diff
    )

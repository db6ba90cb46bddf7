from __future__ import annotations

import pytest

from inspector.errors import ModelError
from tests.unit.diagnose.script.following import LOADED, NET, follow, said


def test_first_line_that_fails_and_its_patch() -> None:
    answer = follow('import torch\nsd = torch.load("sd_cuda.pth")\n', "sd_cuda.pth")
    assert (answer.outcome, answer.line, answer.kind) == ("fails", 2, "load-fails")
    assert answer.source == 'sd = torch.load("sd_cuda.pth")'
    assert answer.message.startswith("RuntimeError: Attempting to deserialize object on a CUDA device")
    assert '+sd = torch.load("sd_cuda.pth", map_location="cpu")' in answer.diff
    assert not answer.is_good


def test_patch_of_a_last_line_without_an_end() -> None:
    answer = follow('import torch\nsd = torch.load("sd_cuda.pth")', "sd_cuda.pth")
    assert answer.diff.count("\\ No newline at end of file") == 2


def test_several_patches_make_one() -> None:
    text = 'import torch\nsd = torch.load("sd_cuda.pth")\nx = torch.zeros(2).cuda()\n'
    answer = follow(text, "sd_cuda.pth")
    assert [(one.line, one.kind) for one in answer.further] == [(3, "no-device")]
    assert "+x = torch.zeros(2).to(" in answer.diff


def test_no_patch_where_something_is_left() -> None:
    text = 'import torch\nsd = torch.load("sd_cuda.pth")\nraise ValueError("no")\n'
    answer = follow(text, "sd_cuda.pth")
    assert [(one.line, one.message) for one in answer.further] == [(3, "ValueError: no")]
    assert answer.diff == ""


def test_no_patch_where_the_mended_script_is_too_much() -> None:
    text = f'import torch\nsd = torch.load("sd_cuda.pth")\nx = {"f(" * 70}1{")" * 70}\n'
    answer = follow(text, "sd_cuda.pth")
    assert (answer.kind, answer.line, answer.diff, answer.further) == ("load-fails", 2, "", ())


def test_no_patch_where_the_mended_script_is_too_long() -> None:
    text = 'import torch\nsd = torch.load("sd_cuda.pth")\n#'
    answer = follow(text.ljust(1 << 20, "#"), "sd_cuda.pth")
    assert (answer.kind, answer.line, answer.diff, answer.further) == ("load-fails", 2, "", ())


def test_what_stands_in_a_dictionary_of_arguments_is_not_mended_by_moving_the_dictionary() -> None:
    for call in ("model(**more)", "model(*[more['x']])"):
        answer = follow(NET + f'model.cuda()\nmore = {{"x": torch.zeros(2, 4)}}\n{call}\n', target="cuda")
        assert (answer.kind, answer.diff) == ("device-mix", ""), call


def test_outcomes() -> None:
    rows = {
        LOADED: "works",
        NET: "not-loaded",
        NET + "helper(model)\n": "lost 12",
        "import torch\ntorch.load('a.pth')\ntorch.load('b.pth')\n": "lost 2",
        "import torch\nx = torch.load('other.pth')\n": "works",
        "import torch\nx = torch.load(path)\n": "works",
    }
    assert {text: said(text) for text in rows} == rows


def test_flags_that_guard_a_load_are_taken_as_given() -> None:
    text = (
        "import argparse, torch\np = argparse.ArgumentParser()\n"
        "p.add_argument('--resume', action='store_true')\n"
        "args = p.parse_args()\nif args.resume:\n    c = torch.load('sd_cuda.pth')\n"
    )
    answer = follow(text, "sd_cuda.pth")
    assert (answer.line, answer.assumed) == (6, ("line 5: args.resume",))


def test_files_of_other_names() -> None:
    text = "import torch\nx = torch.load('vgg.pth')\ny = torch.load('sd_cuda.pth')\n"
    assert said(text, "sd_cuda.pth") == "load-fails 3"


def test_what_is_no_script() -> None:
    with pytest.raises(ModelError):
        follow("def f(:\n")


def test_number_of_a_device_is_mended_behind_a_condition() -> None:
    text = (
        'import torch\nd = "cuda:1" if torch.cuda.is_available() else "cpu"\n'
        'x = torch.load("sd_cuda.pth", map_location="cpu")\ntorch.zeros(2).to(d)\n'
    )
    answer = follow(text, "sd_cuda.pth", "cuda")
    assert (answer.kind, answer.line) == ("no-device", 4)
    assert "+d = 'cuda:0' if torch.cuda.is_available() else \"cpu\"" in answer.diff

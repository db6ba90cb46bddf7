from __future__ import annotations

import io
import json
import sys

import pytest

from tests.unit.diagnose.script.following import FILES

CUDA = str(FILES / "sd_cuda.pth")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text('import torch\nsd = torch.load("sd_cuda.pth")\n', encoding="utf-8")
    return path


def test_line_and_patch_come_first(cli, script) -> None:
    answer = cli("check", CUDA, "--target", "cpu", "--script", script)
    code, out = answer.code, answer.out
    assert code == 1
    assert out.startswith("The script train.py\n  Line 2 fails.\n")
    assert '+sd = torch.load("sd_cuda.pth", map_location="cpu")' in out
    answer = cli("check", CUDA, "--target", "cpu", "--script", script, "--json")
    code, out = answer.code, answer.out
    assert code == 1
    assert json.loads(out)["script"]["line"] == 2


def test_script_that_fails_means_no_where_the_file_loads(cli, script) -> None:
    assert cli("check", CUDA, "--target", "cuda", "--script", script).code == 0
    script.write_text('import torch\nsd = torch.load("sd_cuda.pth")["model"]\n', encoding="utf-8")
    assert cli("check", CUDA, "--target", "cuda", "--script", script).code == 1


def test_script_that_works_means_yes_where_the_file_alone_does_not_load(cli, script) -> None:
    script.write_text('import torch\nsd = torch.load("sd_cuda.pth", "cpu")\n', encoding="utf-8")
    answer = cli("check", CUDA, "--target", "cpu", "--script", script)
    assert answer.code == 0
    assert "Findings" not in answer.out
    assert len(answer.out.splitlines()) < 8
    said = " ".join(answer.out.split())
    assert "sd_cuda.pth by itself: DOES NOT LOAD on a machine without a GPU: saved on cuda:0. SAFE:" in said


def test_words_and_modules_of_the_script(cli, script) -> None:
    (script.parent / "lib.py").write_text("import torch\ndef get(p, d): return torch.load(p, d)\n")
    script.write_text(
        "import argparse, lib\np = argparse.ArgumentParser()\np.add_argument('--d')\np.add_argument('--p')\n"
        "args = p.parse_args()\nlib.get(args.p, args.d)\n",
        encoding="utf-8",
    )
    given = ("check", CUDA, "--target", "cpu", "--script", script)
    assert "lib.py, line 2 fails" in cli(*given).out
    assert cli(*given, "--args", "--p sd_cuda.pth --d cpu").code == 0
    assert cli(*given, "--args", "--p").code == cli(*given, "--args=--p").code != 2
    assert cli(*given, "--args", "--p 'x").code == 2


def test_script_from_a_pipe(cli, script, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(script.read_text(encoding="utf-8")))
    assert "The script stdin\n" in cli("check", CUDA, "--target", "cpu", "--script", "-").out


def test_what_is_no_script_is_refused(cli, script) -> None:
    script.write_text("def f(:\n", encoding="utf-8")
    answer = cli("check", CUDA, "--target", "cpu", "--script", script)
    err = answer.err
    assert (answer.code, answer.out) == (3, "")
    assert "this is not valid Python" in err
    assert "train.py, line 1" in err
    assert cli("check", CUDA, "--script", f"{script}.none").code == 3


def test_several_files_are_followed_by_one_script(cli, script) -> None:
    answer = cli("check", CUDA, CUDA, "--target", "cpu", "--script", script)
    assert answer.out.startswith(f"{CUDA}\nThe script train.py\n  Line 2 fails.\n")
    assert answer.out.count(f"\n\n{CUDA}\nThe script") == 1
    assert answer.out.endswith("\n\n2 files: 2 do not work or are not safe\n")
    assert answer.code == 1
    missing = cli("check", "x.pth", "y.pth", "--target", "cpu", "--error-text", "KeyError: 'state_dict'")
    assert missing.out.startswith("x.pth\n")
    assert "\n\ny.pth\n" in missing.out
    assert missing.code == 3

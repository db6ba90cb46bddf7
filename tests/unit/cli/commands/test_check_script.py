from __future__ import annotations

import io
import sys

import pytest

from tests.unit.diagnose.script.following import FILES

CUDA = str(FILES / "sd_cuda.pth")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text('import torch\nsd = torch.load("sd_cuda.pth")\n', encoding="utf-8")
    return path


def test_script_that_fails_means_no_where_the_file_loads(cli, script) -> None:
    assert cli("check", CUDA, "--target", "cuda", "--script", script).code == 0
    script.write_text('import torch\nsd = torch.load("sd_cuda.pth")["model"]\n', encoding="utf-8")
    assert cli("check", CUDA, "--target", "cuda", "--script", script).code == 1


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

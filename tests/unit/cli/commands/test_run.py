from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from inspector.report.words import results as rescue
from inspector.rescue import running
from tests.sweep import table


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that says what it was given; the folder of the hook is beside it meanwhile."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    path = tmp_path / "program.py"
    path.write_text(
        "import json, os, pathlib, sys\n"
        "folder = pathlib.Path(os.environ['PYTHONPATH'].split(os.pathsep)[0])\n"
        "said = [sys.argv[1:], json.loads((folder.parent / 'settings.json').read_text()), sys.path]\n"
        "pathlib.Path(__file__).with_name('said.json').write_text(json.dumps(said))\n"
        "sys.exit(7)\n"
    )
    return path


@pytest.mark.torch
def test_the_program_runs_as_it_is_and_its_exit_code_is_ours(cli, script) -> None:
    import json

    for begin in (["--"], []):
        answer = cli("run", *begin, sys.executable, script, "--", "--map", "x")
        assert (answer.code, answer.out) == (7, "")
        assert answer.err == f"checkpoint-inspector: {rescue.NO_TORCH}\n"
        words, settings, path = json.loads(script.with_name("said.json").read_text())
        assert words == ["--", "--map", "x"]
        assert (settings["rules"], settings["target"], settings["maps_missing"]) == ([], None, True)
        assert not [place for place in path if "checkpoint-inspector-run" in place]
    assert list((script.parent / "temporary").iterdir()) == []


@pytest.mark.torch
def test_rules_and_targets_reach_the_hook(cli, script) -> None:
    import json

    cli("run", "--map", "cuda:1=cuda:0", "--map", "*=cpu", "--", sys.executable, script)
    _, settings, _ = json.loads(script.with_name("said.json").read_text())
    assert (settings["rules"], settings["maps_missing"]) == ([["cuda:1", "cuda:0"], ["*", "cpu"]], False)
    cli("run", "--map", "*=cpu", "--target", "cuda", "--", sys.executable, script)
    _, settings, _ = json.loads(script.with_name("said.json").read_text())
    assert (settings["target"]["counts"], settings["maps_missing"]) == ({"cuda": 1}, True)
    cli("run", "--map", "*=cpu", "--target", "this", "--", sys.executable, script)
    _, settings, _ = json.loads(script.with_name("said.json").read_text())
    assert (settings["target"], settings["maps_missing"]) == (None, True)


@table(
    ("words", "text"),
    [
        ([], "run was given no command"),
        (["--"], "run was given no command"),
        (["--map", "path:model/**@cpu", "--", "python"], "only devices are known while a program loads"),
        (["--map", "role:optimizer@cpu", "--", "python"], "only devices are known while a program loads"),
        (["--map", "cpu=cuda:0", "--", "python"], "run leaves on the CPU what was saved there"),
        (["--map", "nonsense", "--", "python"], "the rule 'nonsense' is not understood"),
        (["--target", "nonsense", "--", "python"], "unknown target"),
        (["--", "none-such-program"], "there is no program 'none-such-program' to run"),
    ],
)
def test_wrong_usage(cli, words, text) -> None:
    answer = cli("run", *words)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert text in answer.err


def test_a_python_without_torch_is_refused(cli, script, monkeypatch) -> None:
    monkeypatch.setattr(running, "_QUESTION", "print('ANSWER 3.12 1 0 0 0 0')")
    answer = cli("run", "--", sys.executable, script)
    assert (answer.code, answer.err.count("\n")) == (4, 1)
    assert answer.err.startswith("checkpoint-inspector: error: there is no torch in this Python: ")
    assert not script.with_name("said.json").exists()


def test_a_command_that_starts_no_python_is_run_and_told_so(cli) -> None:
    answer = cli("run", "--", "true")
    assert (answer.code, answer.err) == (0, f"checkpoint-inspector: {rescue.NO_HOOK}\n")

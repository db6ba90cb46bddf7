"""The line that stands first in an answer, pasted into Python: torch loads the file with it."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest
import torch

from inspector.cli import main as run_program
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Fix
from inspector.report.remedies import first_remedies, remedies_for
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import Judged, judge_load
from tests.corpus import Case, cases
from tests.sweep import put_through
from tests.torch.running import pretend, save_as_if_on

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def first_lines(checkpoint: Checkpoint, target: Profile) -> set[str]:
    load = judge_load(checkpoint, target)
    judged = Judged(checkpoint=checkpoint, target=target, load=load)
    found = diagnose(checkpoint, load.safety, target)
    lines = (remedy for finding in found for remedy in remedies_for(finding.fix, judged))
    return {line.text for line in lines if line.language == "python"}


def test_torch_takes_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Profile(id="this", label="", torch_version=torch.__version__)
    pretend(monkeypatch, target)
    tried = []

    def check(case: Case) -> None:
        try:
            checkpoint = open_checkpoint(str(case.path))
        except CheckpointError:
            return
        for line in first_lines(checkpoint, target):
            tried.append(line)
            eval(line, {"torch": torch})

    put_through(check, cases(), lambda case: case.name)
    assert len(tried) > 10


def test_names_of_every_kind_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, CPU_ONLY)
    save_as_if_on("cuda:0", {"w": torch.ones(2)}, tmp_path / "plain.pth")
    monkeypatch.chdir(tmp_path)
    names = [
        "it's.pth",
        'say "hi".pth',
        "a\nb.pth",
        "-x.pth",
        "\u043c\u043e\u0434\u0435\u043b\u044c.pth",
        "$(x)`y`\\.pth",
    ]
    names += [os.fsdecode(b"caf\xe9.pth")] if os.name == "posix" else []
    for name in names:
        shutil.copy("plain.pth", name)
        checkpoint = open_checkpoint(name)
        judged = Judged(checkpoint=checkpoint, target=CPU_ONLY, load=judge_load(checkpoint, CPU_ONLY))
        line = remedies_for(Fix(rule="cuda:0=cpu"), judged)[0].text
        assert eval(line, {"torch": torch})["w"].tolist() == [1, 1], name


def test_the_code_for_a_model_that_was_saved_whole_loads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, CPU_ONLY)
    monkeypatch.chdir(tmp_path)
    save_as_if_on("cuda:0", torch.nn.Sequential(torch.nn.Linear(2, 2)), Path("net.pth"))
    checkpoint = open_checkpoint("net.pth")
    load = judge_load(checkpoint, CPU_ONLY)
    judged = Judged(checkpoint=checkpoint, target=CPU_ONLY, load=load)
    (fix,) = [one.fix for one in diagnose(checkpoint, load.safety, CPU_ONLY) if one.id == "cuda-unavailable"]
    code, weights = first_remedies(fix, judged)
    with torch.serialization.safe_globals([]):
        there: dict[str, object] = {}
        exec(code.text, there)
    assert isinstance(there["loaded"], torch.nn.Sequential)
    assert run_program(shlex.split(weights.text)[1:]) == 0
    assert set(torch.load("net.weights.pth")) == {"0.weight", "0.bias"}

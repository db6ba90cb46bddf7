"""Scripts, followed and run: the line that torch fails at is named, and what works is left alone.

`tests/data/scripts/table.toml` says what each is tried with. Where it fails, torch says when it is run.
"""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from inspector.diagnose.script.answer import ScriptAnswer, answer_script
from inspector.model.build import open_checkpoint
from inspector.target.profile import Profile
from tests.sweep import tries
from tests.torch.scripting import Found, run_script
from tests.torch.simulating import Machine

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
SCRIPTS = Path(__file__).parents[1] / "data" / "scripts"
TABLE = tomllib.loads((SCRIPTS / "table.toml").read_text(encoding="utf-8"))
MACHINES: dict[str, dict[str, int]] = {
    "cpu": {},
    "cuda": {"cuda": 1},
    "2cuda": {"cuda": 2},
    "mps": {"mps": 1},
}


def machine_of(row: dict[str, Any]) -> Machine:
    counts = {"cuda": 0, "xpu": 0, "mps": 0, **MACHINES[row["target"]]}
    return Machine(cuda=counts["cuda"], xpu=counts["xpu"], mps=bool(counts["mps"]))


def answer(text: str, row: dict[str, Any]) -> ScriptAnswer:
    target = Profile(id=row["target"], label="", accelerators=tuple(MACHINES[row["target"]].items()))
    words = " ".join(row.get("arguments", [])) or None
    checkpoint = open_checkpoint(str(SCRIPTS / "files" / row["file"]))
    return answer_script(text, row["script"], checkpoint, target, arguments=words)


def run(text: str, row: dict[str, Any]) -> Found:
    script = Path(row["script"])
    script.write_text(text, encoding="utf-8")
    return run_script(script.absolute(), machine_of(row), row.get("arguments", []))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SCRIPTS / "files", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def apply_diff(text: str, diff: str) -> str:
    """Apply a unified diff of one file, as `patch` does."""
    lines, made, at = text.splitlines(keepends=True), [], 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start = int(line.split()[1].split(",")[0].lstrip("-"))
            made += lines[at : max(start - 1, 0)]
            at = max(start - 1, at)
        elif line.startswith("-"):
            assert lines[at].rstrip("\n") == line[1:].rstrip("\n")
            at += 1
        elif line.startswith("+"):
            made.append(line[1:])
        elif line.startswith(" "):
            made.append(lines[at])
            at += 1
    return "".join([*made, *lines[at:]])


def beginning(message: str) -> str:
    """The part of a message that the played machine says word by word."""
    message = message.partition("\n")[0].replace("_pickle.", "").strip()
    shared = ("RuntimeError: Expected all tensors to be on the same device", "TypeError: can't convert")
    for start in (
        *shared,
        "UnpicklingError: Weights only load failed",
        "RuntimeError: Tensors of the same index",
    ):
        if message.startswith(start):
            return shared[0] if "same index" in start else start
    return message[:60]


def test_scripts_that_fail(folder: Path) -> None:
    wrong, found, patched = [], Counter[str](), 0
    for place, row in enumerate(TABLE["fails"]):
        text = (SCRIPTS / "fails" / row["script"]).read_text(encoding="utf-8")
        ran, said = run(text, row), answer(text, row)
        line = row.get("silent_line", ran.line)
        if "silent_line" in row:
            assert ran.error == "", (row["script"], ran.error)
            assert eval(row["proof"], ran.names), row["script"]
        else:
            assert ran.line, f"{row['script']} does not fail"
        if row.get("beyond"):
            assert said.is_good, row["script"]
            continue
        found[said.kind] += 1
        if said.line != line or beginning(said.message) != beginning(ran.error):
            wrong.append((row["script"], said.line, line, said.message[:120], ran.error[:120]))
        patched += bool(said.diff)
        if said.diff and place % tries(3, 1) == 0:
            again = run(apply_diff(text, said.diff), row)
            if again.error:
                wrong.append((row["script"], "patched", again.line, again.error[:200], said.diff))
    assert wrong == []
    assert sum(found.values()) >= 32
    assert patched >= 27
    assert len(found) >= 12


def test_scripts_that_work(folder: Path) -> None:
    wrong, followed = [], 0
    for row in TABLE["works"]:
        text = (SCRIPTS / "works" / row["script"]).read_text(encoding="utf-8")
        ran, said = run(text, row), answer(text, row)
        followed += said.outcome == "works"
        if ran.error or not said.is_good:
            wrong.append((row["script"], ran.line, ran.error[:200], said.line, said.message[:120], said.why))
    assert wrong == []
    assert len(TABLE["works"]) >= 40
    assert followed >= 40

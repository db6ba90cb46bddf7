"""What the code of docs/library.md shows, block by block, and what docs/json.md lists."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import inspector
from inspector.report.schemas import schema_names
from tests.docs import pages
from tests.end2end.conftest import DEMO, ROOT

LIBRARY, JSON = ROOT / "docs" / "library.md", ROOT / "docs" / "json.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the recipes expect it: a run with one file that is no checkpoint."""
    (tmp_path / "runs").mkdir()
    for name in ("best.pth", "last.pth", "runs/best.pth", "runs/last.pth", "epoch-1.pth"):
        shutil.copy(DEMO, tmp_path / name)
    (tmp_path / "runs" / "half.pth").write_bytes(DEMO.read_bytes()[:-90_000])
    later = bytearray(DEMO.read_bytes())
    start = inspector.open(DEMO).storages[0].file_offset
    assert start is not None
    later[start + 3] ^= 1
    (tmp_path / "epoch-2.pth").write_bytes(later)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(page: Path, language: str = "python") -> list[str]:
    """Return the blocks of a page, but those that say why they are not run, or need another library."""
    found = [block for block in pages.blocks(page) if block.language == language]
    return ["\n".join(block.lines) + "\n" for block in found if not {"not run", "needs"} & set(block.marks)]


def test_every_block_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They run one after the other: the check in CI is about the copy of the recipe before it."""
    said = []
    for number, block in enumerate(blocks(LIBRARY)):
        exec(compile(block, f"block {number}", "exec"), {"__name__": "block"})
        said.append(capsys.readouterr().out)
    quick, ten_lines, devices, remapped, checked, changed, sound, *progress = said
    assert "<Checkpoint 'best.pth': zip, 283 tensors on cuda:0, cuda:1, cpu" in quick
    assert "torch.load(" in quick
    assert ten_lines == "float32 (8, 3, 3, 3) cuda:0\n"
    assert [line.split()[0] for line in devices.splitlines()] == ["cuda:0", "cuda:1", "cpu"]
    assert "runs/half.pth: the zip has no directory" in remapped
    assert remapped.count("233 tensors moved") == 2
    assert {total.device for total in inspector.open("cpu/last.pth").devices} == {"cpu"}
    assert checked == ""
    assert changed.splitlines()[0].startswith("False 1")
    assert sound.splitlines()[0] == "runs/best.pth is sound"
    assert progress == ["", "nothing was written\n"]


def test_the_check_of_ci_refuses_what_it_is_to_refuse(folder: Path) -> None:
    (check,) = (block for block in blocks(LIBRARY) if "assert result.safe" in block)
    (folder / "cpu").mkdir()
    shutil.copy(DEMO, folder / "cpu" / "best.pth")
    with pytest.raises(AssertionError, match="DOES NOT LOAD"):
        exec(compile(check, "block", "exec"), {})


def test_the_page_of_json_lists_the_schemas_that_there_are() -> None:
    page = JSON.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE)) == set(schema_names())

"""`recover`, and what `show --json` says of files that cannot be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import CancelledError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.resources import demo_path
from tests.builders import pickles, zips

DEMO = demo_path().read_bytes()
COMPARED = "reopened and compared: names, types and shapes of the tensors and all other values"
SURE = "every saved tensor matches the checksum in the file"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The demo as a download left it that ended at half."""
    path = tmp_path / "demo.pth"
    path.write_bytes(DEMO[: len(DEMO) // 2])
    return path


def test_recover_saves_what_is_whole_and_lists_the_rest(cli, damaged: Path) -> None:
    out = damaged.with_name("out.pth")
    answer = cli("recover", damaged, "-o", out)
    assert (answer.code, answer.err) == (0, "")
    first, rest, *lost = answer.out.splitlines()
    saved = open_checkpoint(str(out))
    whole = open_checkpoint(str(demo_path())).tensors
    every = len(whole)
    assert first.startswith(f"{out}: {len(saved.tensors)} of {every} tensors saved, ")
    assert first.endswith(f" KB; {COMPARED}; {SURE}")
    assert rest.startswith(f"{every - len(saved.tensors)} tensors lost, ")
    assert len(lost) == every - len(saved.tensors) > 0
    gone = {row.path for row in whole} - {row.path for row in saved.tensors}
    assert {line.split("  ")[1] for line in lost} == gone
    assert all("float32" in line or "uint8" in line for line in lost)


def test_what_runs_code_is_said_to_run_code(cli, tmp_path: Path) -> None:
    """An object that is saved is saved with what it runs."""
    evil = pickles.state_dict(a=pickles.tensor(pickles.storage(), 2), b=b"cposix\nsystem\n(X\x04\0\0\0truetR")
    path = tmp_path / "evil.pth"
    path.write_bytes(zips.checkpoint(evil, {"0": bytes(8)}))
    answer = cli("recover", path, "-o", tmp_path / "out.pth")
    assert answer.code == 0
    assert "the new file: DANGEROUS: loading it can run commands\n" in answer.out
    said = f"{tmp_path / 'out.pth'}: DANGEROUS: loading it can run commands"
    assert answer.err == f"checkpoint-inspector: {said}\n"


def test_out_that_exists_is_kept_unless_forced(cli, damaged: Path) -> None:
    out = damaged.with_name("out.pth")
    out.write_bytes(b"mine")
    answer = cli("recover", damaged, "-o", out)
    assert (answer.code, answer.out) == (4, "")
    assert answer.err.count("\n") == 1
    assert out.read_bytes() == b"mine"
    assert cli("recover", damaged, "-o", out, "--force").code == 0


def test_interrupted(cli, damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise CancelledError

    monkeypatch.setattr(Progress, "advance", stopped)
    assert cli("recover", damaged, "-o", damaged.with_name("out.pth")).code == 130
    assert [damaged] == [*damaged.parent.iterdir()]


# ------------------------------------------------------------------------------------------- show

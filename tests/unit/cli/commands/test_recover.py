"""`recover`, and what `show --json` says of files that cannot be opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.errors import CancelledError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.resources import demo_path
from tests.builders import pickles, zips
from tests.sweep import table

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


def test_whole_file(cli, tmp_path: Path) -> None:
    answer = cli("recover", demo_path(), "-o", tmp_path / "out.pth")
    assert answer.code == 0
    assert answer.out.splitlines()[-1] == "no tensors lost"


def test_file_without_checksums_is_no_sure_thing(cli, tmp_path: Path) -> None:
    from tests.corpus import CORPUS

    answer = cli("recover", CORPUS / "legacy" / "tied.pt", "-o", tmp_path / "out.pth")
    assert "the file has no checksums, so changed bytes inside a tensor would go unnoticed\n" in answer.out


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


def test_nothing_to_save_is_exit_code_3(cli, tmp_path: Path) -> None:
    path = tmp_path / "demo.pth"
    for data, said in (
        (DEMO[:2000], "the file is cut off or damaged within data.pkl"),
        (b"<html>", "this is a web page (HTML)"),
        (b"", "the file is empty"),
    ):
        path.write_bytes(data)
        answer = cli("recover", path, "-o", tmp_path / "out.pth")
        assert (answer.code, answer.out) == (3, "")
        assert said in answer.err
        assert answer.err.count("\n") == 1
    assert [path] == [*tmp_path.iterdir()]


def test_interrupted(cli, damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise CancelledError

    monkeypatch.setattr(Progress, "advance", stopped)
    assert cli("recover", damaged, "-o", damaged.with_name("out.pth")).code == 130
    assert [damaged] == [*damaged.parent.iterdir()]


def test_hostile_names_are_escaped(cli, tmp_path: Path) -> None:
    from tests.builders.archives import archive
    from tests.builders.pickles import state_dict, storage, tensor

    pickle = state_dict(**{"a\x1b[2J": tensor(storage("0"), 2), "b": tensor(storage("1"), 2)})
    path = tmp_path / "file.pt"
    path.write_bytes(archive(pickle, {"1": b"12345678"}))
    answer = cli("recover", path, "-o", tmp_path / "out.pth")
    assert "  a\\u001b[2J  2 float32, 8 B: its bytes are not in the file\n" in answer.out


# ------------------------------------------------------------------------------------------- show


@table(
    ("data", "id_"),
    [
        (b"<!doctype html><title>404</title>", "html-page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", "lfs-pointer"),
        (b"\x89PNG\r\n\x1a\n", "not-a-checkpoint"),
        (DEMO[:500], "truncated"),
    ],
)
def test_show_json_gives_the_finding_of_what_cannot_be_opened(
    cli, tmp_path: Path, data: bytes, id_: str
) -> None:
    path = tmp_path / "file.pth"
    path.write_bytes(data)
    answer = cli("show", "--json", path)
    document = json.loads(answer.out)
    assert answer.code == 3
    assert [finding["id"] for finding in document["findings"]] == [id_]
    assert document["error"]["message"][0].isalpha()


@pytest.mark.torch
def test_show_opens_what_is_left(cli, damaged: Path) -> None:
    document = json.loads(cli("show", "--json", damaged).out)
    assert len(document["tensors"]) == len(open_checkpoint(str(demo_path())).tensors)
    (finding,) = (finding for finding in document["findings"] if finding["id"] == "truncated")
    assert finding["count"] > 0
    assert "recover" in finding["detail"]
    assert "bytes of" in cli("check", damaged).out.splitlines()[1]
    answer = cli("show", damaged)
    assert answer.code == 0

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from inspector.containers.walking import Found, checkpoints_in, in_order, is_one_checkpoint
from inspector.errors import CancelledError
from inspector.progress import Progress


def _write(root: Path, *names: str, data: bytes = b"x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _names(root: Path, *, below: bool = True) -> list[str]:
    return [os.path.relpath(one.path, root) for one in checkpoints_in(str(root), below=below)]


def test_files_come_in_the_order_of_their_numbers_and_those_of_subfolders_after_them(tmp_path: Path) -> None:
    _write(tmp_path, "epoch-10.pth", "epoch-2.pth", "b/last.ckpt", "a10/x.pt", "a9/x.pt", "z.pth.tar")

    assert _names(tmp_path) == [
        "epoch-2.pth", "epoch-10.pth", "z.pth.tar", "a9/x.pt", "a10/x.pt", "b/last.ckpt",
    ]  # fmt: skip
    assert _names(tmp_path, below=False) == ["epoch-2.pth", "epoch-10.pth", "z.pth.tar"]
    assert in_order("e\u0662") == [(-1, "e\u0662")]  # a digit of another script is no number here


def test_what_does_not_look_like_a_checkpoint_is_passed_over(tmp_path: Path) -> None:
    _write(
        tmp_path,
        "notes.txt",
        "train.bin",
        "data.tar",
        "photo.png",
        "tokenizer.json",
        ".hidden.pth",
        ".git/a.pth",
    )
    _write(tmp_path, "pytorch_model.bin", "empty.pth")
    _write(tmp_path, "pickle", "odd.weights", "model.tar", data=b"\x80\x02}q\x00.")
    _write(tmp_path, "torch-zip", data=b"PK\x03\x04" + bytes(22) + b"\x0e\0\0\0" + b"archive/data.pkl")
    _write(tmp_path, "photos.zip", data=b"PK\x03\x04" + bytes(22) + b"\x0e\0\0\0" + b"photos/1.png")

    assert _names(tmp_path) == [
        "empty.pth",
        "model.tar",
        "odd.weights",
        "pickle",
        "pytorch_model.bin",
        "torch-zip",
    ]


def test_a_folder_that_is_one_checkpoint_is_found_as_one(tmp_path: Path) -> None:
    _write(tmp_path, "hf/config.json", "hf/model.safetensors", "hf/checkpoint-500/model.safetensors")
    _write(tmp_path, "dcp/.metadata", "dcp/__0_0.distcp", "dcp/below/inner.pth")
    _write(tmp_path, "zero/global_step2/mp_rank_00_model_states.pt", "unpacked/archive/data.pkl")
    _write(tmp_path, "unpacked/archive/version", "unpacked/archive/data/0", "plain/a.pth")

    os.utime(tmp_path / "dcp/.metadata", (0, 2_500_000_000))

    found = {os.path.relpath(one.path, tmp_path): one for one in checkpoints_in(str(tmp_path))}

    whole = {name for name, one in found.items() if one.is_folder}
    assert whole == {"hf", "dcp", "zero", "unpacked/archive"}
    # what stands below the folder of a trainer are other checkpoints; below those of DCP, its own files
    assert set(found) - whole == {"plain/a.pth", "hf/checkpoint-500/model.safetensors"}
    assert found["dcp"].nbytes == 3
    assert found["dcp"].modified_s == 2_500_000_000
    assert {name for name in (*whole, "plain") if is_one_checkpoint(str(tmp_path / name))} == whole
    assert _names(tmp_path, below=False) == ["dcp", "hf", "zero"]
    assert _names(tmp_path / "hf") == [".", "checkpoint-500/model.safetensors"]


def test_links_are_files_and_no_ways(tmp_path: Path) -> None:
    _write(tmp_path, "runs/a/1.pth")
    (tmp_path / "runs" / "best.pth").symlink_to("a/1.pth")
    (tmp_path / "runs" / "gone.pth").symlink_to("nowhere.pth")
    (tmp_path / "runs" / "a" / "loop").symlink_to(tmp_path / "runs")
    os.mkfifo(tmp_path / "runs" / "pipe.pth")

    found = list(checkpoints_in(str(tmp_path / "runs")))

    names = [os.path.relpath(one.path, tmp_path / "runs") for one in found]
    assert names == ["best.pth", "gone.pth", "a/1.pth"]
    assert [bool(one.problem) for one in found] == [False, True, False]


def test_a_link_that_leads_to_itself_hides_nothing_beside_it(tmp_path: Path) -> None:
    _write(tmp_path, "a.pth", "z.pth")
    for name in ("loop.pth", "loop"):
        (tmp_path / name).symlink_to(name)
    rows = list(checkpoints_in(str(tmp_path)))
    assert [Path(row.path).name for row in rows] == ["a.pth", "loop.pth", "z.pth"]
    assert [bool(row.problem) for row in rows] == [False, True, False]


def test_a_folder_that_may_not_be_listed_is_a_row_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, "closed/a.pth", "open/b.pth")
    scandir = os.scandir

    def refuse_closed(path: str) -> object:
        if Path(path).name == "closed":  # as for everybody but root, who runs tests, too
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse_closed)
    found = list(checkpoints_in(str(tmp_path)))

    assert [(Path(one.path).name, "Permission denied" in one.problem) for one in found] == [
        ("closed", True),
        ("b.pth", False),
    ]


def test_a_folder_that_is_not_there_is_a_row_with_the_reason(tmp_path: Path) -> None:
    (found,) = checkpoints_in(str(tmp_path / "gone"))

    assert found == Found(
        str(tmp_path / "gone"),
        is_folder=True,
        problem="the folder cannot be listed: No such file or directory",
    )


def test_what_was_not_looked_at_is_said(tmp_path: Path) -> None:
    _write(tmp_path, *(f"{number}.pth" for number in range(9)), "below/1.pth")

    found = list(checkpoints_in(str(tmp_path), most_entries=5))

    assert found[-1].path == str(tmp_path)
    assert found[-1].problem.startswith("more than 5 files")
    assert len(found) <= 6


def test_folders_below_folders_end_with_a_row(tmp_path: Path) -> None:
    path = tmp_path
    for _ in range(40):
        path = path / "d"
    _write(path, "deep.pth")

    (found,) = checkpoints_in(str(tmp_path))

    assert "nested so deeply" in found.problem


def test_a_walk_can_be_cancelled(tmp_path: Path) -> None:
    _write(tmp_path, "a.pth", "b.pth")
    progress = Progress()
    walk = checkpoints_in(str(tmp_path), progress)
    next(walk)
    progress.cancel()

    with pytest.raises(CancelledError):
        next(walk)

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from inspector.report.words import results as rescue
from inspector.report.words.results import format_journal
from inspector.rescue.journal import Call, Journal, Place, Why
from inspector.rescue.mending import MendingKind, find_needs


def place(file: str, line: int, takes: int = 1) -> Place:
    return Place(file=file, line=line, span=None, calls="load", takes=takes)


OWN = place("<stdin>", 3)


def call(**changes: object) -> Call:
    given = {"site": OWN, "own": OWN, "saved": "cuda:0", "to": "cpu", "why": "missing", "way": "load"}
    return Call(**{**given, "file": None, "storages": 2, "nbytes": 32, **changes})


def report(*calls: Call, code: int = 0, **changes: object) -> str:
    journal = Journal(**{"calls": calls, "processes": 1, "with_torch": 1, "failures": (), **changes})
    return format_journal(journal, find_needs(journal), code)


def test_every_reason_and_way_has_its_words() -> None:
    assert set(rescue.WHY) == set(get_args(Why))
    assert set(rescue.MENDINGS) == set(get_args(MendingKind))


def test_lines_devices_sizes_and_what_mends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    library = place("/lib/site-packages/timm/load.py", 50)
    files = [str(tmp_path / f"{name}.pth") for name in "abcde"]
    Path(files[0]).touch()
    text = report(
        *(call(file=file) for file in files),
        call(site=library, own=place(str(tmp_path / "train.py"), 7, takes=-1), file=files[0], nbytes=0),
        call(site=None, own=None, to=None, why="no-rule", storages=1),
        with_torch=3,
    )
    assert text == (
        "12 storages were put on another device, in 3 lines; 3 processes imported torch\n"
        "  <stdin>:3  (a.pth, b.pth, c.pth and 2 more)\n"
        "      cuda:0 -> cpu: 10 storages, 160 B\n"
        "      => give that call:\n"
        '           map_location="cpu"\n'
        "  /lib/site-packages/timm/load.py:50, called at train.py:7  (a.pth)\n"
        "      cuda:0 -> cpu: 2 storages\n"
        "      => that code is not yours, so change the file (remap --in-place --undo takes it back):\n"
        f"           checkpoint-inspector remap {files[0]} --in-place --map cuda:0=cpu\n"
        "  in code of Python itself\n"
        "      cuda:0 -> left as it was: 1 storage, 32 B (not here, and no rule of --map covers it; --target "
        "this maps what is missing)\n"
    )


def test_one_storage_and_what_failed() -> None:
    text = report(call(storages=1, saved="cuda\n"), failures=("gone\x1b[2J",))
    assert text.startswith("1 storage was put on another device, in 1 line\n")
    assert "      cuda\\u000a -> cpu: 1 storage, 32 B\n" in text
    assert text.endswith("  the hook failed, and left the load to torch: gone\\u001b[2J\n")


def test_nothing_to_report() -> None:
    assert report() == f"{rescue.NOTHING}\n"
    for code, ended in ((1, "ended with exit code 1"), (-9, "was ended by signal 9")):
        failed = report(code=code)
        assert failed.startswith(f"no load needed another device, and the command {ended}: ")
        assert "works" not in failed
    assert report(with_torch=0) == f"{rescue.NO_TORCH}\n"
    assert report(processes=0, with_torch=0) == f"{rescue.NO_HOOK}\n"
    assert report(call(to=None, why="no-rule")).startswith(f"{rescue.UNMAPPED}\n")

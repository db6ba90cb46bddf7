from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.rescue import journal
from inspector.rescue.journal import Call, Place, read_journal
from tests.sweep import table

PLACE = {"file": "/x/train.py", "line": 3, "span": [3, 3, 4, 23], "calls": "load", "takes": 1}
CALL = {
    "site": PLACE,
    "own": PLACE,
    "saved": "cuda:1",
    "to": "cpu",
    "why": "missing",
    "way": "load",
    "file": "/x/a.pth",
}
SITE = Place(file="/x/train.py", line=3, span=(3, 3, 4, 23), calls="load", takes=1)


def written(number: int = 0, call: dict[str, object] = CALL, **changes: object) -> str:
    return f"D {number} {json.dumps({**call, **changes})}\n"


def test_processes_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "10").write_text(f"S\nT\n{written()}{written(1, file=None)}0 24\n0 8\n1 4\n")
    (tmp_path / "11").write_text(f"S\nT\n{written(file=None)}0 100\nS\n! gone: 'x'\n! gone: 'x'\n")
    found = read_journal(tmp_path)
    assert (found.processes, found.with_torch, found.failures) == (3, 2, ("gone: 'x'",))
    first, second = found.calls
    assert first == Call(
        site=SITE,
        own=SITE,
        saved="cuda:1",
        to="cpu",
        why="missing",
        way="load",
        file="/x/a.pth",
        storages=2,
        nbytes=32,
    )
    assert (second.file, second.storages, second.nbytes) == (None, 2, 104)


def test_a_second_process_of_the_same_number_counts_its_own_calls(tmp_path: Path) -> None:
    (tmp_path / "10").write_text(
        f"S\n{written()}{written(1, saved='cuda:2')}1 8\nS\n{written(saved='mps')}0 9\n1 7\n"
    )
    assert [(call.saved, call.nbytes) for call in read_journal(tmp_path).calls] == [("cuda:2", 8), ("mps", 9)]


BROKEN = [
    "D 0 {",
    "D 0",
    "D",
    "D 0 []",
    "D 0 {}",
    f"D 0 {'[' * 30000}",
    written(saved=7),
    written(why="because"),
    written(way="hope"),
    written(site={**PLACE, "line": "x"}),
    written(site={**PLACE, "span": [1, 2]}),
]


@table("line", BROKEN)
def test_a_call_that_is_none_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / "10").write_text(f"S\n{line.rstrip()}\n0 8\n{written(1, site=None, to=None)}1 5\n")
    found = read_journal(tmp_path)
    assert [(call.site, call.to, call.nbytes) for call in found.calls] == [(None, None, 5)]


@table("line", ["0", "0 x", "-1 8", "5 8", f"0 {'9' * 30}", "x 8", "² 8", "9" * 70000 + " 1"])
def test_a_count_that_is_none_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / "10").write_text(f"S\n{written()}{line}\n")
    assert read_journal(tmp_path).calls == ()


def test_what_a_program_writes_itself_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_MOST_CALLS", 2)
    calls = "".join(written(index, saved=f"cuda:{index}") for index in range(5))
    counts = "".join(f"{index} 1\n" for index in range(5))
    failures = "".join(f"! {index}\n" for index in range(100))
    (tmp_path / "10").write_text(f"S\n{calls}{counts}0 1\n{failures}")
    found = read_journal(tmp_path)
    assert [(call.saved, call.storages) for call in found.calls] == [("cuda:0", 2), ("cuda:1", 1)]
    assert len(found.failures) == 20
    monkeypatch.setattr(journal, "_MOST_NBYTES", 2)
    assert read_journal(tmp_path).processes == 1
    assert read_journal(tmp_path).failures == ()

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import inspector
from inspector.library import programs
from inspector.rescue.journal import Call, Journal, Place

PLACE = Place(file="/home/me/train.py", line=5, span=None, calls="load", takes=1)
CALL = Call(
    site=PLACE,
    own=None,
    saved="cuda:1",
    to="cpu",
    why="missing",
    way="load",
    file="best.pth",
    storages=2,
    nbytes=8,
)
ELSEWHERE = Call(site=None, own=None, saved="cuda:0", to=None, why="no-rule", way="pickle", file=None)


def test_what_had_to_be_mapped(monkeypatch) -> None:
    journal = Journal(calls=(CALL, ELSEWHERE), processes=1, with_torch=1, failures=())
    asked = []

    def play(*words: object, **named: object) -> tuple[int, Journal]:
        asked.append((words, named))
        return 3, journal

    monkeypatch.setattr(programs, "run_rescued", play)
    ran = inspector.run(["python", Path("train.py")], map={"cuda:*": "cpu"}, target="cuda")
    (words, rules, wish), named = asked[0]
    assert (words, [rule.device for rule in rules], named) == (
        ["python", "train.py"],
        ["cuda:*"],
        {"maps_missing": True},
    )
    assert wish.profile(lambda: None).accelerators
    assert ran.returncode == 3
    first, second = ran.loads
    assert (first.script, first.line, first.checkpoint) == ("/home/me/train.py", 5, "best.pth")
    assert (first.saved, first.to, first.why, first.storages, first.nbytes) == (
        "cuda:1",
        "cpu",
        "missing",
        2,
        8,
    )
    assert (second.script, second.line, second.to, second.why) == (None, 0, None, "no-rule")
    assert repr(ran) == "<Ran: exit code 3; 2 storages were put on another device, in 2 lines>"
    assert "cuda:1 -> cpu: 2 storages" in str(ran)
    inspector.run(["python"], map="*=cpu")
    assert asked[1][1] == {"maps_missing": False}
    inspector.run(["python"])
    assert asked[2][1] == {"maps_missing": True}


def test_what_is_no_command() -> None:
    for wrong in ("python train.py", Path("train.py"), []):
        with pytest.raises(inspector.PlanError, match=r"command"):
            inspector.run(wrong)  # type: ignore[arg-type]
    with pytest.raises(inspector.PlanError, match="there is no program"):
        inspector.run(["none-such-program"])
    with pytest.raises(inspector.PlanError, match="unknown target"):
        inspector.run(["true"], target="nonsense")


def test_it_may_run_in_any_thread() -> None:
    """Signals are the main thread's: elsewhere, nothing is done about them."""
    found: list[inspector.Ran] = []
    thread = threading.Thread(target=lambda: found.append(inspector.run(["true"])))
    thread.start()
    thread.join()
    assert [ran.returncode for ran in found] == [0]

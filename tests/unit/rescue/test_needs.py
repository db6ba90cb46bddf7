from __future__ import annotations

from inspector.rescue.journal import Call, Journal, Place
from inspector.rescue.mending import find_needs

LINE = Place(file="<stdin>", line=3, span=None, calls="load", takes=1)


def call(**changes: object) -> Call:
    given = {"site": LINE, "own": LINE, "saved": "cuda:0", "to": "cpu", "why": "missing", "way": "load"}
    return Call(**{**given, "file": None, "storages": 1, "nbytes": 10, **changes})


def needs(*calls: Call):
    return find_needs(Journal(calls=calls, processes=1, with_torch=1, failures=()))


def test_one_line_that_loads_many_files_is_one_need() -> None:
    (need,) = needs(
        *(call(file=f"{index}.pth") for index in range(3)), call(saved="cuda:1", nbytes=5), call()
    )
    assert need.files == ("0.pth", "1.pth", "2.pth")
    assert [(move.saved, move.storages, move.nbytes) for move in need.moves] == [
        ("cuda:0", 4, 40),
        ("cuda:1", 1, 5),
    ]
    assert need.mending is not None
    assert need.mending.code == 'map_location="cpu"'


def test_ways_and_lines_are_needs_of_their_own() -> None:
    found = needs(call(), call(way="pickle"), call(site=None), call(to=None, why="no-rule", own=None))
    assert [need.way for need in found] == ["load", "pickle", "load", "load"]
    assert found[3].mending is None

""""""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.rescue import mending
from inspector.rescue.journal import Call, Journal, Place
from inspector.rescue.mending import Mending, find_needs, mend
from tests.sweep import table

TO_CPU = [("cuda:0", "cpu"), ("cuda:1", "cpu")]
TO_ONE = [("cuda:1", "cuda:0"), ("cuda:2", "cuda:0")]


def place(file: Path | str, line: int = 1, **changes: object) -> Place:
    return Place(**{"file": str(file), "line": line, "span": None, "calls": "load", "takes": 1, **changes})


def call(own: Place | None, **changes: object) -> Call:
    given = {"site": own, "own": own, "saved": "x", "to": "y", "why": "missing", "way": "load", "file": None}
    return Call(**{**given, **changes})


LINES = [
    ("torch.load(p)", 'torch.load(p, map_location="cpu")'),
    ("torch.load('a.pth', )", "torch.load('a.pth', map_location=\"cpu\")"),
    ("f = torch.load( )", 'torch.load(map_location="cpu")'),
    ("m.load_state_dict(torch.load(p))", 'torch.load(p, map_location="cpu")'),
    ("torch.load(p, 'cuda')", 'torch.load(p, "cpu")'),
    (
        "torch.load(p, map_location=d, weights_only=True)",
        'torch.load(p, map_location="cpu", weights_only=True)',
    ),
    ("torch.load('é', map_location=é); é", "torch.load('é', map_location=\"cpu\")"),
    ("load(p)", 'load(p, map_location="cpu")'),
    ("x = torch.load(\n  p,\n)", "torch.load(p, map_location='cpu')"),
    ("x = torch.load(p,\n  map_location=d)", "torch.load(p, map_location='cpu')"),
    ("x = torch.load(p,\n  d, x=1)", "torch.load(p, 'cpu', x=1)"),
]


@table(("line", "mended"), LINES)
def test_the_call_is_written_as_it_should_stand(tmp_path: Path, line: str, mended: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import torch\n{line}\n", encoding="utf-8")
    own = place(script, 2)
    assert mend(call(own), TO_CPU, []) == Mending(kind="line", code=mended, place=own)


UNCLEAR = [
    "torch.load(p, **options)",
    "torch.load(*both)",
    "torch.load(a), torch.load(b)",
    "other(p)",
    "(load)",
    "a[0](p)",
    "torch.load(p",
    "torch.load('" + "x" * 300 + "')",
    "torch.load(p) # \x00",
]


@table("line", UNCLEAR)
def test_where_the_source_does_not_show_the_call_the_argument_is_named(tmp_path: Path, line: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"\n{line}\n", encoding="utf-8")
    own = place(script, 2)
    assert mend(call(own), TO_CPU, []) == Mending(kind="argument", code='map_location="cpu"', place=own)


def test_columns_tell_two_calls_of_a_line_apart(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("torch.load(a); torch.load(b)\n", encoding="utf-8")
    found = mend(call(place(script, span=(1, 1, 15, 28))), TO_CPU, [])
    assert found is not None
    assert found.code == 'torch.load(b, map_location="cpu")'
    script.write_bytes(b"\xef\xbb\xbftorch.load(a)\n")
    found = mend(call(place(script, span=(1, 1, 0, 13))), TO_CPU, [])
    assert found is not None
    assert found.code == 'torch.load(a, map_location="cpu")'
    script.write_bytes(b"# coding: latin-1\n'\xe9', torch.load(a)\n")
    found = mend(call(place(script, 2)), TO_CPU, [])
    assert found is not None
    assert found.kind == "argument"  # columns count bytes of another encoding


@table("name", ["<stdin>", "none.py", "nul\0"])
def test_source_that_is_not_there(name: str) -> None:
    found = mend(call(place(name)), TO_ONE, [])
    assert found is not None
    assert (found.kind, found.code) == (
        "argument",
        'map_location={"cuda:1": "cuda:0", "cuda:2": "cuda:0"}',
    )


def test_source_longer_than_a_program_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("torch.load(p)\n")
    monkeypatch.setattr(mending, "_MOST_SOURCE_NBYTES", 5)
    found = mend(call(place(script)), TO_CPU, [])
    assert found is not None
    assert found.kind == "argument"


def test_keyword_only_arguments_are_not_taken_for_others(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("Net.load(p, 1, 2)\n")
    found = mend(call(place(script, takes=99)), TO_CPU, [])
    assert found is not None
    assert found.code == 'Net.load(p, 1, 2, map_location="cpu")'


def test_torchscript_takes_one_device(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("torch.jit.load(p)\n")
    found = mend(call(place(script), way="jit"), TO_ONE[:1], [])
    assert found is not None
    assert found.code == 'torch.jit.load(p, map_location="cuda:0")'


def test_pickles_have_no_argument_for_it() -> None:
    found = mend(call(place("x.py", takes=-1), way="pickle"), [('cuda:"', "cpu")], [])
    assert found is not None
    assert found.kind == "before"
    assert found.code == (
        "import io, torch; torch.storage._load_from_bytes = lambda data: "
        'torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)'
    )


def test_code_that_is_not_the_users_is_helped_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "it's.pth"
    file.write_bytes(b"")
    own = place("x.py", takes=-1)
    found = mend(call(own), TO_ONE, [str(file)])
    assert found is not None
    assert (found.kind, found.code.split(" --in-place ")[1]) == (
        "file",
        "--map cuda:1=cuda:0 --map cuda:2=cuda:0",
    )
    assert "it'\"'\"'s.pth'" in found.code
    for files in ([], [str(tmp_path / "gone.pth")], [str(file)] * 4):
        found = mend(call(own), TO_CPU, files)
        assert found is not None
        assert (found.kind, found.code) == (
            "before",
            'import functools, torch; torch.load = functools.partial(torch.load, map_location="cpu")',
        )
    found = mend(call(None), TO_CPU, [])
    assert found is not None
    assert found.place is None


LINE = Place(file="<stdin>", line=3, span=None, calls="load", takes=1)


def made(**changes: object) -> Call:
    given = {"site": LINE, "own": LINE, "saved": "cuda:0", "to": "cpu", "why": "missing", "way": "load"}
    return Call(**{**given, "file": None, "storages": 1, "nbytes": 10, **changes})


def needs(*calls: Call):
    return find_needs(Journal(calls=calls, processes=1, with_torch=1, failures=()))


def test_one_line_that_loads_many_files_is_one_need() -> None:
    (need,) = needs(
        *(made(file=f"{index}.pth") for index in range(3)),
        made(saved="cuda:1", nbytes=5),
        made(),
    )
    assert need.files == ("0.pth", "1.pth", "2.pth")
    assert [(move.saved, move.storages, move.nbytes) for move in need.moves] == [
        ("cuda:0", 4, 40),
        ("cuda:1", 1, 5),
    ]
    assert need.mending is not None
    assert need.mending.code == 'map_location="cpu"'


def test_ways_and_lines_are_needs_of_their_own() -> None:
    found = needs(
        made(),
        made(way="pickle"),
        made(site=None),
        made(to=None, why="no-rule", own=None),
    )
    assert [need.way for need in found] == ["load", "pickle", "load", "load"]
    assert found[3].mending is None

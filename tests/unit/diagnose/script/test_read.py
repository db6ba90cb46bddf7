from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.diagnose.script.read import decode_script, parse_script, read_script
from inspector.errors import CheckpointError, ModelError
from tests.sweep import table


def notebook(*cells: object, **more: object) -> str:
    return json.dumps({"nbformat": 4, "cells": list(cells), **more})


def code(source: object) -> dict[str, object]:
    return {"cell_type": "code", "source": source}


def test_lines_and_places() -> None:
    script = parse_script("a = 1\r\nb = 'é'; c = a\rd = 2", "train\u000a.py")
    assert script.name == "train\\u000a.py"
    assert [script.line(number) for number in (0, 1, 2, 3, 4)] == ["", "a = 1", "b = 'é'; c = a", "d = 2", ""]
    assert [script.source(node) for node in script.tree.body] == ["a = 1", "b = 'é'", "c = a", "d = 2"]


def test_notebooks() -> None:
    text = notebook(
        code(["%matplotlib inline\n", "!pip install torch\n", "x = 1\n"]),
        {"cell_type": "markdown", "source": "# text"},
        code("%%bash\nls"),
        code("%%time\ny = 2\nfiles = !ls\nx?"),
        code(7),
        "none",
    )
    script = parse_script(text)
    assert script.is_notebook
    lines = [script.line(number) for number in range(1, 12)]
    assert lines[:3] == ["pass  # %matplotlib inline", "pass  # !pip install torch", "x = 1"]
    assert "# ls" in lines
    assert "y = 2" in lines
    assert "pass  # files = !ls" in lines
    old = json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": ["z = 3"]}]}]})
    assert parse_script(old).line(1) == "z = 3"


def test_what_begins_like_a_notebook_and_is_none() -> None:
    for text in ("{}", '{"cells": 1}', '{"worksheets": []}', "{1: 2}"):
        assert not parse_script(text).is_notebook


def test_pasted_cells_may_have_magic_lines() -> None:
    script = parse_script("%cd folder\nx = 1\n# 100 %\n")
    assert script.line(1) == "pass  # %cd folder"
    assert script.line(3) == "# 100 %"
    assert not script.is_notebook


@table(
    "text",
    [
        "def f(:\n",
        "x = 1\0",
        "(" * 100_000,
        "[" * 101 + "]" * 101,
        "f" + "()" * 3000,
        "1+" * 3000 + "1",
        " " * 721 + "x",
        "x" * (1 << 20) + "y",
    ],
    ids=["syntax", "null", "brackets", "deep", "many", "operators", "indent", "long"],
)
def test_refused(text: str) -> None:
    with pytest.raises(ModelError):
        parse_script(text)


def test_python_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (RecursionError, MemoryError, ValueError, OverflowError):

        def fail(_: str, error: type[Exception] = error) -> None:
            raise error

        monkeypatch.setattr("inspector.diagnose.script.read.ast.parse", fail)
        with pytest.raises(ModelError):
            parse_script("x = 1")


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    assert read_script(str(path)) == ("train.py", "# -*- coding: latin-1 -*-\nx = 'é'\n")
    assert decode_script("\ufeffx = 1".encode()) == "x = 1"
    for data in (b"# coding: nothing\n", b"\xff\xfe\x00", b"x" * (4 << 20) + b"yy"):
        with pytest.raises(ModelError):
            decode_script(data)
    with pytest.raises(CheckpointError):
        read_script(str(tmp_path / "none.py"))
    with pytest.raises(CheckpointError, match="this is a folder, and no script"):
        read_script(str(tmp_path))

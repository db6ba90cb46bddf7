from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

import inspector
from inspector.cli.commands import show
from inspector.errors import CancelledError
from inspector.resources import demo_path

DEMO = demo_path()


def test_names_that_would_paint_the_terminal_are_escaped(cli, tmp_path) -> None:
    path = tmp_path / "a\nb\x1b[31m\u202e.pth"
    shutil.copy(DEMO, path)
    assert cli("show", path).out.splitlines()[0].endswith(r"a\u000ab\u001b[31m\u202e.pth")
    assert json.loads(cli("show", path, "--json").out)["path"] == str(path)
    missing = cli("show", tmp_path / "no\nsuch")
    assert missing.err.count("\n") == 1
    assert r"no\u000asuch" in missing.err


def test_a_path_that_is_no_text_can_be_shown(cli, tmp_path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.pth")
    shutil.copy(DEMO, path)
    assert cli("show", path).out.splitlines()[0].endswith(r"/\udcff.pth")
    assert json.loads(cli("show", path, "--json").out)["path"] == path


def test_what_is_no_regular_file_is_refused_at_once(cli, tmp_path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero"), tmp_path):
        answer = cli("show", path)
        assert (answer.code, answer.out, answer.err.count("\n")) == (3, "", 1)


@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_a_mistake_of_ours_does_not_keep_the_other_files(cli, monkeypatch, json_option) -> None:
    real = show._json if json_option else show._page

    def mistaken(path: str, options: object) -> str:
        return real(path, options) if path == str(DEMO) else str(1 // 0)

    monkeypatch.setattr(show, "_json" if json_option else "_page", mistaken)
    answer = cli("show", "broken", DEMO, *json_option)
    assert answer.code == 3
    assert "unexpected ZeroDivisionError" in (answer.out if json_option else answer.err)
    assert str(DEMO) in answer.out


def test_interruption_ends_all(cli, monkeypatch) -> None:
    def cancelled(path: str, options: object) -> str:
        raise CancelledError

    monkeypatch.setattr(show, "_page", cancelled)
    answer = cli("show", "a", "b")
    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_rows_of_missing_bytes_are_marked(cli, tmp_path: Path, monkeypatch) -> None:
    """The table of a cut file never reads as that of a whole one: in a pipe, on a terminal of any width."""
    cut = tmp_path / "cut.pth"
    cut.write_bytes(demo_path().read_bytes()[:500_000])
    count = len(inspector.open(cut).filter("is:missing"))
    for width, color in ((80, "never"), (80, "always"), (30, "always")):
        monkeypatch.setenv("COLUMNS", str(width))
        rows = [
            re.sub(r"\x1b\[[\d;]*m", "", row) for row in cli("show", cut, "--color", color).out.splitlines()
        ]
        marked = [row for row in rows if re.match(r" *(\d+: )?! ", row)]
        (optimizer,) = (row for row in marked if row.startswith("! optimizer"))
        if width == 80:
            assert (
                len([row for row in marked if " missing, " in row and not re.search(r"\d missing", row)])
                == count
            )
            assert " 22 missing, " in optimizer
        assert len(marked) > count > 20, (width, color)
    assert not re.search(r"^ *! ", cli("show", demo_path()).out, re.MULTILINE)

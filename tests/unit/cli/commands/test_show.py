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


def test_rows_of_missing_bytes_are_marked(cli, tmp_path: Path) -> None:
    """The table of a cut file must not read as that of a whole one, in a pipe or on a terminal."""
    cut = tmp_path / "cut.pth"
    cut.write_bytes(demo_path().read_bytes()[:500_000])
    count = len(inspector.open(cut).filter("is:missing"))
    lost = re.compile(r"! missing, ")
    for color in ("never", "always"):
        rows = cli("show", cut, "--color", color).out.splitlines()
        marked = [row for row in rows if lost.search(row)]
        assert len(marked) == count > 20, color
        assert [row for row in rows if "! 22 missing, " in row], color
    assert not lost.search(cli("show", demo_path()).out)

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from inspector.cli.commands import show
from inspector.errors import CancelledError
from inspector.resources import demo_path

DEMO = demo_path()


def test_text_is_for_people(cli) -> None:
    answer = cli("show", DEMO)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == str(DEMO)
    assert "Parameter names of optimizer state" in lines
    assert any(line.startswith("    conv ") for line in lines)


def test_json_is_one_document_and_nothing_else(cli) -> None:
    answer = cli("show", DEMO, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("\n") == 1
    document = json.loads(answer.out)
    assert document["schema"] == 1
    assert len(document["tensors"]) == 283


def test_several_files_are_json_lines_with_those_that_cannot_be_read(cli, tmp_path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    files = [tmp_path / "missing", DEMO, tmp_path, empty, DEMO]
    answer = cli("show", "--json", *files)
    assert (answer.code, answer.err) == (3, "")
    documents = [json.loads(line) for line in answer.out.splitlines()]
    assert [document["path"] for document in documents] == [str(file) for file in files]
    assert ["error" in document for document in documents] == [True, False, True, True, False]
    assert all(document["error"]["message"] for document in documents if "error" in document)
    assert documents[0] == {
        "schema": 1,
        "path": str(files[0]),
        "error": {"kind": "container", "message": "no such file", "where": str(files[0])},
        "safety": None,
        "findings": [],
    }


def test_several_files_as_text(cli, tmp_path) -> None:
    answer = cli("show", tmp_path / "missing", DEMO, tmp_path / "gone", DEMO, "--depth", "1")
    assert answer.code == 3
    assert answer.out.startswith(f"{DEMO}\n")
    assert answer.out.count(f"\n\n{DEMO}\n") == 1
    assert answer.err.splitlines() == [
        f"checkpoint-inspector: error: no such file: {tmp_path / 'missing'}",
        f"checkpoint-inspector: error: no such file: {tmp_path / 'gone'}",
    ]


def test_an_error_inside_a_file_names_the_file_as_well(cli, tmp_path) -> None:
    short = tmp_path / "short.pth"
    short.write_bytes(DEMO.read_bytes()[:1000])
    answer = cli("show", short)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.count("\n") == 1
    assert str(short) in answer.err


def test_filter_narrows_text_and_json(cli) -> None:
    text = cli("show", DEMO, "--filter", "dtype:int64 device:cuda:1 bn1")
    names = [line.split()[0] for line in text.out.splitlines() if " cuda:1 " in line and "int64" in line]
    assert set(names) == {"num_batches_tracked"}
    document = json.loads(cli("show", DEMO, "--json", "--filter", "dtype:int64 device:cuda:1 bn1").out)
    assert {row["path"].rpartition(".")[2] for row in document["tensors"]} == {"num_batches_tracked"}
    assert document["values"] == []
    assert len(json.loads(cli("show", DEMO, "--json", "--filter", "").out)["tensors"]) == 283


def test_filter_that_finds_nothing_says_so(cli) -> None:
    assert "Nothing matches the filter." in cli("show", DEMO, "--filter", "no such thing").out
    for options in ((), ("--json",)):
        mistyped = cli("show", DEMO, *options, "--filter", "devise:cuda:0")
        assert mistyped.code == 2
        assert (json.loads(mistyped.out)["error"]["kind"] if options else mistyped.out) == "query" * bool(
            options
        )
        assert "devise: is no field of the search: did you mean device:? (" in mistyped.err
    assert json.loads(cli("show", DEMO, "--json", "--filter", "nothing at all").out)["tensors"] == []


def test_depth_ends_the_tree(cli) -> None:
    deep = cli("show", DEMO, "--depth", "2").out
    assert "\n  stem " in deep
    assert "\n    conv " not in deep


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


def test_depth_cuts_the_json_as_it_cuts_the_tree(cli) -> None:
    """The fixture holds the document against its schema."""
    whole = json.loads(cli("show", DEMO, "--json").out)
    assert "groups" not in whole
    cut = json.loads(cli("show", DEMO, "--json", "--depth", "1").out)
    assert (cut["tensors"], [row["path"] for row in cut["values"]]) == ([], ["epoch", "best_accuracy"])
    assert {row["path"] for row in cut["groups"]} >= {"model/", "optimizer/"}
    assert (cut["storages"], cut["devices"]) == (whole["storages"], whole["devices"])
    found = json.loads(cli("show", DEMO, "--json", "--depth", "3", "--filter", "model/head.bias").out)
    assert [row["path"] for row in found["tensors"]] == ["model/head.bias"]
    assert [row["path"] for row in found["groups"]] == ["model/", "model/head."]

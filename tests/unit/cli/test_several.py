from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from inspector.cli import several
from inspector.cli.common import UnsaidError
from inspector.cli.several import expand
from inspector.containers.walking import checkpoints_in
from inspector.errors import CancelledError
from inspector.resources import demo_path
from inspector.target import profile_file
from inspector.target.profile import Profile
from tests.builders import pickles, zips
from tests.builders.folders import two_shards

DEMO = demo_path()


def test_documents_are_one_a_line(cli, tmp_path) -> None:
    small = tmp_path / "small.pth"
    state = pickles.state_dict(w=pickles.tensor(pickles.storage(location="cuda:0"), 2))
    small.write_bytes(zips.checkpoint(state, {"0": bytes(8)}))
    missing = tmp_path / "missing.pth"
    for command in (
        ("check", "--target", "cpu"),
        ("show",),
        ("verify", "--against", str(small)),
        ("snippet",),
        ("remap", "--dry-run"),
    ):
        answer = cli(command[0], small, missing, small, *command[1:], "--json")
        documents = [json.loads(line) for line in answer.out.splitlines()]
        assert [document["path"] for document in documents] == [str(small), str(missing), str(small)], command
        assert {document["schema"] for document in documents} == {1}
        assert [
            "error" in document and set(document["error"] or ()) == {"kind", "message", "where"}
            for document in documents
        ][1]
        assert answer.code == 3


def test_what_ends_everything_is_no_answer_about_one_file(cli, monkeypatch) -> None:
    for error, code in ((CancelledError(), 130), (BrokenPipeError(), 0), (UnsaidError("no room"), 4)):
        asked: list[str] = []

        def fail(path: str, *_: object, error: Exception = error, asked: list[str] = asked) -> int:
            asked.append(path)
            raise error

        monkeypatch.setattr("inspector.cli.commands.verify._verify", fail)
        assert cli("verify", "a", "b", "--against", "c", "--json").code == code
        assert asked == ["a"]


def test_patterns_are_found_where_the_shell_leaves_them(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.pth", "a.pth", "[x].pth"):
        Path(name).touch()
    assert expand(["?.pth", "[x].pth", "no*.pth"]) == ["a.pth", "b.pth", "[x].pth", "no*.pth"]


def test_a_mistake_of_this_program_stops_no_other_file(cli, monkeypatch) -> None:
    monkeypatch.setattr("inspector.cli.commands.verify._verify", lambda *_: 1 // 0)
    answer = cli("verify", "a", "b", "--against", "c")
    assert (answer.code, answer.err.count("unexpected ZeroDivisionError")) == (3, 2)


def test_the_note_is_part_of_the_help(cli) -> None:
    words = " ".join(several.MANY.split())
    for command in ("check", "verify", "snippet", "remap"):
        assert words in " ".join(cli(command, "--help").out.split())


FAILING = (
    (2, ("target", "--python", "/nonsense")),
    (2, ("target", "--target", "moon")),
    (3, ("stats", "x", "--scan")),
    (2, ("stats", DEMO, "a")),
    (3, ("diff", "a", "b")),
    (2, ("diff", "a")),
    (3, ("verify", "a", "--against", "b")),
    (2, ("verify", "-", "--against", "-")),
    (3, ("snippet", "a")),
    (2, ("snippet", "a", "b", "--style", "nope")),
    (3, ("recover", "a", "-o", "b")),
    (2, ("remap", "a")),
    (4, ("remap", "a", "--undo")),
    (3, ("remap", "a", "--in-place")),
    (3, ("check", "a", "--target", "cpu", "--error-file", "/none")),
    (2, ("show", "-", "-")),
)


def test_under_json_every_failure_is_a_document_and_a_line(cli) -> None:
    """The fixture holds each document against the schema of its command."""
    for code, words in FAILING:
        answer = cli(*words, "--json")
        (document,) = map(json.loads, answer.out.splitlines())
        assert (answer.code, document["schema"]) == (code, 1), words
        assert answer.err.startswith(f"checkpoint-inspector: error: {document['error']['message']}"), words


def test_the_machine_is_asked_once_for_all_files(cli, monkeypatch) -> None:
    asked: list[object] = []

    def probe(_: object, python: object = None) -> Profile:
        asked.append(python)
        return Profile(id="this", label="this machine")

    monkeypatch.setattr(profile_file, "probe_this_machine", probe)
    assert cli("check", DEMO, DEMO, DEMO).code == 1
    assert asked == [None]


def test_a_pattern_in_quotes_finds_the_files_that_it_means(cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DEMO, "best.pth")
    assert cli("show", "*.pth", "--depth", "1").out.startswith("best.pth\n")
    assert cli("recover", "*.pth", "-o", "x.pt").err.endswith(
        "no such file: *.pth (name one of the files that match)\n"
    )
    assert cli("show", "*.pt").err.endswith("no such file: *.pt (no file matches this pattern)\n")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as trainings leave it, with what is passed over and what is not."""
    monkeypatch.chdir(tmp_path)
    for name in ("epoch-10.pth", "epoch-2.pth", "b/last.pth", ".trash/old.pth"):
        Path("runs", name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DEMO, Path("runs", name))
    two_shards(Path("runs/model"))
    Path("runs/notes.txt").write_text("lr 0.1")
    Path("runs/b/again").symlink_to("..")
    return Path("runs")


FOUND = ["runs/epoch-2.pth", "runs/epoch-10.pth", "runs/b/last.pth", "runs/model"]


def test_a_folder_is_walked(cli, runs) -> None:
    """Hidden folders and what does not look like a checkpoint are left out; a folder of shards is one."""
    answer = cli("check", runs, "--target", "cpu", "--format", "concise")
    assert answer.out.splitlines() == [
        *(f'{name}: NO on cpu: map_location="cpu"' for name in FOUND[:3]),
        "runs/model: YES on cpu",
    ]
    assert answer.err.startswith("checkpoint-inspector: 4 files: 1 loads and is safe, 3 do not load")
    assert answer.code == 1
    for command in ("check", "show"):
        lines = cli(command, runs, "--json").out.splitlines()
        assert [json.loads(line)["path"] for line in lines] == FOUND, command
    assert cli("show", runs / "model", "--depth", "1").out.count("sharded") == 1


def test_what_cannot_be_read_in_a_folder_is_no_success(cli, runs) -> None:
    for name, data in (("page.pt", b"<!DOCTYPE html><html></html>"), ("empty.pth", b"")):
        Path(runs, name).write_bytes(data)
    Path(runs, "gone.pth").symlink_to("nowhere")
    answer = cli("check", runs, "--target", "2xcuda")
    assert (answer.code, answer.err.count("checkpoint-inspector: error: ")) == (3, 3)
    assert answer.out.endswith("\n7 files: 4 load and are safe, 3 could not be read\n")
    answer = cli("check", runs, "--target", "2xcuda", "--json")
    failed = [one["path"] for one in map(json.loads, answer.out.splitlines()) if one.get("error")]
    assert failed == ["runs/empty.pth", "runs/gone.pth", "runs/page.pt"]


def test_what_was_not_looked_at_is_no_success(cli, runs, monkeypatch) -> None:
    monkeypatch.setitem(checkpoints_in.__kwdefaults__, "most_entries", 2)
    answer = cli("check", runs, "--target", "2xcuda")
    assert answer.code == 3
    assert "more than 2 files and folders: the rest was not looked at" in answer.err


def test_a_folder_without_checkpoints_is_told(cli, tmp_path) -> None:
    for command in ("check", "show"):
        answer = cli(command, tmp_path)
        assert answer.code == 3
        assert answer.err.endswith(f"error: no checkpoint is in this folder or below it: {tmp_path}\n")
        (document,) = map(json.loads, cli(command, tmp_path, "--json").out.splitlines())
        assert (document["path"], document["error"]["kind"]) == (str(tmp_path), "container")
        several = cli(command, tmp_path, DEMO)
        assert (several.code, str(DEMO) in several.out) == (3, True), "it stops no other"


def test_a_filter_narrows_findings_to_its_rows_and_not_the_verdict(cli) -> None:
    """Also to rows behind the first twenty, which are all that a finding names."""
    whole = json.loads(cli("check", DEMO, "--target", "cpu", "--json").out)
    narrow = json.loads(cli("check", DEMO, "--target", "cpu", "--json", "--filter", "role:optimizer").out)
    for key in ("loads", "safe", "error"):
        assert narrow[key] == whole[key], key
    (about,) = (one for one in narrow["findings"] if one["id"] == "cuda-unavailable")
    assert (about["count"], len(about["paths"])) == (94, 20)
    assert all(path.startswith("optimizer/") for one in narrow["findings"] for path in one["paths"])
    assert not any(path.startswith("optimizer/") for one in whole["findings"] for path in one["paths"][:20])


def test_a_filter_that_finds_nothing_is_an_answer_of_its_own(cli) -> None:
    for words in (("show",), ("check", "--target", "2xcuda")):
        for more in ((), ("--json",)):
            assert cli(words[0], DEMO, *words[1:], *more).code == 0
            answer = cli(words[0], DEMO, *words[1:], *more, "--filter", "no_such_layer")
            assert answer.code == 1, (words, more)
            assert "othing matches the filter" in (answer.err if more else answer.out)
        assert cli(words[0], DEMO, *words[1:], "--filter", "role:paramter").code == 2

from __future__ import annotations

import json
import shutil
from pathlib import Path

from inspector.cli import several
from inspector.cli.common import UnsaidError
from inspector.cli.several import expand
from inspector.errors import CancelledError
from inspector.resources import demo_path
from inspector.target import profile_file
from inspector.target.profile import Profile
from tests.builders import pickles, zips

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

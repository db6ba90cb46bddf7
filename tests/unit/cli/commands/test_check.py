from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

from inspector.cli.commands import check
from inspector.errors import CancelledError, CheckpointError
from inspector.resources import demo_path
from inspector.target import profile_file
from inspector.target.profile import CPU_ONLY
from tests.builders import legacy
from tests.builders.pickles import call, dict_, op, proto, stream, text
from tests.corpus import CORPUS
from tests.sweep import table

DEMO = demo_path()
PROFILES = Path(__file__).parents[3] / "data" / "profiles"
WEIGHTS = CORPUS / "zip" / "state_dict.pt"
CUDA_ERROR = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, ..."
)


def test_what_does_not_load_is_answered_with_no(cli) -> None:
    answer = cli("check", DEMO, "--target", "cpu")
    assert (answer.code, answer.err) == (1, "")
    lines = answer.out.splitlines()
    assert lines[0] == str(DEMO)
    assert lines[1:3] == [
        "  DOES NOT LOAD on a machine without a GPU: saved on cuda:0, cuda:1.",
        "  SAFE: weights only.",
    ]
    assert "RuntimeError: Attempting to deserialize object on a CUDA device" in answer.out
    assert len(lines) == 9
    assert f'       torch.load("{DEMO}", map_location="cpu")' in lines
    assert f"       checkpoint-inspector remap {DEMO} -o " in answer.out


def test_the_machine_says_why_it_lacks_the_device(cli) -> None:
    hidden = PROFILES / "hidden-by-empty-variable.json"
    answer = cli("check", DEMO, "--target", hidden)
    parts = ("DOES NOT LOAD on hidden-by-empty-variable", "torch.load says:", "\nThe machine\n")
    places = [answer.out.index(part) for part in parts]
    assert places == sorted(places)
    assert "!! CUDA_VISIBLE_DEVICES hides every GPU" in answer.out
    document = json.loads(cli("check", DEMO, "--target", hidden, "--json").out)
    assert [row["id"] for row in document["diagnoses"]] == ["devices-hidden"]


def test_a_machine_that_works_is_left_out_where_nobody_asks(cli) -> None:
    works, old = PROFILES / "works-one-of-two-3090.json", PROFILES / "gpu-too-old-1080.json"
    assert "The machine" not in cli("check", WEIGHTS, "--target", works).out
    assert "torch can use the GPU" in cli("check", WEIGHTS, "--target", works, "--full").out
    asked = cli("check", DEMO, "--target", works).out  # it was saved on cuda:1
    assert "torch sees 1 of 2 GPUs" in asked
    assert "torch can use the GPU" not in asked
    assert "This torch has no code for the old GPU" in cli("check", WEIGHTS, "--target", old).out


def test_an_error_about_a_device_names_what_ails_the_machine(cli, tmp_path) -> None:
    old, damaged = PROFILES / "driver-too-old-470.json", tmp_path / "damaged.pt"
    damaged.write_bytes(b"PK\x03\x04")
    for file in (WEIGHTS, damaged):
        answer = cli("check", file, "--target", old, "--error-text", CUDA_ERROR)
        assert "The NVIDIA driver is too old for this torch" in answer.out
        found = json.loads(cli("check", file, "--target", old, "--error-text", CUDA_ERROR, "--json").out)
        assert [row["id"] for row in found["diagnoses"]] == ["driver-too-old"]
    works = PROFILES / "works-one-of-two-3090.json"
    asked = cli("check", WEIGHTS, "--target", works, "--error-text", CUDA_ERROR).out
    assert "torch sees 1 of 2 GPUs" in asked
    assert "torch can use the GPU" not in asked
    answer = cli("check", damaged, "--target", old, "--error-text", "KeyError: 'model'")
    assert "The machine" not in answer.out
    assert "The machine" not in cli("check", damaged, "--target", "cpu", "--error-text", CUDA_ERROR).out


def test_without_an_answer_about_this_machine_the_error_is_explained_all_the_same(
    cli, tmp_path, monkeypatch
) -> None:
    def fail(_progress: object, _python: object) -> None:
        raise CheckpointError("no answer")

    monkeypatch.setattr(profile_file, "probe_this_machine", fail)
    damaged = tmp_path / "damaged.pt"
    damaged.write_bytes(b"PK\x03\x04")
    answer = cli("check", damaged, "--error-text", CUDA_ERROR)
    assert answer.code == 3
    assert answer.out.startswith("The error\n")


def test_a_machine_without_torch_is_not_said_to_load_it_at_once(cli) -> None:
    answer = cli("check", WEIGHTS, "--target", PROFILES / "torch-missing.json")
    assert answer.out.splitlines()[1:4] == [
        "  torch is not installed on torch-missing: import torch fails. This is for the newest torch on its",
        "  CPU.",
        f'  LOADS on torch-missing: torch.load("{WEIGHTS}") works there.',
    ]
    assert "torch is not installed for this Python" in answer.out


def test_what_was_understood_of_the_target_is_said(cli) -> None:
    answer = cli("check", DEMO, "--target", "cuda:1")
    assert answer.code == 0
    said = "2 NVIDIA GPUs (the fewest with cuda:1; 4xcuda:1 means 4), cuda:1 wanted"
    assert answer.out.splitlines()[1] == f"  Target: {said}."
    target = json.loads(cli("check", DEMO, "--target", "cuda:1", "--json").out)["target"]
    assert (target["understood"], target["wanted"], target["destination"]) == (said, "cuda:1", "cuda:1")
    answer = cli("check", DEMO, "--target", "2xcuda:2")
    assert (answer.code, answer.out) == (2, "")
    assert "the target has no cuda:2: 2 NVIDIA GPUs" in answer.err


def test_what_loads_is_answered_with_yes(cli) -> None:
    answer = cli("check", WEIGHTS, "--target", "cpu")
    assert (answer.code, answer.err) == (0, "")
    assert f'  LOADS on a machine without a GPU: torch.load("{WEIGHTS}") works there.' in answer.out
    assert "  SAFE: weights only." in answer.out


@table(
    ("name", "loads", "safe"),
    [
        ("zip/state_dict.pt", True, True),
        ("zip/module_custom.pt", False, False),
        ("hostile/os_system.pt", False, False),
    ],
)
def test_json_is_the_document_of_the_contract(cli, name: str, loads: bool, safe: bool) -> None:
    answer = cli("check", CORPUS / name, "--target", "cpu", "--json")
    assert answer.code == (0 if loads and safe else 1)
    assert answer.out.count("\n") == 1
    document = json.loads(answer.out)
    assert set(document) == {"schema", "path", "target", "loads", "error", "safe", "findings", "diagnoses"}
    assert document["diagnoses"] == []
    assert (document["schema"], document["path"]) == (1, str(CORPUS / name))
    assert document["target"]["id"] == "cpu"
    assert (document["loads"], document["safe"]) == (loads, safe)
    assert (document["error"] is None) == loads


def test_this_machine_is_asked_unless_another_is_named(cli, monkeypatch) -> None:
    from inspector.target import profile_file

    asked = []
    monkeypatch.setattr(
        profile_file, "probe_this_machine", lambda progress, python=None: asked.append(progress) or CPU_ONLY
    )
    assert cli("check", WEIGHTS).code == 0
    assert len(asked) == 1
    assert cli("check", WEIGHTS, "--target", "cuda").code == 0
    assert len(asked) == 1


def test_error_text_is_explained(cli) -> None:
    answer = cli("check", DEMO, "--target", "cpu", "--error-text", CUDA_ERROR)
    assert answer.code == 1
    assert "The error\n  Saved on a device that torch cannot find on this machine." in answer.out
    assert "In this file: 233 tensors of this file were saved on cuda:0, cuda:1." in answer.out
    document = json.loads(cli("check", DEMO, "--target", "cpu", "--json", "--error-text", CUDA_ERROR).out)
    assert document["explanation"]["id"] == "device-unavailable"
    assert document["explanation"]["finding"] == "cuda-unavailable"
    fix = document["explanation"]["fix"]
    assert (fix["kind"], fix["map"]) == ("rule", "cuda:*=cpu")
    assert fix["lines"][0]["text"] == f'torch.load("{DEMO}", map_location="cpu")'
    assert document["explanation"]["count"] == 233


def test_unknown_error_text_says_what_would_help(cli) -> None:
    answer = cli("check", WEIGHTS, "--target", "cpu", "--error-text", "")
    assert answer.code == 0
    assert "There is no text." in answer.out
    assert "What to do: Paste the whole text" in answer.out


def test_error_file_and_standard_input(cli, tmp_path, monkeypatch) -> None:
    path = tmp_path / "error.txt"
    path.write_bytes(CUDA_ERROR.encode() + b"\xff")
    assert "233 tensors" in cli("check", DEMO, "--target", "cpu", "--error-file", path).out
    monkeypatch.setattr(sys, "stdin", io.StringIO(CUDA_ERROR))
    assert "233 tensors" in cli("check", DEMO, "--target", "cpu", "--error-file", "-").out
    answer = cli("check", DEMO, "--target", "cpu", "--error-file", tmp_path / "missing")
    assert (answer.code, answer.out, answer.err.count("\n")) == (3, "", 1)
    assert "the error text cannot be read" in answer.err


def test_an_error_file_is_no_fifo_and_read_within_bounds(cli, tmp_path, monkeypatch) -> None:
    """Nobody may ever write to it; a device never ends."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero"):
        answer = cli("check", DEMO, "--target", "cpu", "--error-file", path)
        assert (answer.code, answer.out) == (3, "")
        assert "this is not a regular file" in answer.err
        assert "use a pipe and --error-file -" in answer.err
    path = tmp_path / "error.txt"
    path.write_bytes(CUDA_ERROR.replace("\n", "\r\n").encode())
    monkeypatch.setattr(check, "_MOST_CHARS", 5)
    assert "233 tensors" not in cli("check", DEMO, "--target", "cpu", "--error-file", path).out


def test_wrong_usage(cli) -> None:
    for arguments in (("a", "--error-text", "x", "--error-file", "y"), (), ("a", "--python", "/nonsense")):
        answer = cli("check", *arguments)
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    answer = cli("check", DEMO, "--target", "moon")
    assert (answer.code, answer.out) == (2, "")


def test_what_cannot_be_read_is_told_and_its_error_explained(cli, tmp_path) -> None:
    page = tmp_path / "page.pt"
    page.write_bytes(b"<!DOCTYPE html><html></html>")
    answer = cli("check", page, "--target", "cpu")
    assert (answer.code, answer.out, answer.err.count("\n")) == (3, "", 1)
    assert str(page) in answer.err
    said = "_pickle.UnpicklingError: invalid load key, '<'."
    answer = cli("check", page, "--target", "cpu", "--error-text", said)
    assert answer.code == 3
    assert "The file is not a checkpoint" in answer.out
    assert "In this file: The given file cannot be read: " in answer.out
    assert "No file is open" not in answer.out
    document = json.loads(cli("check", page, "--target", "cpu", "--json", "--error-text", said).out)
    assert document["error"]["message"]
    assert (document["explanation"]["finding"], document["explanation"]["fits"]) == ("html-page", "yes")
    plain = json.loads(cli("check", page, "--target", "cpu", "--json").out)
    assert set(plain) == {"schema", "path", "error", "safety", "findings"}
    assert plain["safety"] is None


def test_damage_is_not_all_that_is_said_of_a_file_that_runs_commands(cli, tmp_path) -> None:
    file = tmp_path / "cut.pt"
    info = stream(proto(), call("posix.system", text("id")), op("POP"), dict_())
    file.write_bytes(legacy.checkpoint(stream(proto(), dict_()), info=info)[:50])
    answer = cli("check", file, "--target", "cpu")
    assert (answer.code, answer.out) == (3, "")
    error, runs = answer.err.splitlines()
    assert "the file is cut off" in error
    assert "fetch" not in error
    assert "do not load it" in error
    assert (
        'DANGEROUS: Loading it can run commands: as far as it could be read, it calls posix.system("id")'
        in runs
    )
    document = json.loads(cli("check", file, "--target", "cpu", "--json").out)
    assert [found["id"] for found in document["findings"]] == ["dangerous-global", "truncated"]
    assert document["safety"] == {
        "verdict": "dangerous",
        "weights_only": False,
        "globals_to_allow": [],
        "globals": [{"name": "posix.system", "count": 1, "verdict": "dangerous"}],
        "calls": ['posix.system("id")'],
        "complete": False,
    }


def test_commands_without_json_say_what_loading_runs(cli, tmp_path) -> None:
    file = tmp_path / "evil.pkl"
    file.write_bytes(stream(proto(), call("posix.system", text("id")))[:-1] + b"\xff")
    for command in (
        ("show", file),
        ("snippet", file, "--style", "plain"),
        ("recover", file, "-o", tmp_path / "x"),
    ):
        assert "DANGEROUS: Loading it can run commands" in cli(*command).err


def test_an_error_inside_a_file_names_the_file_as_well(cli, tmp_path) -> None:
    short = tmp_path / "short.pth"
    short.write_bytes(DEMO.read_bytes()[:1000])
    answer = cli("check", short, "--target", "cpu")
    assert answer.code == 3
    assert str(short) in answer.err


def test_interruption(cli, monkeypatch) -> None:
    def cancelled(*_: object, **__: object) -> None:
        raise CancelledError

    monkeypatch.setattr(check, "_look", cancelled)
    answer = cli("check", DEMO)
    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_beliefs_ended_and_say_where_their_page_is(cli, copy) -> None:
    asked, plain = (cli("check", copy, "--json", *more) for more in (("--beliefs",), ()))
    assert (asked.out, asked.code) == (plain.out, plain.code)
    assert "docs/guide/myths.md" in asked.err

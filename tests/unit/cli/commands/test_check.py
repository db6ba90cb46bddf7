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

DEMO = demo_path()
PROFILES = Path(__file__).parents[3] / "data" / "profiles"
WEIGHTS = CORPUS / "zip" / "state_dict.pt"
CUDA_ERROR = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, ..."
)


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

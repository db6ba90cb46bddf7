from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from inspector.cli import main, streams
from inspector.cli.streams import given, streamed
from inspector.containers.source import Source
from inspector.errors import ContainerError, ExportError, PlanError
from inspector.model.build import open_checkpoint
from inspector.resources import demo_path

DEMO = demo_path()
TEXT, JSON = argparse.Namespace(json=False), argparse.Namespace(json=True)


@contextmanager
def stdin(file: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", file)
        yield


@contextmanager
def piped(data: bytes) -> Iterator[None]:
    """Standard input is a pipe that holds this much, which fits into one."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    with os.fdopen(reader, "rb") as file, stdin(file):
        yield


def test_a_redirected_file_is_read_in_place(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(streams, "_kept", lambda _: pytest.fail("copied"))
    with DEMO.open("rb") as file, stdin(file):
        answer = cli("show", "-", "--depth", "1")
        assert answer.out.startswith("stdin\n")
        with given("-", JSON) as source:
            assert isinstance(source, Source)
            assert (source.path, source.nbytes) == ("-", DEMO.stat().st_size)
    with given("a.pth", TEXT) as named:
        assert named == "a.pth"


def test_a_pipe_is_kept_in_a_file_that_has_no_name(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    small = tmp_path / "small.pth"
    assert cli("export", DEMO, "-o", small, "--exclude", "**.weight").code == 0
    data = small.read_bytes()
    small.unlink()
    assert len(data) < 60_000
    with piped(data):
        document = json.loads(cli("show", "-", "--json").out)
    assert (document["path"], document["file_nbytes"]) == ("-", len(data))
    assert {row["path"].rpartition(".")[2] for row in document["tensors"]} > {"bias"}
    with piped(data):
        checked = cli("check", "-", "--target", "cpu")
    assert (checked.code, checked.out.partition("\n")[0]) == (0, "stdin")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_read_from_is_kept_from_there_on() -> None:
    with DEMO.open("rb") as file, stdin(file):
        os.lseek(file.fileno(), 4, os.SEEK_SET)
        with given("-", TEXT) as source:
            assert isinstance(source, Source)
            assert source.nbytes == DEMO.stat().st_size - 4
            assert source.read(0, 16) == DEMO.read_bytes()[4:20]


def test_what_a_pipe_may_hold_is_bounded(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(streams, "MOST_PIPED_NBYTES", 20_000)
    with piped(bytes(30_000)):
        answer = cli("show", "-")
    assert (answer.code, answer.out) == (3, "")
    assert "standard input holds more than the 20.0 KB that are kept of a pipe" in answer.err
    assert "- < best.pth" in answer.err
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with piped(bytes(10)):
        answer = cli("show", "-", "--json")
    assert answer.code == 3
    assert json.loads(answer.out)["error"]["where"] == str(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_read_is_said(cli) -> None:
    closed = io.StringIO()
    for file in (None, closed):
        with stdin(file):
            answer = cli("check", "-", "--target", "cpu")
        assert (answer.code, answer.out) == (3, "")
        assert "standard input is closed" in answer.err
    reader, writer = os.openpty()
    try:
        with os.fdopen(writer, "rb", closefd=False) as file, stdin(file):
            answer = cli("show", "-")
    finally:
        os.close(reader)
        os.close(writer)
    assert answer.code == 2
    assert "standard input is the terminal (redirect a file: - < best.pth)" in answer.err


@pytest.fixture
def small(tmp_path_factory) -> Path:
    """A checkpoint that fits into a pipe."""
    path = tmp_path_factory.mktemp("small") / "small.pth"
    words = ("-o", path, "--only", "weights", "--exclude", "**.weight", "--map", "cuda:0=cuda:0")
    assert main([os.fspath(word) for word in ("remap", DEMO, *words)]) == 0
    return path


@pytest.fixture(params=["linux", "other"])
def folder(request, tmp_path, monkeypatch) -> Path:
    """Where what is piped may be kept, on a system that names descriptors and on one that does not."""
    folder = Path(tmp_path, "temporary")
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    if request.param == "other":
        monkeypatch.setattr(os, "access", lambda *_: False)
    return folder


def test_what_is_piped_is_rewritten(cli, capfdbinary, tmp_path, small, folder) -> None:
    data, plain, out = small.read_bytes(), tmp_path / "plain.pth", tmp_path / "out.pth"
    assert cli("remap", small, "-o", plain).code == 0
    with piped(data):
        answer = cli("remap", "-", "-o", out)
    assert (answer.code, out.read_bytes()) == (0, plain.read_bytes())
    with piped(data[:-2000]):
        answer = cli("recover", "-", "-o", out, "--force", "--json")
    assert (answer.code, json.loads(answer.out)["path"]) == (0, "-")
    with piped(data):
        plan = json.loads(cli("remap", "-", "--dry-run", "--json").out)
    assert (plan["path"], plan["action"]) == ("-", "plan")
    capfdbinary.readouterr()
    with piped(data):
        assert written(capfdbinary, "remap", "-", "-o", "-")[:2] == (0, plain.read_bytes())
    assert list(folder.iterdir()) == []


def test_what_is_piped_is_compared_and_measured(cli, tmp_path, small, folder) -> None:
    data, plain = small.read_bytes(), tmp_path / "plain.pth"
    assert cli("remap", small, "-o", plain).code == 0
    with piped(plain.read_bytes()):
        answer = cli("verify", "-", "--against", small)
    assert (answer.code, answer.out.startswith("stdin: the same but for devices; ")) == (0, True)
    with piped(data):
        answer = cli("verify", plain, "--against", "-", "--json")
    assert json.loads(answer.out)["against"] == "-"
    with piped(data):
        answer = cli("diff", "-", plain, "--json")
    found = json.loads(answer.out)
    assert (answer.code, found["a"], found["b"]) == (1, "-", str(plain))
    with piped(data):
        answer = cli("diff", small, "-")
    assert (answer.code, "\nb stdin " in answer.out) == (0, True)
    with piped(data):
        found = json.loads(cli("stats", "-", "head.bias", "--json").out)
    assert (found["path"], found["tensor"], found["nan"]) == ("-", "head.bias", 0)
    assert list(folder.iterdir()) == []


def test_what_is_piped_through_stays_of_its_format(capfdbinary, tmp_path) -> None:
    tensors = tmp_path / "a.safetensors"
    words = ("--only", "weights", "--exclude", "**.weight")
    assert written(capfdbinary, "remap", DEMO, "-o", tensors, *words)[0] == 0
    with piped(tensors.read_bytes()):
        assert written(capfdbinary, "remap", "-", "-o", "-")[:2] == (0, tensors.read_bytes())


def test_errors_about_what_was_piped_name_no_place_of_this_machine(cli, tmp_path) -> None:
    path = tmp_path / "broken.pth"
    path.write_bytes(DEMO.read_bytes()[:30_000])
    for line, said in (
        (("remap", "-", "-o", tmp_path / "x.pth"), ""),
        (("remap", "-", "--in-place"), "- (name the file)"),
        (("recover", "-", "-o", tmp_path / "x.pth"), ""),
        (("verify", "-", "--against", DEMO), ""),
        (("diff", "-", DEMO), ""),
        (("stats", "-", "nothing"), "show -)"),
        (("stats", "-", "model/stem.conv.weight"), ""),
    ):
        with path.open("rb") as file, stdin(file):
            answer = cli(*line)
        assert answer.code in {1, 2, 3}, line
        assert said in answer.err, line
        assert "/proc/" not in answer.out + answer.err, line
    with DEMO.open("rb") as file, stdin(file):
        assert json.loads(cli("stats", "-", "--scan", "--json").out)["path"] == "-"
    with DEMO.open("rb") as file, stdin(file):
        answer = cli("remap", "-", "-o", DEMO, "--force")
    assert "the copy would replace the file itself" in answer.err


def test_a_copy_that_finds_no_room_says_where(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refused = pytest.raises(ContainerError, match="cannot be kept: No space left on device")
    with DEMO.open("rb") as file, stdin(file), refused as error, streams.named("-", TEXT):
        pytest.fail("opened")
    assert str(tmp_path) in (error.value.where or "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_name_is_itself() -> None:
    with streams.named("a.pth", TEXT) as file:
        assert file == ("a.pth", "a.pth")
    error = ContainerError("a.pth", where=None)
    streams.rename(error, streams.Given("a.pth", "a.pth"))
    assert error.what == "a.pth"


# --- standard output ----------------------------------------------------------------------------------------


def written(capfdbinary: pytest.CaptureFixture[bytes], *words: object) -> tuple[int, bytes, bytes]:
    code = main([os.fspath(word) for word in words])
    out, err = capfdbinary.readouterr()
    return code, out, err


def test_a_copy_goes_to_standard_output_whole(capfdbinary, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    plain = Path(shutil.copy(DEMO, tmp_path / "plain.pth"))
    out = tmp_path / "out.pth"
    for options in (["remap"], ["export"], ["export", "--format", "safetensors"]):
        code, data, err = written(capfdbinary, options[0], plain, "-o", "-", *options[1:])
        assert code == 0
        assert err.startswith(b"standard output: ")
        assert b"reopened and compared" in err
        out.write_bytes(data)
        assert {row.device for row in open_checkpoint(str(out)).tensors} <= {"cpu", ""} | {
            row.device for row in open_checkpoint(str(out)).tensors if options
        }
        assert open_checkpoint(str(out)).format == ("safetensors" if "--format" in options else "zip")
    code, data, err = written(capfdbinary, "recover", plain, "-o", "-")
    assert (code, b"283 of 283 tensors saved" in err) == (0, True)
    out.write_bytes(data)
    assert len(open_checkpoint(str(out)).tensors) == 283
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.pth", "plain.pth"]


def test_nothing_goes_there_of_what_failed(capfdbinary, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for words, code in (
        (("remap", DEMO, "-o", "-", "--map", "cuda:7=cpu"), 2),
        (("remap", "missing", "-o", "-"), 3),
        (("recover", "missing", "-o", "-"), 3),
    ):
        assert written(capfdbinary, *words)[:2] == (code, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_takes_no_checkpoint(monkeypatch) -> None:
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(PlanError, match="a checkpoint is nothing to show on a terminal"):
        streams.refuse_stdout(TEXT)


def test_a_reader_who_left_did_not_get_the_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        with pytest.raises(ExportError, match="Broken pipe: standard output"), streamed("a.pth") as path:
            path.write_bytes(b"x")
    assert list(tmp_path.iterdir()) == []


def test_no_room_on_the_way_there_names_the_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fail(where: str | None, remedy: str | None = None) -> None:
        with streamed("a.pth") as path:
            raise ExportError("full", where=where and where.format(path), remedy=remedy)

    for where, remedy, said in (
        ("{}", None, "(TMPDIR names another folder"),
        ("{}", "try", "(try)"),
        ("/else", None, "full: /else"),
        (None, None, "full"),
    ):
        with pytest.raises(ExportError) as error:
            fail(where, remedy)
        assert said in str(error.value)
        assert ("TMPDIR" in str(error.value)) is ("TMPDIR" in said)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_standard_output_takes_no_file(cli, monkeypatch) -> None:
    monkeypatch.setattr(sys, "__stdout__", None)
    for command in ("remap", "recover"):
        answer = cli(command, DEMO, "-o", "-")
        assert (answer.code, answer.out) == (4, "")
        assert answer.err == "checkpoint-inspector: error: standard output is closed (name a file with -o)\n"


def test_windows_is_kept_from_changing_line_ends(monkeypatch) -> None:
    asked: list[tuple[int, int]] = []
    msvcrt = SimpleNamespace(setmode=lambda *words: asked.append(words))
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setattr(streams, "IS_WINDOWS", True)
    monkeypatch.setattr(os, "O_BINARY", 0x8000, raising=False)
    with piped(b"a\r\nb"), given("-", TEXT) as source:
        assert isinstance(source, Source)
        assert source.read(0, 4) == b"a\r\nb"
        assert asked == [(sys.stdin.fileno(), 0x8000)]


def test_a_signal_leaves_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.getsignal(signal.SIGTERM)

    def ended() -> None:
        with streamed("a.pth") as path:
            path.write_bytes(b"x")
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        ended()
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == before
    kept = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with streamed("a.pth") as path:
            path.write_bytes(b"")
            os.kill(os.getpid(), signal.SIGHUP)  # as `nohup` wants it
    finally:
        signal.signal(signal.SIGHUP, kept)


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(PlanError, match="why, and standard input"), stdin(None):
        streams.refuse_stdin("why", "a", "-")
    with pytest.raises(ContainerError), stdin(None), given("-", TEXT):
        pytest.fail("opened")

from __future__ import annotations

import errno
import io
import os
import signal
import sys

import pytest

from inspector.cli.common import (
    as_checkpoint_error,
    complain,
    ended_by_signals,
    exit_code,
    prepare_streams,
    remark,
    say,
)
from inspector.errors import CancelledError, ExportError
from inspector.progress import Progress


class Stream(io.StringIO):
    """A stdout that does not take everything."""

    def __init__(self, error: OSError, fd: int | None = None) -> None:
        super().__init__()
        self.error = error
        self.fd = fd

    def flush(self) -> None:
        raise self.error

    def fileno(self) -> int:
        return super().fileno() if self.fd is None else self.fd


def test_an_answer_is_written_at_once(capsys) -> None:
    say("a\n")
    assert capsys.readouterr().out == "a\n"


def test_a_full_disk_is_an_error_of_writing(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdout", Stream(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(ExportError, match="the output cannot be written: No space left on device"):
        say("a")


def test_what_is_left_in_the_buffer_goes_nowhere(monkeypatch, tmp_path) -> None:
    fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    monkeypatch.setattr(sys, "stdout", Stream(BrokenPipeError(), fd))
    with pytest.raises(BrokenPipeError):
        say("a")
    os.write(fd, b"late")
    os.close(fd)
    assert (tmp_path / "out").read_bytes() == b""


def test_where_no_error_can_be_written_the_exit_code_says_it(monkeypatch) -> None:
    full = Stream(OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(sys, "stderr", full)
    complain("no such file")
    assert full.getvalue() == "checkpoint-inspector: error: no such file\n"


class Terminal(io.StringIO):
    """A stderr that somebody looks at; its width is what COLUMNS says."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_an_error_is_broken_between_words(monkeypatch) -> None:
    said = {}
    for columns, stream in (("30", Terminal()), ("400", Terminal()), ("", Terminal()), ("30", io.StringIO())):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setattr(sys, "stderr", stream)
        complain("the file already exists: moved.pth (use --force)")
        remark("short")
        said[columns, stream.isatty()] = stream.getvalue()
    whole = (
        "checkpoint-inspector: error: the file already exists: moved.pth (use --force)\n"
        "checkpoint-inspector: short\n"
    )
    assert said.pop(("30", True)) == (
        "checkpoint-inspector: error:\n  the file already exists:\n  moved.pth (use --force)\n"
        "checkpoint-inspector: short\n"
    )
    assert set(said.values()) == {whole}  # also where no width is known


def test_the_width_is_that_of_the_terminal_of_stderr(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2, raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((30, 10 * fd)))
    complain("the file already exists: moved.pth")
    assert sys.stderr.getvalue().count("\n") == 3


def test_any_name_can_be_written(monkeypatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    prepare_streams()
    say("名 \udc80 ×")
    assert raw.getvalue() == rb"\u540d \udc80 \xd7"


def test_a_stream_that_was_closed_takes_everything(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    prepare_streams()
    say("a")
    sys.stdout.close()
    sys.stderr.close()


def test_an_error_that_can_be_said_stays_as_it_is() -> None:
    error = ExportError("no")
    assert as_checkpoint_error(error) is error
    assert exit_code(CancelledError()) == 130


def test_a_developer_gets_the_traceback(monkeypatch) -> None:
    class Flags:
        dev_mode = True

    monkeypatch.setattr(sys, "flags", Flags)
    with pytest.raises(ZeroDivisionError):
        as_checkpoint_error(ZeroDivisionError("oops"))


def test_a_signal_ends_the_work_at_its_next_step() -> None:
    progress, before = Progress(), signal.getsignal(signal.SIGTERM)
    with ended_by_signals(progress):
        progress.advance()
        os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == before  # the second ends it at once
        with pytest.raises(CancelledError):
            progress.advance()
    assert signal.getsignal(signal.SIGTERM) == before

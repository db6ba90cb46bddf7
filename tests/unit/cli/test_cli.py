"""`main`: whatever happens, one line on stderr and the right exit code."""

from __future__ import annotations

import pytest

from inspector import cli as package
from inspector.cli import main
from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    ExportError,
    ModelError,
    NotACheckpointError,
    PickleError,
    PlanError,
    UnsupportedFormatError,
)
from tests.corpus import cases
from tests.unit.report.rows import is_harmless


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """Run a command that ends in an error."""

    def run(_options: object) -> int:
        raise error

    class Options:
        pass

    Options.run = staticmethod(run)
    monkeypatch.setattr(package, "parse", lambda _given: Options)
    return main(["anything"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CheckpointError("no"), 3),
        (ContainerError("no"), 3),
        (NotACheckpointError("no"), 3),
        (UnsupportedFormatError("no"), 3),
        (PickleError("no"), 3),
        (ModelError("no"), 3),
        (PlanError("no"), 2),
        (ExportError("no"), 4),
    ],
)
def test_error_has_its_exit_code(monkeypatch, capsys, error: CheckpointError, code: int) -> None:
    assert failing(monkeypatch, error) == code
    assert capsys.readouterr() == ("", "checkpoint-inspector: error: no\n")


def test_error_says_where_and_what_to_do_in_one_harmless_line(monkeypatch, capsys) -> None:
    failing(monkeypatch, ContainerError("it is\nbad", where="/a/\x1b[31m\u202eb", remedy="fetch it"))
    said = capsys.readouterr().err
    assert said == "checkpoint-inspector: error: it is\\u000abad: /a/\\u001b[31m\\u202eb (fetch it)\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), CancelledError()])
def test_interruption_is_no_error(monkeypatch, capsys, error: BaseException) -> None:
    assert failing(monkeypatch, error) == 130
    assert capsys.readouterr() == ("", "")


def test_reader_of_a_pipe_may_leave(monkeypatch, capsys) -> None:
    assert failing(monkeypatch, BrokenPipeError()) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), RecursionError("deep"), MemoryError()])
def test_a_mistake_of_ours_is_said_in_one_line(monkeypatch, capsys, error: Exception) -> None:
    assert failing(monkeypatch, error) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"checkpoint-inspector: error: unexpected {type(error).__name__}: {error}")
    assert "please report this" in said
    assert said.count("\n") == 1


def test_what_was_typed_is_used_when_nothing_is_given(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["checkpoint-inspector", "show", "/does/not/exist"])
    assert main() == 3
    assert capsys.readouterr().err == "checkpoint-inspector: error: no such file: /does/not/exist\n"


@pytest.mark.wide
def test_every_genuine_file_is_answered(cli) -> None:
    wrong = []
    for case in cases():
        for command in (("show",), ("check", "--target", "cpu", "--error-text", "RuntimeError: CUDA error")):
            answer = cli(command[0], case.path, *command[1:])
            is_plain = is_harmless((answer.out + answer.err).replace("\n", ""))
            is_one_line = answer.err.count("\n") == (1 if answer.code == 3 else 0)
            if answer.code == 2 or not is_plain or not is_one_line or "unexpected" in answer.err:
                wrong.append((case.name, command[0], answer))
    assert wrong == []

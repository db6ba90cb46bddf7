from __future__ import annotations

import errno

import pytest

import inspector
from inspector import errors
from inspector.containers.source import FileSource
from inspector.errors import CancelledError, CheckpointError, ContainerError, MissingFileError
from inspector.remap.files import explained
from tests.sweep import table

TREE = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, CheckpointError)
]


@table(
    ("error", "text"),
    [
        (CheckpointError("it broke"), "it broke"),
        (CheckpointError("it broke", where="byte 3"), "it broke: byte 3"),
        (CheckpointError("it broke", remedy="mend it"), "it broke (mend it)"),
        (CheckpointError("it broke", where="byte 3", remedy="mend it"), "it broke: byte 3 (mend it)"),
        (CancelledError(), "cancelled"),
    ],
)
def test_error_says_what_where_and_what_to_do(error: CheckpointError, text: str) -> None:
    assert str(error) == text


def test_parts_can_be_shown_one_by_one() -> None:
    error = ContainerError("short", where="record data.pkl", remedy="download it again")
    assert (error.what, error.where, error.remedy) == ("short", "record data.pkl", "download it again")
    assert error.args == ("short",)


def test_a_file_that_is_not_there_is_what_python_calls_it(tmp_path) -> None:
    """In the words of this program all the same, on one line, and with the attributes of Python's own."""
    missing = str(tmp_path / "best.pth")
    with pytest.raises(FileNotFoundError) as caught:
        inspector.open(missing)
    assert isinstance(caught.value, inspector.ContainerError)
    assert (str(caught.value), caught.value.errno) == (f"no such file: {missing}", errno.ENOENT)
    assert caught.value.filename == missing


def test_a_file_that_may_not_be_read_is_what_python_calls_it(monkeypatch) -> None:
    """Root may read all files, so that the refusal is made up."""

    def refuse(path: str, _flags: int) -> int:
        raise PermissionError(errno.EACCES, "denied", path)

    monkeypatch.setattr("inspector.containers.source.os.open", refuse)
    with pytest.raises(PermissionError, match=r"^the file may not be read: /a.pth$") as caught:
        inspector.open("/a.pth")
    assert isinstance(caught.value, inspector.ContainerError)


def test_a_missing_original_is_no_fault_of_the_copy(tmp_path) -> None:
    with pytest.raises(MissingFileError), explained(tmp_path / "copy.pth"):
        FileSource(str(tmp_path / "best.pth"))


def test_every_kind_of_error_has_a_name_of_its_own() -> None:
    kinds = [error.kind for error in TREE if "kind" in vars(error)]
    assert len(set(kinds)) == len(kinds) > 1

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.folder import Folder
from inspector.containers.formats import FILES, find_format, format_of, refuse_step
from inspector.containers.opening import read_container
from inspector.containers.packed import GzipSource, open_source
from inspector.containers.source import BytesSource
from inspector.errors import (
    ContainerError,
    DamagedError,
    NotACheckpointError,
    PlanError,
    UnsupportedFormatError,
)
from tests.builders import legacy, tars, zips
from tests.builders.pickles import NONE, stream
from tests.sweep import table

Write = Callable[..., str]
ZIP = zips.checkpoint(stream(NONE))
TAR = tars.checkpoint(stream(NONE), [], [])


@table("protocol", range(6))
def test_legacy_is_told_by_its_magic_number(write: Write, protocol: int) -> None:
    assert read_container(write(legacy.checkpoint(stream(NONE), protocol=protocol))).format == "legacy"


def test_zip_is_told_by_its_first_record(write: Write) -> None:
    assert read_container(write(ZIP)).format == "zip"


@pytest.mark.parametrize("mtime", [0, tars.WRITTEN])
def test_tar_is_told_by_its_first_member(write: Write, mtime: float) -> None:
    data = tars.checkpoint(stream(NONE), [], [], mtime=mtime)
    assert data.startswith(b"././@PaxHeader") == bool(mtime)
    assert read_container(write(data)).format == "tar"


def refused(path: str, *, where: str | None = None) -> ContainerError:
    with pytest.raises(ContainerError) as caught:
        read_container(path)
    assert caught.value.where == (where or path)
    return caught.value


@table(
    "data",
    [
        b"\x80\x06N.",
        b"\x80",
        b"\0\0\0\0\0\0\0\0{}",
        b"\xff\xff\xff\xff\xff\xff\xff\xff{}",
        b"\n" * 10,
    ],
)
def test_anything_else_is_no_checkpoint(write: Write, data: bytes) -> None:
    error = refused(write(data))
    assert type(error) is NotACheckpointError
    assert error.what == "this is not a checkpoint of torch.save"


def test_header_of_a_safetensors_file_is_bounded(write: Write) -> None:
    largest, larger = (nbytes.to_bytes(8, "little") + b"{" for nbytes in (100_000_000, 100_000_001))
    error = refused(write(largest), where="1 of 100,000,000 bytes")
    assert type(error) is DamagedError
    assert type(refused(write(larger))) is NotACheckpointError


def test_empty_file(write: Write) -> None:
    error = refused(write(b""))
    assert type(error) is NotACheckpointError
    assert error.what == "the file is empty"


def test_folder(tmp_path: Path) -> None:
    error = refused(str(tmp_path))
    assert type(error) is NotACheckpointError
    assert error.what == "this folder is no checkpoint of several files"


def test_tar_of_something_else_is_named_without_the_magic_word(write: Write) -> None:
    error = refused(write(tars.with_header(tars.archive({"a": b"x"}, mtime=0), 257, bytes(8))))
    assert type(error) is NotACheckpointError
    assert (error.what, error.form) == ("this is a tar archive", "tar")


def test_rows_are_in_an_order_that_keeps_formats_apart(tmp_path: Path) -> None:
    (tmp_path / "data.pkl").touch()
    (tmp_path / "version").touch()
    samples = [
        (ZIP, "x"),
        (TAR, "x"),
        (tars.archive({"a": b"x"}, mtime=0), "x"),
        (legacy.checkpoint(stream(NONE)), "x"),
        (b"\x10\0\0\0\0\0\0\0{", "x"),
        (pickle.dumps([1], 2), str(tmp_path / "data.pkl")),
        (pickle.dumps([1], 2), "x"),
    ]
    forms = [entry.format() for entry in FILES if entry.name not in {"gguf", "npy"}]
    found = [[form.matches(BytesSource(data, path)) for form in forms].index(True) for data, path in samples]
    assert found == list(range(len(forms)))


def test_name_without_a_row_is_a_format_of_which_nothing_is_known() -> None:
    assert format_of("zip") is FILES[0].format()
    assert (format_of("odd").name, format_of("odd").what) == ("odd", "a odd file")


# ------------------------------------------------------------------------------------------- gzip


def test_gzip_is_looked_through(write: Write) -> None:
    path = write(gzip.compress(legacy.checkpoint(stream(NONE))))
    source = open_source(path)
    assert isinstance(source, GzipSource)
    source.close()
    assert read_container(path).format == "legacy"


@pytest.mark.parametrize(
    ("inside", "what"),
    [(TAR, "a tar checkpoint of torch 0.1"), (b"\x10" + bytes(7) + b"{", "a safetensors file")],
)
def test_what_is_not_read_through_gzip_is_refused(write: Write, inside: bytes, what: str) -> None:
    error = refused(write(gzip.compress(inside)))
    assert type(error) is UnsupportedFormatError
    assert error.what == f"this is {what}, compressed with gzip"


def test_what_is_no_checkpoint_says_how_it_is_packed(write: Write) -> None:
    data = b"\xc8" * 400
    assert refused(write(data)).what == "this is not a checkpoint of torch.save"
    assert (
        refused(write(gzip.compress(data))).what == "this is not a checkpoint of torch.save, packed with gzip"
    )


def test_damaged_gzip(write: Write) -> None:
    with pytest.raises(ContainerError, match="the gzip stream is damaged"):
        read_container(write(b"\x1f\x8b\xff\xff" + bytes(100)))
    assert refused(write(b"\x1f\x8b")).what == "the file is empty"


def test_step_that_makes_no_sense_is_refused_with_what_to_do_instead() -> None:
    refuse_step("zip", "remap", "a.pt")
    refuse_step("safetensors", "recover", "a.safetensors")
    for step in ("remap", "in-place"):
        with pytest.raises(PlanError) as caught:
            refuse_step("safetensors", step, "a.safetensors")
        assert caught.value.where == "a.safetensors"
        assert "load_file" in (caught.value.remedy or "")


def test_folders_are_told_by_their_files(tmp_path: Path) -> None:
    with pytest.raises(NotACheckpointError, match="this folder is no checkpoint"):
        find_format(Folder("x", str(tmp_path)))
    (tmp_path / "__0_0.distcp").touch()
    assert find_format(Folder("x", str(tmp_path), "__0_0.distcp")).name == "dcp"
    (tmp_path / ".metadata").touch()
    assert find_format(Folder("x", str(tmp_path))).name == "dcp"

from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.notes import NoteKind
from inspector.containers.source import FileSource
from inspector.containers.zip.directory import (
    NO_VERSION,
    UNDECODABLE,
    MinizError,
    miniz_words,
    no_folder_words,
)
from inspector.containers.zip.records import is_listed, listed_name, records_of
from inspector.containers.zip.storages import Metadata, read_metadata
from inspector.limits import Limits
from tests.builders.zips import Record, build_zip
from tests.sweep import table

Read = Callable[..., Metadata]
VERSION = Record(name="a/version", data=b"3\n")
PICKLE = Record(name="a/data.pkl", data=b"N.")


@pytest.fixture
def read(write: Callable[..., str]) -> Read:
    """Read the facts of an archive."""

    def read(*records: Record) -> Metadata:
        with FileSource(write(build_zip(*records))) as source:
            found = records_of(source, Limits())
            names = [entry.name for entry in found.directory.entries]
            return read_metadata(source, found.get, found.prefix, names)

    return read


def test_facts_in_any_case(read: Read) -> None:
    found = read(PICKLE, VERSION, Record(name="a/BYTEORDER", data=b"middle\n"))
    assert found == Metadata((("version", "3"), ("byteorder", "middle\n")), "", ())


@table(
    ("records", "refusal"),
    [
        ([PICKLE, VERSION], ""),
        ([PICKLE], NO_VERSION),
        ([PICKLE, Record(name="a/.data/version", data=b"3")], ""),
        ([Record(name="data.pkl"), VERSION], no_folder_words("data.pkl")),
        ([PICKLE, VERSION, Record(name="A/x")], no_folder_words("A/x", "a/")),
        ([PICKLE, VERSION, Record(name=b"\xff/x")], no_folder_words("\udcff/x", "a/")),
        ([PICKLE, VERSION, Record(name=b"a/\xff")], UNDECODABLE),
        ([PICKLE, VERSION, Record(name=b"a/" + b"x" * 508 + "\u00e9".encode())], UNDECODABLE),
        ([PICKLE, VERSION, Record(name=b"a/" + b"x" * 507 + "\u00e9".encode())], ""),
        ([PICKLE, VERSION, Record(name=b"a/x\0\xff")], ""),
        ([Record(name=b"\xff/data.pkl"), Record(name=b"\xff/version", data=b"3")], ""),
        ([PICKLE, VERSION, Record(name="a/.storage_alignment", data=b" 6_4")], ""),
        ([PICKLE, VERSION, Record(name="a/.data/serialization_id", data=b"\xff")], UNDECODABLE),
        (
            [PICKLE, Record(name="a/version", data=b"3", flags=1)],
            miniz_words("retrieving file meta-data for version", MinizError.ENCRYPTED),
        ),
        (
            [PICKLE, VERSION, Record(name="a/byteorder", data=b"3", local_signature=b"PKxx")],
            miniz_words("reading file byteorder", MinizError.CORRUPTED),
        ),
        (
            [PICKLE, VERSION, Record(name="a/.data/serialization_id", data=b"3", method=99)],
            miniz_words("retrieving file meta-data for .data/serialization_id", MinizError.METHOD),
        ),
    ],
)
def test_what_torch_refuses(read: Read, records: list[Record], refusal: str) -> None:
    assert read(*records).refusal == refusal


def test_alignment_that_is_no_number(read: Read) -> None:
    refusal = read(PICKLE, VERSION, Record(name="a/.storage_alignment", data=b"x")).refusal
    assert refusal == "ValueError: invalid literal for int() with base 10: b'x'"


def test_folder_longer_than_torch_keeps_of_a_name(read: Read) -> None:
    folder = "f" * 511 + "/"
    found = read(Record(name=f"{folder}data.pkl"), Record(name=f"{folder}version", data=b"3"))
    assert found.refusal == no_folder_words(f"{folder}data.pkl", folder)
    short = folder[1:]
    assert read(Record(name=f"{short}data.pkl"), Record(name=f"{short}version", data=b"3")).refusal == ""


def test_facts_that_nobody_can_be_sure_of(read: Read) -> None:
    large = Record(name="a/.data/version", data=b"3" + bytes(70_000))
    assert read(PICKLE, VERSION, large).doubts == (NoteKind.LARGE_RECORD,)
    assert read(PICKLE, large).refusal == ""
    folder = Record(name="a/byteorder", data=b"little", attributes=0x10)
    assert read(PICKLE, VERSION, folder).doubts == (NoteKind.UNWRITTEN_RECORD,)


def test_names_as_torch_lists_them() -> None:
    assert listed_name("a/x\0y") == b"a/x"
    assert listed_name("x" * 600) == b"x" * 511
    long = "f" * 497 + "/"
    assert is_listed("constants.pkl", long, [f"{long}constants.pkl.bak"])
    assert not is_listed("constants.pkl", "f/", ["f/constants.pkl.bak", "f/CONSTANTS.PKL"])
    assert is_listed("constants.pkl", "f/", ["f/x", "f/constants.pkl\0x"])

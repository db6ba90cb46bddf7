"""Zips without a directory: what is whole is found, what is not is said."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import AMBIGUOUS, Note, NoteKind, sentences
from inspector.containers.opening import read_container
from inspector.containers.programs import count_globals
from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    DamagedError,
    NotACheckpointError,
)
from inspector.progress import Progress
from tests.builders import zips
from tests.builders.archives import archive, directory_of
from tests.builders.pickles import NONE, call, state_dict, storage, stream, tensor
from tests.builders.zips import Record, build_zip
from tests.corpus import cases
from tests.sweep import table

TakeApart = Callable[..., Container]
Write = Callable[..., str]
SIZES = {"0": 40, "1": 3000, "2": 0, "3": 4, "4": 777}
STORAGES = {key: random.Random(key).randbytes(4 * numel) for key, numel in SIZES.items()}
PICKLE = state_dict(**{f"t{key}": tensor(storage(key, numel=numel), numel) for key, numel in SIZES.items()})
WHOLE = archive(PICKLE, STORAGES)
END = directory_of(WHOLE)


def places(data: bytes) -> dict[str, tuple[int, int]]:
    return {key: (data.index(part), len(part)) for key, part in STORAGES.items() if part}


@pytest.mark.wide
@pytest.mark.parametrize("checksums", [True, False])
def test_file_cut_off_anywhere(write: Write, checksums: bool) -> None:
    """At every length: no error once the pickle is there, and exactly those storages that are whole."""
    data = archive(PICKLE, STORAGES, checksums=checksums)
    pickle_end = data.index(PICKLE) + len(PICKLE)
    known = places(data)
    ends = sorted({offset + nbytes + more for offset, nbytes in known.values() for more in (-1, 0, 1, 9, 16)})
    for nbytes in (*range(0, pickle_end + 40, 7), pickle_end - 1, pickle_end, *ends, END - 1, END, END + 9):
        try:
            found = read_container(write(data[:nbytes]))
        except CheckpointError:
            assert nbytes < pickle_end, nbytes
            continue
        assert nbytes >= pickle_end
        whole = {key: place for key, place in known.items() if sum(place) <= nbytes}
        assert {key: place[1:] for key, place in found.stored.items() if place.nbytes} == whole, nbytes
        assert list(found.storage_ids) == list(SIZES)
        assert found.notes[0].sentence.startswith("The zip has no directory")
        assert found.pickle().data[: found.pickle().end] == PICKLE


def test_what_is_lost_and_what_is_left_is_counted(take_apart: TakeApart) -> None:
    offset, nbytes = places(WHOLE)["1"]
    first, second = sentences(take_apart(WHOLE[: offset + nbytes - 1]).notes)
    assert first == (
        "The zip has no directory, which a complete file ends with: this one is cut off, or lost bytes. "
        "6 records found by searching."
    )
    assert second == "The bytes of 3 storages of 5 are not in the file: 15.1 KB are lost, 160 B are left."
    (only,) = sentences(take_apart(WHOLE[:END]).notes)
    assert "11 records found" in only


def test_versions_that_are_left_are_read(take_apart: TakeApart) -> None:
    assert dict(take_apart(WHOLE[:END]).versions) == dict(take_apart(WHOLE).versions)
    assert dict(take_apart(WHOLE[: END - 300]).versions).get("byteorder") == "little"


def test_directory_that_is_damaged_or_points_elsewhere(take_apart: TakeApart) -> None:
    expected = take_apart(WHOLE).stored
    damaged = WHOLE[:END] + b"XX" + WHOLE[END + 2 :]
    grown = WHOLE[:END] + bytes(64) + WHOLE[END:]  # as if something had been put in
    for data in (damaged, grown):
        found = take_apart(data)
        assert found.notes[0].sentence.startswith(
            "The zip's directory is damaged: the file was changed or cut off"
        )
        assert found.stored == expected


def test_directory_of_an_archive_within_a_tensor_is_not_the_files_own(take_apart: TakeApart) -> None:
    """A cut file that ends in the bytes of another zip: its end record is there, its data.pkl is not."""
    inner = zips.checkpoint(stream(NONE))
    inner += bytes(-len(inner) % 4)
    numel = len(inner) // 4 + 100
    pickle = state_dict(a=tensor(storage("0", numel=2), 2), b=tensor(storage("1", numel=numel), numel))
    data = archive(pickle, {"0": b"8" * 8, "1": inner + bytes(400)})
    found = take_apart(data[: data.index(inner) + len(inner) + 10])
    assert list(found.stored) == ["0"]
    assert len(found.storage_ids) == 2


def test_pickle_that_is_cut_off_is_said(write: Write) -> None:
    place = WHOLE.index(PICKLE) + 50
    with pytest.raises(DamagedError) as caught:
        read_container(write(WHOLE[:place]))
    error = caught.value
    assert error.what == (
        "the file is cut off or damaged within data.pkl, which says what is in it: "
        "the pickle breaks off before its end"
    )
    assert (error.where or "").startswith("data.pkl at byte 64, byte")
    assert error.finding == "truncated"
    assert "fetch or copy it again" in (error.remedy or "")


def test_wrong_checksum_of_the_pickle_is_noted(take_apart: TakeApart) -> None:
    place = WHOLE.index(b"tensor_v2")
    assert place < WHOLE.index(PICKLE) + len(PICKLE)
    changed = WHOLE[: place - 2] + b"X" + WHOLE[place - 1 : END]
    assert Note(NoteKind.WRONG_CHECKSUM) in take_apart(changed).notes


@table(
    ("data", "what", "kind"),
    [
        (b"PK\3\4" + bytes(10), "data.pkl, which says what is in it, is not among", DamagedError),
        (archive(PICKLE, {}, first={"version": b"3"})[:90], "is not among what is left", DamagedError),
        (
            zips.build_zip(zips.Record(name="word/document.xml", data=b"x" * 99))[:80],
            "this is a Word document, cut off",
            NotACheckpointError,
        ),
        (
            archive(PICKLE, {}, first={"code/__torch__.py": b"pass"})[:300],
            "an archive of TorchScript, torch.export or torch.package that is cut off",
            DamagedError,
        ),
        (
            archive(PICKLE, {}, first={".data/0.storage": b"1234"})[:100],
            "an archive of TorchScript, torch.export or torch.package that is cut off",
            DamagedError,
        ),
    ],
)
def test_where_nothing_can_be_shown(write: Write, data: bytes, what: str, kind: type) -> None:
    with pytest.raises(ContainerError) as caught:
        read_container(write(data))
    assert type(caught.value) is kind
    assert what in caught.value.what
    assert caught.value.remedy


def test_names_in_errors_are_escaped(write: Write) -> None:
    record = zips.Record(name="a\x1b[31m" + "b" * 300, data=b"x" * 40)
    with pytest.raises(DamagedError) as caught:
        read_container(write(zips.build_zip(record)[:360]))
    assert "a\\u001b[31mbbb" in (caught.value.where or "")
    assert len(caught.value.where or "") < 160


@table("asked", range(1, 30, 3))
def test_cancellation_at_any_moment(write: Write, asked: int) -> None:
    class Impatient(Progress):
        left = asked

        def advance(self, units: int = 0) -> None:
            self.left -= 1
            if self.left == 0:
                self.cancel()
            super().advance(units)

    progress = Impatient()
    try:
        read_container(write(WHOLE[:END]), progress=progress)
    except CancelledError:
        assert progress.left == 0
    else:
        assert progress.left > 0


@pytest.mark.wide
def test_genuine_archives_lose_nothing_with_their_directory(write: Write) -> None:
    """Of torch 1.4 to 2.13, in all alignments, with and without checksums, packed again by others."""
    compared = 0
    for case in cases(container="zip"):
        data = case.path.read_bytes()
        whole = read_container(str(case.path))
        found = read_container(write(data[: data.rindex(b"PK\x01\x02")][: directory_of_last(data)]))
        assert {key: place.nbytes for key, place in found.stored.items()} == {
            key: place.nbytes for key, place in whole.stored.items()
        }, case.name
        assert found.stored == whole.stored, case.name
        assert found.stream.data[: found.stream.end] == whole.stream.data[: whole.stream.end], case.name
        compared += 1
    assert compared > 50


def directory_of_last(data: bytes) -> int:
    """Where the directory starts, as its end record tells."""
    at = data.rindex(b"PK\5\6")
    return int.from_bytes(data[at + 16 : at + 20], "little")


@table("title", ["archive/DATA.PKL", "archive/data.pkl"])
@table("is_first", [False, True])
def test_other_pickles_that_were_found_count_in_the_verdict(
    take_apart: TakeApart, title: str, is_first: bool
) -> None:
    records = [
        Record(name="archive/data.pkl", data=stream(NONE)),
        Record(name=title, data=stream(call("os.system"))),
        Record(name="archive/version", data=b"3"),
    ]
    if is_first:
        records[:2] = records[1::-1]
    data = build_zip(*records)
    found = take_apart(data[: data.index(b"PK\1\2")])
    assert list(count_globals(found.programs)) == ["os.system"]
    assert found.stream.oddities[-1].kind == "rival-record"
    assert [note.kind for note in found.notes] == [NoteKind.NO_DIRECTORY]


def test_directory_that_leads_past_the_pickle_is_said_in_torch_s_words(write: Write) -> None:
    data = build_zip(
        Record(name="a/data.pkl", data=PICKLE, offset=7),
        *(Record(name=f"a/data/{key}", data=part) for key, part in STORAGES.items()),
        Record(name="a/version", data=b"3\n"),
    )
    found = read_container(write(data))
    assert "reading file data.pkl" in found.refusal
    assert "invalid header or archive is corrupted" in found.refusal
    assert {note.kind for note in found.notes} & AMBIGUOUS

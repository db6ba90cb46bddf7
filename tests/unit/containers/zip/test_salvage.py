"""Zips without a directory: what is whole is found, what is not is said."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import AMBIGUOUS, Note, NoteKind, sentences
from inspector.containers.opening import read_container
from inspector.containers.programs import count_globals
from inspector.containers.source import FileSource
from inspector.containers.zip import salvage as zip_walk
from inspector.containers.zip.salvage import ZipWalk
from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    DamagedError,
    NotACheckpointError,
)
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders import zips
from tests.builders.archives import archive, directory_of
from tests.builders.pickles import NONE, call, state_dict, storage, stream, tensor
from tests.builders.zips import Record, build_zip
from tests.corpus import cases
from tests.sweep import table
from tests.work import growth

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


Walk = Callable[..., ZipWalk]
FOUR = {"0": 40, "1": 3000, "2": 500, "3": 4}
FOUR_STORAGES = {key: random.Random(key).randbytes(4 * numel) for key, numel in FOUR.items()}
FOUR_PICKLE = state_dict(
    **{f"t{key}": tensor(storage(key, numel=numel), numel) for key, numel in FOUR.items()}
)
FOUR_WHOLE = archive(FOUR_PICKLE, FOUR_STORAGES)
RECORDS = FOUR_WHOLE[: directory_of(FOUR_WHOLE)]
DESCRIBED = 0x0808


@pytest.fixture
def walk(write: Write) -> Walk:
    """Walk over these bytes within these limits."""

    def walk(data: bytes, **limits: float) -> ZipWalk:
        with FileSource(write(data)) as source:
            walk = ZipWalk(source, Limits(**limits), Progress())
            walk.run()
        return walk

    return walk


def short_names(walk: ZipWalk) -> list[str]:
    return [entry.name.removeprefix("archive/") for entry in walk.entries]


def hole(data: bytes, start: int, end: int) -> bytes:
    return data[:start] + bytes(end - start) + data[end:]


def test_records_have_the_sizes_and_checksums_of_the_directory(walk: Walk, write: Write) -> None:
    from inspector.containers.zip.directory import read_directory

    with FileSource(write(FOUR_WHOLE)) as source:
        directory = read_directory(source, Limits())
    found = walk(RECORDS)
    assert [entry[:6] for entry in found.entries] == [entry[:6] for entry in directory.entries]
    assert found.stream is not None
    assert found.stream.end == len(FOUR_PICKLE)


@pytest.mark.parametrize(
    ("start", "end", "lost"),
    [
        # (where the hole begins and ends: storage, its header (-1), bytes (0) or end (1), bytes from there)
        (("1", 0, 100), ("1", 0, 200), []),  # amid the bytes: only a checksum can tell
        (("1", 1, -8), ("1", 1, 16), ["data/1"]),  # over the descriptor
        (("1", -1, 0), ("1", 0, 10), ["data/1"]),  # over the header
        (("0", 1, -8), ("2", 0, 40), ["data/0", "data/1", "data/2"]),
        (("3", -1, 0), ("3", 1, 700), ["data/3", "version", ".data/serialization_id"]),
    ],
)
def test_hole_loses_what_it_touches(
    walk: Walk, start: tuple[str, int, int], end: tuple[str, int, int], lost: list[str]
) -> None:
    def place(at: tuple[str, int, int]) -> int:
        key, side, more = at
        start = RECORDS.index(FOUR_STORAGES[key])
        if side < 0:
            return RECORDS.rindex(b"PK\3\4", 0, start) + more
        return start + side * len(FOUR_STORAGES[key]) + more

    data = hole(RECORDS, place(start), min(place(end), len(RECORDS)))
    assert short_names(walk(data)) == [name for name in short_names(walk(RECORDS)) if name not in lost]


def test_descriptor_of_the_pickle_may_be_lost(walk: Walk) -> None:
    place = RECORDS.index(FOUR_PICKLE) + len(FOUR_PICKLE)
    found = walk(hole(RECORDS, place, place + 16))
    assert found.entries[0][2:6] == (len(FOUR_PICKLE), len(FOUR_PICKLE), 0, 0)
    assert short_names(found) == short_names(walk(RECORDS))


def test_zeros_behind_a_pickle_are_its_own(walk: Walk) -> None:
    """A shorter pickle was written over a longer one, as a fixed copy does."""
    found = walk(archive(FOUR_PICKLE + bytes(300), FOUR_STORAGES))
    assert found.entries[0].nbytes == len(FOUR_PICKLE) + 300
    assert found.stream is not None
    assert found.stream.end == len(FOUR_PICKLE)
    assert len(found.entries) == len(FOUR_STORAGES) + 6


def test_pickle_at_the_end_of_the_file(walk: Walk) -> None:
    place = RECORDS.index(FOUR_PICKLE) + len(FOUR_PICKLE)
    assert short_names(walk(RECORDS[:place])) == ["data.pkl"]


def test_records_of_unknown_length_are_searched_to_their_end(walk: Walk) -> None:
    strange = {"notes.txt": b"PK\x07\x08 and PK\x03\x04 " * 9, "byteorder2": b"little"}
    found = walk(archive(FOUR_PICKLE, FOUR_STORAGES, first=strange))
    assert short_names(found)[:3] == ["notes.txt", "byteorder2", "data.pkl"]
    assert found.entries[0].nbytes == len(strange["notes.txt"])
    assert short_names(walk(archive(FOUR_PICKLE, {}, first=strange)[:150])) == []


def test_record_that_is_longer_than_the_pickle_says_keeps_its_own_length(walk: Walk) -> None:
    found = walk(archive(FOUR_PICKLE, FOUR_STORAGES | {"1": bytes(20_000)}))
    assert {entry.name: entry.nbytes for entry in found.entries}["archive/data/1"] == 20_000
    assert len(found.entries) == len(FOUR_STORAGES) + 6


def test_sizes_in_the_header_are_taken_where_no_descriptor_follows(walk: Walk) -> None:
    """As other programs write zips, packed or not."""
    for method in (zips.STORED, zips.DEFLATED):
        records = [
            zips.Record(name="a/data.pkl", data=FOUR_PICKLE, method=method),
            *(
                zips.Record(name=f"a/data/{key}", data=data, method=method)
                for key, data in FOUR_STORAGES.items()
            ),
        ]
        data = zips.build_zip(*records)
        found = walk(data[: directory_of(data)])
        assert [entry.nbytes for entry in found.entries] == [
            len(FOUR_PICKLE),
            *map(len, FOUR_STORAGES.values()),
        ]
        assert found.stream is not None
        assert len(found.storage_ids) == 4


def test_packed_record_with_a_descriptor_tells_both_sizes(walk: Walk) -> None:
    packed = zips.Record(name="a/data/1", data=FOUR_STORAGES["1"][:1000] * 12, method=zips.DEFLATED)
    data = zips.build_zip(zips.Record(name="a/data.pkl", data=FOUR_PICKLE), packed)
    place = data.index(b"PK\3\4", 4)
    header = bytearray(data[place : place + 30])
    crc, stored, nbytes = struct.unpack_from("<3L", header, 14)
    struct.pack_into("<H6xLLL", header, 6, DESCRIBED, 0, 0, 0)
    struct.pack_into("<H", header, 8, 8)
    body = data[:place] + bytes(header) + data[place + 30 : place + 38 + stored]
    found = walk(body + struct.pack("<4s3L", b"PK\7\x08", crc, stored, nbytes))
    assert found.entries[1][2:7] == (12_000, stored, 8, crc, DESCRIBED)


def test_packed_pickle_of_unknown_length_cannot_be_read(walk: Walk) -> None:
    data = bytearray(RECORDS)
    struct.pack_into("<H", data, 8, 8)
    found = walk(bytes(data))
    assert found.stream is None
    assert found.pickle_error is not None
    assert found.pickle_error.what == "it is compressed, and its length is not known"


def test_damaged_pickle_in_a_record_of_known_length(walk: Walk) -> None:
    data = zips.build_zip(zips.Record(name="a/data.pkl", data=FOUR_PICKLE, stored_nbytes=10**9))
    found = walk(data[: directory_of(data)])
    assert found.pickle_error is not None
    assert "larger than" in found.pickle_error.what


def test_large_records_have_wide_descriptors(walk: Walk) -> None:
    """torch writes sizes of eight bytes behind records that lie beyond 4 GiB."""
    place = RECORDS.index(FOUR_STORAGES["1"]) + len(FOUR_STORAGES["1"])
    signature, crc, stored, nbytes = struct.unpack_from("<4s3L", RECORDS, place)
    wide = struct.pack("<4sL2Q", signature, crc, stored, nbytes)
    found = walk(RECORDS[:place] + wide + RECORDS[place + 16 :])
    assert short_names(found) == short_names(walk(RECORDS))
    assert (found.entries[5].nbytes, found.entries[5].stored_nbytes) == (nbytes, stored)
    assert found.entries[5].crc == crc
    for more in range(16, 24):  # the file ends within it
        names = short_names(walk((RECORDS[:place] + wide)[: place + more]))
        assert len(names) == short_names(walk(RECORDS)).index("data/1")


def test_signature_on_the_border_of_two_blocks(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    data = hole(RECORDS, RECORDS.index(FOUR_STORAGES["0"]) - 30, RECORDS.index(FOUR_STORAGES["0"]) + 400)
    expected = short_names(walk(data))
    for nbytes in range(64, 72):
        monkeypatch.setattr(zip_walk, "_SEARCH_NBYTES", nbytes)
        assert short_names(walk(data)) == expected


def test_names_in_other_folders_are_no_headers(walk: Walk) -> None:
    """The bytes of a tensor may be a zip."""
    inner = archive(FOUR_PICKLE, FOUR_STORAGES, folder="inner/")
    inner += bytes(-len(inner) % 4)
    pickle = state_dict(a=tensor(storage("0", numel=len(inner) // 4), len(inner) // 4))
    data = archive(pickle, {"0": inner})
    data = hole(data, data.index(inner) - 60, data.index(inner))
    assert "data.pkl" in short_names(walk(data[: directory_of(data)]))
    assert not [name for name in walk(data).names if name.startswith("inner/")]


@pytest.mark.parametrize("limits", [{"records": 5}, {"directory_nbytes": 60}])
def test_headers_are_bounded(walk: Walk, limits: dict[str, int]) -> None:
    with pytest.raises(ContainerError, match="or names without end"):
        walk(RECORDS, **limits)


@pytest.mark.parametrize("signature", [b"PK\3\4", b"PK\7\x08", b"PK\3\4PK\7\x08"])
def test_host_of_signatures_is_searched_in_proportion(walk: Walk, signature: bytes) -> None:
    def prepare(signatures: int) -> Callable[[], object]:
        data = RECORDS[:-900] + signature * signatures
        return lambda: walk(data).stream is not None or pytest.fail("the pickle is not found")

    assert growth(prepare, 1_000, 4_000) < 1.2


def test_search_gives_up_after_its_time_and_keeps_what_it_has(walk: Walk) -> None:
    place = RECORDS.index(FOUR_STORAGES["1"]) - 40
    data = RECORDS[:place] + bytes(9 << 20) + RECORDS[place:]
    late, patient = walk(data, seconds=-1), walk(data)
    assert late.stream is None or late.gave_up
    assert not patient.gave_up
    assert "data/1" not in short_names(late)
    assert {"data/2", "data/3"} <= set(short_names(patient))


def test_headers_cut_off_at_the_end(walk: Walk) -> None:
    place = RECORDS.index(b"PK\3\4", 100)
    for more in (3, 29, 35):
        assert short_names(walk(RECORDS[: place + more])) == ["data.pkl"]


@pytest.mark.parametrize(
    ("wide", "nbytes"), [(struct.pack("<2H2Q", 1, 16, 7, 7), 7), (b"FB\0\0", 0xFFFFFFFF)]
)
def test_local_header_whose_sizes_stand_in_its_extra_field(walk: Walk, wide: bytes, nbytes: int) -> None:
    full = zips.Record(name="archive/x", nbytes=0xFFFFFFFF, stored_nbytes=0xFFFFFFFF, extra=b"FB\1\0Z" + wide)
    found = walk(zips.build_zip(full))
    assert [(entry.nbytes, entry.stored_nbytes) for entry in found.entries] == [(nbytes, nbytes)]


@pytest.mark.parametrize("behind", [b"PK\3\4" * 3_000, b"\1" * 3_000], ids=["signatures", "nothing"])
def test_search_ends_when_its_time_is_over(
    walk: Walk, behind: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_late(found: ZipWalk) -> bool:
        found.gave_up |= sys._getframe(1).f_code.co_name == "_search"
        return found.gave_up

    monkeypatch.setattr(ZipWalk, "_is_late", is_late)
    place = RECORDS.index(FOUR_STORAGES["1"]) - 40
    found = walk(RECORDS[:place] + behind)
    assert found.gave_up
    assert "data/1" not in short_names(found)

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable
from typing import Any

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.legacy import Legacy, makes_magic, read_layout
from inspector.containers.notes import NoteKind, sentences
from inspector.containers.opening import read_container
from inspector.containers.packed import PackedSource
from inspector.containers.source import FileSource
from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    DamagedError,
    PickleError,
    TooLargeError,
)
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders.legacy import INFO, MAGIC, checkpoint
from tests.builders.pickles import (
    MARK,
    STOP,
    call,
    legacy_storage,
    list_,
    op,
    proto,
    state_dict,
    stream,
    tensor,
    text,
)
from tests.sweep import table

TakeApart = Callable[..., Container]
Write = Callable[..., str]
TWO = state_dict(
    a=tensor(legacy_storage("11", numel=2), 2),
    b=tensor(legacy_storage("22", "torch.DoubleStorage", "cuda:0", 3), 3),
)
EIGHT, LONG = b"88888888", b"l" * 24
STORAGES = ("11", 2, EIGHT), ("22", 3, LONG)


@table("protocol", range(6))
def test_every_protocol(take_apart: TakeApart, protocol: int) -> None:
    data = checkpoint(TWO, *STORAGES, protocol=protocol)
    found = take_apart(data)
    assert found.format == "legacy"
    assert found.pickle().data[: found.pickle().end] == TWO
    assert found.stored == {"11": (0, data.index(EIGHT), 8), "22": (0, data.index(LONG), 24)}
    assert [one.location for one in found.storage_ids.values()] == ["cpu", "cuda:0"]
    assert found.versions == (("protocol_version", "1001"), ("little_endian", "True"))
    assert found.notes == ()


@pytest.mark.wide
def test_file_cut_off_anywhere(write: Write) -> None:
    data = checkpoint(TWO, *STORAGES)
    whole = read_container(write(data))
    described = data.index(TWO) + len(TWO)
    starts = {key: place.offset for key, place in whole.stored.items()}
    for nbytes in range(len(data)):
        try:
            found = read_container(write(data[:nbytes]))
        except CheckpointError:
            assert nbytes < described
        else:
            assert nbytes >= described
            ends = {key: starts[key] + place.nbytes for key, place in whole.stored.items()}
            assert found.stored == {key: whole.stored[key] for key in ends if ends[key] <= nbytes}
            assert found.storage_ids == whole.storage_ids


def test_file_cut_off_within_its_description(write: Write) -> None:
    place = checkpoint(TWO).index(TWO)
    for nbytes in (place, place + 1, place + len(TWO) - 1):
        with pytest.raises(DamagedError, match="cut off inside the description") as caught:
            read_container(write(checkpoint(TWO, *STORAGES)[:nbytes]))
        assert caught.value.finding == "truncated"


def test_more_bytes_behind_are_noted(take_apart: TakeApart) -> None:
    data = checkpoint(TWO, *STORAGES)
    (note,) = take_apart(data * 2).notes
    assert (
        note.sentence
        == f"{len(data):,} more bytes follow the checkpoint; torch.load reads the first one only."
    )


def test_large_pickle_is_fetched_in_pieces(take_apart: TakeApart) -> None:
    big = stream(list_(*[text("x" * 1000)] * 500))
    found = take_apart(checkpoint(big))
    assert found.pickle().end == len(big)
    with pytest.raises(PickleError, match="the pickle is longer than 300,000 bytes: object at byte"):
        take_apart(checkpoint(big), pickle_nbytes=300_000)


def test_storages_far_apart_and_close_together(take_apart: TakeApart) -> None:
    tensors, storages = {}, []
    for number in range(120):
        numel = (number * 97) % 3000 if number % 3 else 2
        tensors[f"t{number}"] = tensor(legacy_storage(str(number), numel=numel), numel)
        storages.append((str(number), numel, bytes([number]) * (4 * numel)))
    data = checkpoint(state_dict(**tensors), *storages)
    found = take_apart(data)
    assert len(found.stored) == 120
    for key, (_, offset, nbytes) in found.stored.items():
        assert data[offset : offset + nbytes] == bytes([int(key)]) * nbytes


# ------------------------------------------------------------------------------------------- views


def test_views_stand_within_the_storage_they_view(take_apart: TakeApart) -> None:
    pickle_ = state_dict(
        a=tensor(legacy_storage("root", numel=4, view=("view", 1, 2)), 2),
        b=tensor(legacy_storage("root", numel=4, view=("end", 4, 0)), 0),
        c=tensor(legacy_storage("root", numel=4, view=("past", 3, 2)), 2),
        d=tensor(legacy_storage("lost", numel=4, view=("orphan", 0, 2)), 2),
    )
    data = checkpoint(pickle_, ("root", 4, b"aaaabbbbccccdddd"))
    found = take_apart(data)
    start = data.index(b"aaaabbbb")
    assert found.stored == {"root": (0, start, 16), "view": (0, start + 4, 8), "end": (0, start + 16, 0)}


# ------------------------------------------------------------------------------------------- malformed


@table(
    ("changes", "message"),
    [
        ({"magic": 1}, "the magic number of a legacy checkpoint is wrong: byte 0"),
        ({"magic": "x"}, "the magic number"),
        ({"version": 1002}, "the protocol version of a legacy checkpoint is wrong: byte 15"),
        ({"version": True}, "the protocol version"),
        ({"version": [1001]}, "the protocol version"),
        ({"keys": None}, ""),
        ({"keys": ("11", "22")}, ""),
        ({"keys": {"11": 1, "22": 2}}, ""),
        ({"version": 1001.0}, ""),
        ({"keys": 5}, "the list of storage keys is malformed: byte"),
        ({"keys": ["11", 22]}, "the list of storage keys is malformed: byte"),
    ],
)
def test_pickles_that_are_not_those_of_a_checkpoint(
    write: Write, changes: dict[str, Any], message: str
) -> None:
    with FileSource(write(checkpoint(TWO, *STORAGES, **changes))) as source:
        if not message:
            assert read_layout(source, Limits(), Progress()).keys == ("11", "22")
            return
        with pytest.raises(ContainerError, match=message):
            read_layout(source, Limits(), Progress())


def test_keys_may_be_a_set_for_what_torch_minds(take_apart: TakeApart) -> None:
    empty = state_dict(a=tensor(legacy_storage("1", numel=0), 0))
    data = checkpoint(empty, ("1", 0, b""))
    listed = pickle.dumps(["1"], 2)
    keys = proto() + op("EMPTY_SET") + MARK + text("1") + op("ADDITEMS") + STOP
    assert take_apart(data.replace(listed, keys)).stored["1"].nbytes == 0


@table(
    ("changes", "cut", "kinds"),
    [
        ({}, 0, []),
        ({"keys": ["1", "2"]}, 0, [NoteKind.ODD_KEYS]),
        ({}, 10, [NoteKind.NO_KEYS, NoteKind.TRAILING_BYTES]),
    ],
)
def test_lists_of_keys_that_torch_stops_at(
    changes: dict[str, Any], cut: int, kinds: list[NoteKind], take_apart: TakeApart
) -> None:
    data = checkpoint(state_dict(a=tensor(legacy_storage("1", numel=0), 0)), ("1", 0, b""), **changes)
    assert [note.kind for note in take_apart(data[: len(data) - cut]).notes] == kinds


def test_number_of_keys_is_bounded(take_apart: TakeApart) -> None:
    """A list that names one empty storage a million times would be walked a million times."""
    empty = state_dict(a=tensor(legacy_storage("1", numel=0), 0))
    data = checkpoint(empty, *[("1", 0, b"")] * 5)
    assert take_apart(data, records=5).stored["1"].nbytes == 0
    with pytest.raises(ContainerError, match="the list of storage keys is malformed"):
        take_apart(data, records=4)


@table(
    "storages",
    [
        [("11", -1, b""), ("22", 3, LONG)],
        [("11", 2**40, b""), ("22", 3, LONG)],
        [("11", 2**62, b""), ("22", 3, LONG)],
        [("unknown", 2, EIGHT), ("22", 3, LONG)],
    ],
)
def test_storages_behind_a_broken_one_have_no_place(take_apart: TakeApart, storages: list[Any]) -> None:
    assert take_apart(checkpoint(TWO, *storages)).stored == {}


@table("count", [0, 1, 7, -1, 2**60])
def test_count_that_the_pickle_contradicts_loses_only_its_own_storage(
    take_apart: TakeApart, count: int
) -> None:
    """The bytes behind it may be right, but nobody can tell: a hole does not end where the count does."""
    data = checkpoint(TWO, ("11", count, EIGHT), ("22", 3, LONG))
    found = take_apart(data)
    assert found.stored == {"22": (0, data.index(LONG), 24)}
    assert sentences(found.notes) == [
        "The bytes of 1 storage of 2 are not in the file: 8 B are lost, 24 B are left."
    ]


def test_zeros_in_place_of_the_end(take_apart: TakeApart) -> None:
    """A download that made room first and ended early; zeros must not pass for an empty storage."""
    data = checkpoint(TWO, *STORAGES)
    found = take_apart(data[: data.index(EIGHT) + 8] + bytes(8 + 24))
    assert list(found.stored) == ["11"]
    (note,) = found.notes
    assert "24 B are lost" in note.sentence


def test_count_that_disagrees_while_nothing_else_speaks_for_the_pickle_is_believed(
    take_apart: TakeApart,
) -> None:
    data = checkpoint(TWO, ("11", 2, EIGHT), ("22", 2, LONG[:16]))
    assert take_apart(data).stored["22"].nbytes == 16


def test_broken_list_of_keys_is_no_end_of_the_file(write: Write) -> None:
    data = checkpoint(TWO, *STORAGES)
    place = data.index(TWO) + len(TWO)
    broken = data[:place] + b"\xff" + data[place + 1 :]
    with FileSource(write(broken)) as source, pytest.raises(PickleError, match="storage keys at byte"):
        read_layout(source, Limits(), Progress())
    with FileSource(write(data[: place + 3])) as source:
        assert read_layout(source, Limits(), Progress()).keys == ()


def test_no_storages(take_apart: TakeApart) -> None:
    found = take_apart(checkpoint(TWO, keys=[]))
    assert found.stored == {}
    assert len(found.storage_ids) == 2


@table(
    ("info", "versions"),
    [
        (INFO, (("protocol_version", "1001"), ("little_endian", "True"))),
        ({}, (("protocol_version", "1001"),)),
        (None, (("protocol_version", "1001"),)),
        ({"a": 10**5000, "b": "text", 3: 3, "c": 2**64 - 1}, (("c", "18446744073709551615"),)),
        ({f"k{n}": n for n in range(50)}, tuple((f"k{n}", str(n)) for n in range(16))),
    ],
)
def test_versions(take_apart: TakeApart, info: Any, versions: tuple[tuple[str, str], ...]) -> None:
    assert take_apart(checkpoint(TWO, *STORAGES, info=info)).versions == versions


def test_header_made_up_while_loading_is_odd(take_apart: TakeApart) -> None:
    made = stream(proto(), call("builtins.eval", text("0x1950A86A20F9469CFC6C")))
    for lies in ({"magic": made}, {"magic": b"ctorch.serialization\nMAGIC_NUMBER\n."}, {"version": made}):
        found = take_apart(checkpoint(TWO, *STORAGES, **lies))
        assert [note.kind for note in found.stream.oddities] == ["computed-header"]
        assert len(found.programs) == 5


@table("protocol", [0, 1, 2, 3, 4, 5])
def test_magic_number_may_be_written_in_any_way(take_apart: TakeApart, protocol: int) -> None:
    long = b"\x80\x02\x8b\x0a\0\0\0" + MAGIC.to_bytes(10, "little") + b"."
    for magic in (pickle.dumps(MAGIC, protocol), long, b"N0" + pickle.dumps(MAGIC, protocol)):
        assert take_apart(checkpoint(TWO, *STORAGES, magic=magic)).stream.oddities == ()
    assert take_apart(checkpoint(TWO, *STORAGES, version=b"G@\x8fH\0\0\0\0\0.")).format == "legacy"


def test_other_numbers_are_no_magic(write: Write) -> None:
    for data in (
        checkpoint(TWO, magic=MAGIC + 1),
        checkpoint(TWO, magic=str(MAGIC)),
        checkpoint(TWO, magic=stream(proto(), call("a.B")), version=7),
        stream(proto(), call("a.B")),
        stream(proto(), call("a.B")) + b"\xff",
    ):
        with FileSource(write(data)) as source:
            assert not makes_magic(source)


def test_cancellation(write: Write) -> None:
    progress = Progress()
    progress.cancel()
    with FileSource(write(checkpoint(TWO, *STORAGES))) as source, pytest.raises(CancelledError):
        Legacy().read(source, Limits(), progress)


# ------------------------------------------------------------------------------------------- gzip


def test_gzip(take_apart: TakeApart) -> None:
    plain = checkpoint(TWO, *STORAGES)
    packed = gzip.compress(plain)
    found = take_apart(packed)
    assert found.format == "legacy"
    assert found.file_nbytes == len(packed)
    assert found.pickle().end == len(TWO)
    assert found.stored == {"11": StoredBytes(0, None, 8), "22": StoredBytes(0, None, 24)}
    assert found.stream.root is not None
    (note,) = found.notes
    assert note.sentence.startswith("Compressed with gzip: torch.load cannot open it by its path")


def test_gzip_with_views_in_it(take_apart: TakeApart) -> None:
    pickle_ = state_dict(a=tensor(legacy_storage("root", numel=4, view=("view", 1, 2)), 2))
    found = take_apart(gzip.compress(checkpoint(pickle_, ("root", 4, bytes(16)))))
    assert found.stored == {"root": (0, None, 16), "view": (0, None, 8)}


def test_gzip_whose_inside_ends_early_has_no_last_storage(take_apart: TakeApart) -> None:
    found = take_apart(gzip.compress(checkpoint(TWO, *STORAGES)[:-1]))
    assert list(found.stored) == ["11"]


def test_gzip_that_ends_early_has_no_last_storage(take_apart: TakeApart) -> None:
    packed = gzip.compress(checkpoint(TWO, ("11", 2, EIGHT), ("22", 3, b"abcdefghijklmnopqrstuvwx")), 0)
    found = take_apart(packed[:-20])
    assert list(found.stored) == ["11"]


def test_gzip_bomb_is_bounded(write: Write) -> None:
    pickle_ = state_dict(a=tensor(legacy_storage("11", numel=2**40), 2**20))
    packed = gzip.compress(checkpoint(pickle_, ("11", 2**40, bytes(5_000_000))))
    limits = Limits(inflated_nbytes=1_000_000)
    with (
        PackedSource(FileSource(write(packed)), limits) as source,
        pytest.raises(TooLargeError, match="more than 1,000,000"),
    ):
        Legacy().read(source, Limits(), Progress())


# ------------------------------------------------------------------------------------------- genuine


@pytest.mark.wide
def test_every_byte_of_a_small_file_may_be_anything(write: Write) -> None:
    data = checkpoint(TWO, *STORAGES)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        with FileSource(write(changed)) as source:
            try:
                Legacy().read(source, Limits(), Progress())
            except CheckpointError as error:
                message = str(error)
            else:
                message = "read"
        assert message


@pytest.mark.torch
def test_builder_writes_what_torch_writes(write: Write) -> None:
    torch = pytest.importorskip("torch")
    import io

    buffer = io.BytesIO()
    torch.save({"a": torch.arange(2.0)}, buffer, _use_new_zipfile_serialization=False)
    theirs = buffer.getvalue()
    with FileSource(write(theirs)) as source:
        layout = read_layout(source, Limits(), Progress())
    head = [pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001)]
    assert theirs.startswith(b"".join(head))
    assert theirs[layout.data_start :] == struct.pack("<q2f", 2, 0.0, 1.0)

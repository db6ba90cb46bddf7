from __future__ import annotations

import pytest

from inspector.containers.notes import NoteKind
from inspector.containers.sb3 import TWICE, InnerFiles
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import ExtentReader, sum_extents
from inspector.containers.zip.directory import read_directory
from inspector.errors import CheckpointError, ContainerError, NotACheckpointError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.values import Dict
from inspector.progress import Progress
from inspector.records import replace
from tests.builders import legacy
from tests.builders.agents import parameters
from tests.builders.pickles import call, dict_, legacy_storage, op, proto, storage, stream, tensor, text
from tests.builders.scripts import WEIGHTS, evil
from tests.builders.zips import Record, build_zip

LEGACY = legacy.checkpoint(
    stream(proto(), dict_((text("x"), tensor(legacy_storage("7", numel=4), 4)))), ("7", 4, WEIGHTS)
)


class Made:
    """A zip with these records, and the files that were read of it."""

    def __init__(self, *records: Record, limits: Limits = DEFAULT_LIMITS) -> None:
        self.source = BytesSource(build_zip(*records), "a.zip")
        self.entries = read_directory(self.source, limits).entries
        self.files = InnerFiles(self.source, limits, Progress())

    def read(self, number: int = 0) -> object:
        return self.files.read(self.entries[number].name, self.entries[number])


def inner_zip(method: int = 0, **more: object) -> bytes:
    return build_zip(
        Record(name="a/data.pkl", data=stream(proto(), tensor(storage("0", numel=4), 4)), method=method),
        Record(name="a/data/0", data=WEIGHTS, method=method),
        Record(name="a/version", data=b"3"),
        *(Record(name=f"a/{name}", data=data) for name, data in more.items() if isinstance(data, bytes)),
    )


def test_files_of_both_formats_are_read_stored_or_compressed() -> None:
    for data, key, nbytes in ((parameters("cuda:1"), "p.pth:1", 16), (LEGACY, "p.pth:7", 16)):
        for method in (0, 8):
            made = Made(Record(name="before", data=b"12"), Record(name="p.pth", data=data, method=method))
            root = made.read(1)
            assert isinstance(root, Dict)
            files = made.files
            assert [one.prefix for one in files.pickles] == ["p.pth:"]
            assert (files.storage_ids[key].key, files.stored[key].nbytes) == (key, nbytes)
            assert (files.stored[key].offset is None) == bool(method)
            found = files.extents()
            assert (found.lost, found.names, set(found.whole)) == ({}, {"p.pth"}, set(files.storage_ids))
            assert b"".join(ExtentReader(made.source).contents(found.whole[key])) == WEIGHTS
            if not method:
                offset = files.stored[key].offset or 0
                assert made.source.read(offset, nbytes) == WEIGHTS
            sums = sum_extents(made.source, found.whole | found.records, Progress())
            assert sums.faults == {}
            programs = [program.name for program in made.source.programs.all()]
            assert programs == ["p.pth"]


def test_records_of_the_inner_files_are_checked_too() -> None:
    made = Made(Record(name="p.pth", data=inner_zip()))
    made.read()
    assert set(made.files.extents().records) == {"p.pth:a/data.pkl", "p.pth:a/version"}


def test_what_is_compressed_twice_is_not_read() -> None:
    made = Made(Record(name="p.pth", data=inner_zip(8), method=8))
    made.read()
    extent = made.files.extents().whole["p.pth:0"]
    assert extent.method == TWICE
    once = Made(Record(name="p.pth", data=inner_zip(8)))
    once.read()
    found = once.files.extents().whole["p.pth:0"]
    assert b"".join(ExtentReader(once.source).contents(found)) == WEIGHTS


def test_lost_storages_are_told() -> None:
    body = dict_((text("x"), tensor(storage("9", numel=4), 4)))
    made = Made(
        Record(
            name="p.pth",
            data=build_zip(
                Record(name="a/data.pkl", data=stream(proto(), body)), Record(name="a/version", data=b"99")
            ),
        )
    )
    made.read()
    assert made.files.extents().lost == {"p.pth:9": "its bytes are not in the file"}
    assert NoteKind.LOST_BYTES not in {note.kind for note in made.files.notes}  # the whole says so
    made = Made(Record(name="p.pth", data=inner_zip()[:-30]))
    made.read()
    assert {note.part for note in made.files.notes} == {"p.pth"}
    assert made.files.refusal.startswith("RuntimeError: PytorchStreamReader failed")


def test_what_torch_refuses_of_a_storage_is_kept() -> None:
    broken = build_zip(
        Record(name="a/data.pkl", data=stream(proto(), tensor(storage("0", numel=4), 4))),
        Record(name="a/data/0", data=WEIGHTS, method=12),
        Record(name="a/version", data=b"3"),
    )
    made = Made(Record(name="p.pth", data=broken))
    made.read()
    assert [key for key, _ in made.files.refused] == ["p.pth:0"]


def test_what_is_no_file_of_torch_is_read_for_what_it_runs() -> None:
    for data in (stream(proto(), evil()), build_zip(Record(name="x.pkl", data=stream(proto(), evil())))):
        made = Made(Record(name="p.pth", data=data))
        with pytest.raises(CheckpointError):
            made.read()
        names = [use.dotted for one in made.source.programs.all() for use in one.stream.globals]
        assert "os.system" in names
    made = Made(Record(name="p.pth", data=b"nothing at all"))
    with pytest.raises(CheckpointError):
        made.read()
    archive = build_zip(Record(name="data", data=b"{}"), Record(name="_stable_baselines3_version", data=b"2"))
    made = Made(Record(name="p.pth", data=archive))
    with pytest.raises(NotACheckpointError, match=r"this is no file of torch\.save: p\.pth"):
        made.read()


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(DEFAULT_LIMITS, storages=1)
    made = Made(Record(name="p.pth", data=inner_zip()), Record(name="q.pth", data=inner_zip()), limits=few)
    made.read()
    with pytest.raises(ContainerError, match="more than 1 storages"):
        made.read(1)
    monkeypatch.setattr("inspector.containers.sb3._MOST_FILES", 1)
    made = Made(Record(name="p.pth", data=inner_zip()), Record(name="q.pth", data=inner_zip()))
    made.read()
    with pytest.raises(ContainerError, match=r"more than 1 files of torch\.save"):
        made.read(1)


def test_files_of_two_byte_orders_are_not_one_checkpoint() -> None:
    orders = (b"big", b"little")
    made = Made(*(Record(name=f"{order!r}.pth", data=inner_zip(byteorder=order)) for order in orders))
    made.read()
    assert made.files.byteorder == "big"
    with pytest.raises(ContainerError, match="in another order"):
        made.read(1)


def test_large_values_find_themselves_in_the_data_of_all() -> None:
    limits = replace(DEFAULT_LIMITS, text_nbytes=10)
    long = dict_((text("k"), text("x" * 40)))
    data = build_zip(
        Record(name="a/data.pkl", data=stream(proto(), long)), Record(name="a/version", data=b"3")
    )
    made = Made(Record(name="p.pth", data=data), Record(name="q.pth", data=data), limits=limits)
    blobs = []
    for number in (0, 1):
        root = made.read(number)
        assert isinstance(root, Dict)
        blobs.append(root.pairs[0][1])
    assert [made.files.large[blob.offset : blob.offset + blob.nbytes] for blob in blobs] == [b"x" * 40] * 2  # type: ignore[union-attr]


def test_pickles_by_themselves_are_added() -> None:
    from inspector.pickles.machine import read_pickle

    made = Made(Record(name="x", data=b""))
    found = read_pickle(stream(proto(), call("collections.OrderedDict")) + op("NONE"))
    made.files.add_pickle("data/x", found)
    assert [(one.name, one.prefix) for one in made.files.pickles] == [("data/x", "")]

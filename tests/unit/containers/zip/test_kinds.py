from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from inspector.containers import formats, torch_zip
from inspector.containers.base import Entry
from inspector.containers.formats import FORMATS, find_format
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.containers.torch_zip import ARCHIVES, TorchZip
from inspector.containers.zip import records as kinds
from inspector.containers.zip.records import Records, ZipFormat, records_of
from inspector.errors import CancelledError, ContainerError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders.zips import Record, build_zip

# The names that each writer puts into its zip; the first row of a kind is told by the first sample.
SAMPLES = [
    ("torchscript", ["net/data.pkl", "net/code/__torch__.py", "net/constants.pkl", "net/version"]),
    ("torchscript", ["net/version", "net/code/net.py", "net/model.json", "net/tensors/0"]),
    ("pt2", ["net/data/weights/weight_0", "net/models/model.json", "net/archive_format"]),
    ("pt2", ["version", "serialized_exported_program.json", "serialized_state_dict.pt"]),
    ("package", ["pkg/.data/0.storage", "pkg/model/sd.pkl", "pkg/.data/extern_modules"]),
    ("npz", ["arr_0.npy", "arr_1.npy"]),
    ("stable-baselines3", ["data", "policy.pth", "policy.optimizer.pth", "_stable_baselines3_version"]),
]
# What is a zip of torch.save all the same, or of nobody.
PLAIN = [
    ["a/data.pkl", "a/data/0", "a/version"],
    ["a/DATA.pkl", "a/model.json", "a/archive_format", "a/.data/extern_modules"],
    ["a/data.pkl", "a/constants.pkl.bak", "b/constants.pkl"],
    ["arr_0.npy", "readme.txt"],
    ["readme.txt"],
    [],
]


def source_of(names: list[str]) -> BytesSource:
    return BytesSource(build_zip(*(Record(name=name) for name in names)), "a.zip")


def test_each_kind_is_told_by_its_names() -> None:
    found = [TorchZip().kind_of(source_of(names), Limits(), Progress()) for _, names in SAMPLES]
    assert found == [name for name, _ in SAMPLES]
    assert {entry.name for entry in ARCHIVES} == set(found)
    assert [TorchZip().kind_of(source_of(names), Limits(), Progress()) for names in PLAIN] == ["zip"] * len(
        PLAIN
    )


def test_each_kind_is_a_format() -> None:
    for name, names in SAMPLES:
        form = find_format(source_of(names))
        assert form.name == name


def test_directory_is_read_once(write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    real = kinds.read_directory
    monkeypatch.setattr(kinds, "read_directory", lambda *args: reads.append(args) or real(*args))
    path = write(
        build_zip(Record(name="a/data.pkl", data=b"\x80\x02N."), Record(name="a/version", data=b"3"))
    )
    assert read_container(path).root is None
    assert len(reads) == 1
    source = source_of(["a/data.pkl"])
    TorchZip().kind_of(source, Limits(), Progress())
    kept = source.kept
    assert records_of(source, Limits(), Progress()) is kept


def test_damaged_directory_is_left_to_the_reader() -> None:
    broken = BytesSource(b"PK\x03\x04" + b"x" * 40, "a.zip")
    assert (TorchZip().kind_of(broken, Limits(), Progress()), broken.kept) == ("zip", None)
    with pytest.raises(ContainerError):
        records_of(broken, Limits(), Progress())
    many = source_of(["net/constants.pkl", "net/version"])
    assert TorchZip().kind_of(many, Limits(records=1), Progress()) == "zip"
    stopped = Progress()
    stopped.cancel()
    with pytest.raises(CancelledError):
        TorchZip().kind_of(many, Limits(), stopped)


def test_records_below_a_folder() -> None:
    records = records_of(
        source_of(["a/data/0", "a/database", "b/data/1", "a/data/x/2"]), Limits(), Progress()
    )
    assert list(records.below("data/")) == ["data/0", "data/x/2"]


class Tiny(ZipFormat):
    name = "tiny"
    what = "a tiny zip"
    is_read = False
    remedy = "look"

    def matches_records(self, records: Records) -> bool:
        return "tiny.txt" in records.names


def test_kind_from_outside_is_a_class_and_its_entry(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspector.containers.tiny_zip", sys.modules[__name__])
    entry = Entry("tiny", "tiny_zip:Tiny")
    monkeypatch.setattr(torch_zip, "ARCHIVES", (entry, *ARCHIVES))
    monkeypatch.setattr(formats, "FORMATS", (entry, *FORMATS))
    with pytest.raises(UnsupportedFormatError, match="this is a tiny zip") as caught:
        read_container(write(build_zip(Record(name="tiny.txt"))))
    assert caught.value.form == "tiny"

from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers import formats
from inspector.containers.formats import FORMATS, Format, find_format
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.containers.zip import records as kinds
from inspector.containers.zip.records import ZIP_KINDS, kind_of, records_of
from inspector.errors import CancelledError, ContainerError, NotACheckpointError, UnsupportedFormatError
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
    found = [kind_of(source_of(names), Limits(), Progress()) for _, names in SAMPLES]
    assert found == [name for name, _ in SAMPLES]
    assert {kind.name for kind in ZIP_KINDS} == set(found)
    assert [kind_of(source_of(names), Limits(), Progress()) for names in PLAIN] == ["zip"] * len(PLAIN)


def test_each_kind_is_a_format() -> None:
    for name, names in SAMPLES:
        form = find_format(source_of(names))
        assert form.name == name
        if form.read is None:  # named, with what to do
            with pytest.raises(NotACheckpointError if form.is_foreign else UnsupportedFormatError) as caught:
                form.reader_for(source_of(names))
            assert (caught.value.form, bool(caught.value.remedy)) == (name, True)


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
    kind_of(source, Limits(), Progress())
    kept = source.kept
    assert records_of(source, Limits(), Progress()) is kept
    assert records_of(source, Limits(), Progress()) is not kept


def test_damaged_directory_is_left_to_the_reader() -> None:
    broken = BytesSource(b"PK\x03\x04" + b"x" * 40, "a.zip")
    assert (kind_of(broken, Limits(), Progress()), broken.kept) == ("zip", None)
    with pytest.raises(ContainerError):
        records_of(broken, Limits(), Progress())
    many = source_of(["net/constants.pkl", "net/version"])
    assert kind_of(many, Limits(records=1), Progress()) == "zip"
    stopped = Progress()
    stopped.cancel()
    with pytest.raises(CancelledError):
        kind_of(many, Limits(), stopped)


def test_records_below_a_folder() -> None:
    records = records_of(
        source_of(["a/data/0", "a/database", "b/data/1", "a/data/x/2"]), Limits(), Progress()
    )
    assert list(records.below("data/")) == ["data/0", "data/x/2"]


def test_kind_from_outside_is_a_row_and_a_format(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = kinds.ZipKind("tiny", lambda records: "tiny.txt" in records.names)
    monkeypatch.setattr(kinds, "ZIP_KINDS", (row, *ZIP_KINDS))
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, Format(name="tiny", what="a tiny zip", remedy="look")))
    with pytest.raises(UnsupportedFormatError, match="this is a tiny zip") as caught:
        read_container(write(build_zip(Record(name="tiny.txt"))))
    assert caught.value.form == "tiny"

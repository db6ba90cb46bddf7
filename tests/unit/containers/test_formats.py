from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.base import Format
from inspector.containers.folder import Folder
from inspector.containers.formats import FILES, FORMATS, find_format, format_of, refuse_step
from inspector.containers.opening import open_path, read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.torch_zip import ARCHIVES
from inspector.errors import (
    ContainerError,
    DamagedError,
    NotACheckpointError,
    PlanError,
    UnsupportedFormatError,
)
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.safety.verdict import ARCHIVES as JUDGED
from tests.builders import legacy, tars, zips
from tests.builders.agents import agent
from tests.builders.exports import config, exported, graph, packaged, payload
from tests.builders.folders import trainer, two_shards
from tests.builders.megatron import megatron
from tests.builders.pickles import NONE, dict_, proto, storage, stream, tensor, text
from tests.builders.scripts import WEIGHTS, script
from tests.sweep import table

Write = Callable[..., str]
ZIP = zips.checkpoint(stream(NONE))
TAR = tars.checkpoint(stream(NONE), [], [])


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


SAMPLES = {
    "torchscript": (script(), "0"),
    "pt2": (
        exported(
            **{
                "models__m.json": graph(),
                "data__weights__weight_0": WEIGHTS,
                "data__weights__m_weights_config.json": config(w=payload("weight_0", 4)),
            }
        ),
        "data/weights/weight_0",
    ),
    "package": (packaged(sd=stream(proto(), dict_((text("w"), tensor(storage(0, numel=4), 4))))), "0"),
    "stable-baselines3": (agent(), "policy.pth:0"),
}


def test_each_entry_is_a_class_of_that_name() -> None:
    for entry in FORMATS:
        form = entry.format()
        assert (form.name, type(form).__doc__ is not None, bool(form.what)) == (entry.name, True, True)
        assert entry.format() is form


def test_a_format_that_is_only_named_is_refused() -> None:
    class Named(Format):
        name, what, is_read = "x", "an x file", False

    source = BytesSource(b"x", "a.bin")
    with pytest.raises(UnsupportedFormatError, match="this is an x file, which this version does not read"):
        Named().check(source)
    Named.is_foreign = True
    with pytest.raises(NotACheckpointError, match="this is an x file"):
        Named().check(source)


@pytest.mark.parametrize("name", SAMPLES)
def test_archives_are_read_and_the_bytes_of_their_storages_found(name: str) -> None:
    data, key = SAMPLES[name]
    form = format_of(name)
    container = form.read(BytesSource(data, "x"), Limits(), Progress())
    assert (container.format, key in container.stored) == (name, True)
    extent = form.finder(BytesSource(data, "x"))(key)
    assert extent is not None
    assert extent == read_extents(BytesSource(data, "x"), Limits(), Progress()).whole[key]


def test_archives_whose_loaders_restrict_are_judged_as_such() -> None:
    forms = [entry.format() for entry in ARCHIVES]
    judged = {form.name: form.loader for form in forms if not form.unchecked}
    assert judged == {name: row.loader for name, row in JUDGED.items()}


def test_folders_are_told_by_what_is_in_them(tmp_path: Path) -> None:
    def form_of(path: Path) -> str:
        with open_path(str(path)) as source:
            return find_format(source).name

    index = two_shards(tmp_path / "model")
    assert form_of(index) == form_of(index.parent) == "sharded"
    assert form_of(trainer(tmp_path / "run")) == "folder"
    assert form_of(megatron(tmp_path)) == "megatron"
    (index.parent / "optimizer.pt").touch()
    assert form_of(index.parent) == "folder"
    assert form_of(index) == "sharded"

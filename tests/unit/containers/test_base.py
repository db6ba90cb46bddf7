"""Each format: told by its sample, read, and found in the list of all under its name."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from inspector.containers.base import Format
from inspector.containers.formats import FORMATS, find_format, format_of
from inspector.containers.opening import open_path, read_extents
from inspector.containers.pickled import is_pickle
from inspector.containers.source import BytesSource
from inspector.containers.torch_zip import ARCHIVES
from inspector.errors import NotACheckpointError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.safety.archives import ARCHIVES as JUDGED
from tests.builders.agents import agent
from tests.builders.exports import config, exported, graph, packaged, payload
from tests.builders.folders import trainer, two_shards
from tests.builders.megatron import megatron
from tests.builders.pickles import dict_, proto, storage, stream, tensor, text
from tests.builders.scripts import WEIGHTS, script
from tests.sweep import table

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


@table("protocol", range(6))
def test_pickles_of_every_protocol(protocol: int) -> None:
    assert is_pickle(BytesSource(pickle.dumps({"a": [1, 2]}, protocol), "a"))


def test_other_bytes_are_no_pickle() -> None:
    others = (b"", b"\x80", b"\x80\x06N.", b"text", b"\x89PNG")
    assert not any(is_pickle(BytesSource(data, "a")) for data in others)


@pytest.mark.parametrize(("name", "head"), [("gguf", b"GGUF\3\0\0\0"), ("npy", b"\x93NUMPY\1\0")])
def test_arrays_are_told_by_their_first_bytes(name: str, head: bytes) -> None:
    assert format_of(name).matches(BytesSource(head, "a"))
    assert not format_of(name).matches(BytesSource(head[:3], "a"))


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

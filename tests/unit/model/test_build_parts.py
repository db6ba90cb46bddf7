"""A checkpoint of several files, and without a pickle: its reader makes the values, and nothing is run."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest

from inspector.containers import formats
from inspector.containers.base import Entry
from inspector.containers.container import Container, Part, StoredBytes, first_storage_ids
from inspector.containers.formats import FILES, FORMATS, Format
from inspector.containers.programs import Program
from inspector.containers.source import Source
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.pickles.values import Call, Dict, Global, PersistentId
from inspector.progress import Progress
from inspector.records import replace
from inspector.safety.verdict import judge
from tests.builders.pickles import NONE, read

MAGIC = b"INDEX\n"
FLOATS = {"first.weight": (1.0, 2.0, 3.0, 4.0), "second.bias": (5.0, 6.0)}


def read_index(source: Source, limits: Limits, _progress: Progress) -> Container:
    """Read an index: each line names a tensor, its file, and how many floats it has at its beginning."""
    root, nodes, stored, parts = Dict([]), [], {}, []
    for line in source.read(len(MAGIC), source.nbytes - len(MAGIC)).decode().splitlines():
        name, file, count = line.split()
        path = Path(source.path).with_name(file)
        node = PersistentId(("storage", Global("torch", "FloatStorage"), name, "cpu", int(count)))
        nodes.append(node)
        root.pairs.append(
            (name, Call(Global("torch._utils", "_rebuild_tensor"), (node, 0, (int(count),), (1,)), "reduce"))
        )
        if path.exists():
            stored[name] = StoredBytes(len(parts), 0, int(count) * 4)
        parts.append(Part(str(path), path.stat().st_size if path.exists() else 0))
    return Container(
        path=source.path,
        format="index",
        file_nbytes=source.nbytes + sum(part.nbytes for part in parts),
        root=root,
        storage_ids=first_storage_ids(nodes, limits),
        stored=stored,
        parts=tuple(parts),
    )


class Index(Format):
    name = "index"
    what = "an index"

    def matches(self, source: Source) -> bool:
        return source.read_upto(0, len(MAGIC)) == MAGIC

    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return read_index(source, limits, progress)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(sys.modules, "inspector.containers.index", sys.modules[__name__])
    entry = Entry("index", "index:Index")
    monkeypatch.setattr(formats, "FILES", (entry, *FILES))
    monkeypatch.setattr(formats, "FORMATS", (entry, *FORMATS))
    path = tmp_path / "model.index"
    lines = []
    for number, (name, values) in enumerate(FLOATS.items()):
        (tmp_path / f"{number}.bin").write_bytes(struct.pack(f"<{len(values)}f", *values))
        lines.append(f"{name} {number}.bin {len(values)}\n")
    path.write_bytes(MAGIC + "".join(lines).encode())
    return path


def test_tensors_of_several_files_are_rows_of_one_checkpoint(index: Path) -> None:
    checkpoint = open_checkpoint(str(index))
    assert [(row.path, row.shape, row.dtype) for row in checkpoint.tensors] == [
        ("first.weight", (4,), "float32"),
        ("second.bias", (2,), "float32"),
    ]
    assert checkpoint.file_nbytes == index.stat().st_size + 24
    assert [(row.part, row.file_offset, row.nbytes) for row in checkpoint.storages] == [
        (str(index.with_name("0.bin")), 0, 16),
        (str(index.with_name("1.bin")), 0, 8),
    ]


def test_part_that_is_not_there_is_missing(index: Path) -> None:
    index.with_name("1.bin").unlink()
    storages = open_checkpoint(str(index)).storages
    assert [(row.missing, row.part != "") for row in storages] == [(False, True), (True, False)]


def test_nothing_is_run_without_a_pickle(index: Path) -> None:
    checkpoint = open_checkpoint(str(index))
    assert checkpoint.safety is None
    assert checkpoint.globals == ()
    assert judge(checkpoint).verdict == "weights-only"


def test_program_without_an_object_of_its_own_is_judged_all_the_same() -> None:
    container = Container(path="x", format="index", file_nbytes=0, root=None, storage_ids={}, stored={})
    assert build_checkpoint(container).safety is None
    program = Program("code", "part", read(NONE))
    safety = build_checkpoint(replace(container, programs=(program,))).safety
    assert (safety.protocol, safety.opcodes) == (0, ("NONE", "STOP"))
    with pytest.raises(ContainerError, match="there is no pickle in this file: x"):
        container.pickle()


@pytest.mark.wide
def test_command_line_shows_it(index: Path, cli) -> None:
    shown = json.loads(cli("show", index, "--json").out)
    assert [row["path"] for row in shown["tensors"]] == list(FLOATS)
    for command in ("show", "check", "snippet"):
        assert cli(command, index, "--target", "cpu").code < 3, command


@pytest.mark.parametrize("options", [["-o", "copy.pt"], ["-o", "copy.pt", "--format", "state-dict"]])
def test_command_line_writes_none(
    index: Path, cli, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(index.parent)
    answer = cli("remap", index, *options)
    assert answer.code
    assert "no file of this folder names a device" in answer.err or "is not open" in answer.err
    assert not Path("copy.pt").exists()

"""The three techniques that fool scanners: what Python and torch carry out, and that it is reported here."""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from tests.builders import zips
from tests.builders.zips import Record
from tests.fuzz.unpickling import Watching
from tests.hostile.archives import EVIL, STORED, archive, pickled
from tests.hostile.asking_torch import ask_torch
from tests.hostile.streams import straddling_frame
from tests.sweep import table

# torch searches a sorted list of names by halves: which of two equals it meets depends on how many there are.
BYTEORDER = Record(name="archive/byteorder", data=b"little")
TECHNIQUES: dict[str, Callable[[], bytes]] = {
    "a frame that ends within an instruction": lambda: zips.checkpoint(straddling_frame()),
    "two data.pkl, the evil one first": lambda: archive(pickled(EVIL), pickled(), STORED, BYTEORDER),
    "DATA.PKL beside data.pkl": lambda: archive(pickled(), pickled(EVIL, "archive/DATA.PKL"), STORED),
}


def test_unpickler_carries_out_what_pickletools_takes_for_a_text() -> None:
    stream = straddling_frame()
    theirs = Watching(stream)
    theirs.load()
    assert theirs.asked == {"posix.system"}
    assert not [opcode for opcode, _, _ in pickletools.genops(stream) if "GLOBAL" in opcode.name]
    with pytest.raises(pickle.UnpicklingError):  # Python's own unpickler in Python notices
        pickle._Unpickler(io.BytesIO(stream)).load()


def test_zipfile_reads_another_record_than_torch() -> None:
    for technique in ("two data.pkl, the evil one first", "DATA.PKL beside data.pkl"):
        with zipfile.ZipFile(io.BytesIO(TECHNIQUES[technique]())) as file:
            assert b"posix" not in file.read("archive/data.pkl")


@table("technique", TECHNIQUES)
def test_technique_is_reported_as_running_code(technique: str, tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(TECHNIQUES[technique]())
    verdict = judge(open_checkpoint(str(path)))
    assert verdict.verdict in {"runs-code", "dangerous"}
    assert not verdict.weights_only
    assert any(reason.startswith("Readers disagree about this pickle") for reason in verdict.reasons)


@pytest.mark.torch
def test_torch_reads_the_evil_record(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    files = []
    for number, build in enumerate(list(TECHNIQUES.values())[1:]):
        path = tmp_path / f"{number}.pt"
        path.write_bytes(build())
        files.append((path, ()))
    for (said,) in ask_torch(files):
        assert "posix.system" in said

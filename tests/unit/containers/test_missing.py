"""What was not read is taken down, handed on from file to folder, and ends in the verdict."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from inspector.containers import folder as beside
from inspector.containers.folder import Folder
from inspector.containers.opening import read_container
from inspector.containers.programs import Programs
from inspector.containers.zip import rivals as others
from inspector.diagnose.run import diagnose
from inspector.errors import CancelledError, ContainerError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Safety
from inspector.progress import Progress
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.safety.words import verdict_words
from inspector.target.profile import CPU_ONLY
from tests.builders import zips
from tests.builders.pickles import call, dict_, proto, stream, text
from tests.hostile.loaders.cases_numpy import array
from tests.unit.report.rows import checkpoint

EVIL = stream(proto(), call("posix.system", text("id")))
PLAIN = stream(proto(), dict_())


def zipped(*more: zips.Record) -> bytes:
    return zips.build_zip(
        zips.Record(name="archive/data.pkl", data=PLAIN),
        *more,
        zips.Record(name="archive/version", data=b"3\n"),
        zip64=True,
    )


def test_what_was_missed_is_handed_on() -> None:
    missed = Programs()
    for number in range(100):
        missed.miss(f"record {number}", "it is packed")
    assert len(missed.all()) == 64
    folder, whole = Programs(), Programs()
    folder.absorb(missed.all(), "a.pt")
    assert folder.all()[0][:2] == ("a.pt: record 0", "missed")
    whole.adopt(missed, "inner")
    assert whole.all()[0].name == "inner: record 0"
    assert not any(program.is_known for program in (*folder.all(), *whole.all()))


def test_unknown_is_worded_like_danger() -> None:
    found = checkpoint(safety=Safety(opcodes=("STOP",), protocol=2, oddities=(), unread=("a (why)",) * 9))
    safety = judge(found)
    assert (safety.verdict, safety.weights_only, safety.may_harm) == ("unknown", False, True)
    assert verdict_words(safety).startswith("unknown: ")
    assert safety.reasons[4] == "5 more could not be read."
    titles = [finding.title for finding in diagnose(found, safety, CPU_ONLY)]
    assert "Unknown: not all that loading it would run could be read" in titles
    old = replace(found.needs, unread=(), unread_before_2_6=("a chunk (why)",))
    assert judge(replace(found, safety=old), "2.5.0").verdict == "unknown"
    assert judge(replace(found, safety=old), "2.6.0").verdict == "weights-only"


def test_files_beside_are_bounded_and_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.pt", "b.pt", "c.bin"):
        (tmp_path / name).write_bytes(zipped())
    (tmp_path / "c.bin").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "word").write_bytes(bytes(100))
    folder = Folder("x", str(tmp_path), read=read_container)
    beside.run_beside(folder, {"a.pt"}, "", DEFAULT_LIMITS, Progress())
    assert all(program.is_known for program in folder.programs.all())
    with monkeypatch.context() as patched:
        patched.setattr(beside, "_MOST_BESIDE", 1)
        patched.setattr(beside, "_MOST_WORD_NBYTES", 10)
        beside.run_beside(folder, (), "", DEFAULT_LIMITS, Progress())
        with pytest.raises(ContainerError, match="too long for the name"):
            beside.read_word(folder, "word")
    assert [program.name for program in folder.programs.all() if not program.is_known] == [
        "further files",
        "what word names",
    ]
    folder.read_file = Mock(side_effect=CancelledError())
    for work in (
        lambda: beside.run_beside(folder, (), "", DEFAULT_LIMITS, Progress()),
        lambda: folder.read_member("a.pt", DEFAULT_LIMITS, Progress()),
    ):
        with pytest.raises(CancelledError):
            work()


def test_records_for_others_are_bounded_and_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pt"
    for record, verdict in (
        (zips.Record(name="archive/a.npy", data=array("'<f4'")), "weights-only"),
        (zips.Record(name="archive/a.npy", data=array("'nobody knows'")), "unknown"),
        (zips.Record(name="archive/a.pkl", data=b"no pickle"), "weights-only"),
        (zips.Record(name="archive/a.pkl", data=EVIL), "dangerous"),
    ):
        path.write_bytes(zipped(record))
        assert judge(open_checkpoint(str(path))).verdict == verdict, record
    monkeypatch.setattr(others, "_MOST_OTHERS", 1)
    path.write_bytes(zipped(*(zips.Record(name=f"archive/{one}.pkl", data=PLAIN) for one in "ab")))
    assert judge(open_checkpoint(str(path))).verdict == "unknown"

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import CancelledError, DamagedError
from inspector.model.build import open_checkpoint
from inspector.pickles.values import PersistentId
from inspector.progress import Progress
from inspector.safety.verdict import judge
from tests.builders.dcp import saved_tensor, saved_value
from tests.builders.pickles import call, number, text

ROW = saved_value(number(7)) + saved_tensor(b"1234", (1,)) + saved_value(text("x"))


def read(data: bytes, path: str = "a.bin") -> Container:
    return read_container(BytesSource(data, path))


@pytest.mark.parametrize("path", ["a.bin", "__0_0.distcp"])
def test_what_stands_one_behind_the_other_is_listed(path: str) -> None:
    found = read(ROW, path)
    assert found.format == "distcp"
    assert isinstance(found.root, list)
    assert (found.root[0], found.root[2]) == (7, "x")
    place = found.stored["1:0"]
    assert place.offset is not None
    assert ROW[place.offset : place.offset + place.nbytes] == b"1234"
    assert [note.kind for note in found.notes] == [NoteKind.ALONE]
    assert "Not a directory" in found.refusal


def test_one_zip_is_a_shard_by_its_name_alone() -> None:
    assert read(saved_value(number(7))).format == "zip"
    assert read(saved_value(number(7)), "x.distcp").format == "distcp"


def test_what_is_cut_off_is_told() -> None:
    found = read(ROW[:-30], "x.distcp")
    assert isinstance(found.root, list)
    assert len(found.root) == 2
    assert [note.kind for note in found.notes] == [NoteKind.ALONE, NoteKind.STRAY_BYTES]
    with pytest.raises(DamagedError, match="nothing in this file"):
        read(ROW[:50], "x.distcp")
    # Without its name and its end it is any damaged zip.
    assert read(ROW[:-30]).format == "zip"


def test_what_cannot_be_read_is_counted() -> None:
    broken = bytearray(ROW)
    broken[ROW.index(b"data.pkl") : ROW.index(b"data.pkl") + 12] = bytes(12)
    at = ROW.index(b"PK\x01\x02")
    broken[at : at + 4] = bytes(4)
    found = read(bytes(broken), "x.distcp")
    assert isinstance(found.root, list)
    assert isinstance(found.root[0], PersistentId)
    assert NoteKind.UNREAD_VALUES in {note.kind for note in found.notes}


def test_everything_in_it_is_judged(tmp_path: Path) -> None:
    for bad, verdict in ((b"", "weights-only"), (saved_value(call("os.system", text("id"))), "dangerous")):
        for data in (ROW + bad, bad + ROW):
            (tmp_path / "a.distcp").write_bytes(data)
            assert judge(open_checkpoint(str(tmp_path / "a.distcp"))).verdict == verdict


def test_reading_can_be_cancelled() -> None:
    progress = Progress()

    class Cancelling(BytesSource):
        reads = 0

        def read_at(self, offset: int, nbytes: int) -> bytes:
            self.reads += 1
            if self.reads > 14:
                progress.cancel()
            return super().read_at(offset, nbytes)

    with pytest.raises(CancelledError):
        read_container(Cancelling(ROW, "x.distcp"), progress=progress)

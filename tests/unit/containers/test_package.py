from __future__ import annotations

import pytest

from inspector.containers import package
from inspector.containers.container import Container
from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import sum_extents
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.records import replace
from inspector.safety.verdict import judge
from tests.builders.exports import packaged
from tests.builders.pickles import dict_, list_, name, op, proto, storage, stream, tensor, text, tuple_
from tests.builders.scripts import WEIGHTS, evil
from tests.builders.zips import Record
from tests.unit.containers.verdicts import judged_otherwise, kinds

SD = stream(proto(), dict_((text("w"), tensor(storage(0, location="cuda:0", numel=4), 4))))


def container(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Container:
    return read_container(BytesSource(data, "p.pt"), limits)


def opened(data: bytes) -> Checkpoint:
    return build_checkpoint(container(data))


def test_each_pickle_is_listed_below_its_name() -> None:
    found = opened(packaged(Record(name="p/model/other", data=SD), sd=SD))
    assert [(row.keys, row.device, row.storage) for row in found.tensors] == [
        (("model/sd.pkl", "w"), "cuda:0", "0"),
        (("model/other", "w"), "cuda:0", "0"),
    ]
    assert (found.format, found.notes) == ("package", ())
    assert dict(found.versions)["extern_modules"] == "torch, collections"
    assert not found.storages[0].missing


def test_bytes_are_where_the_records_are() -> None:
    source = BytesSource(packaged(sd=SD), "p.pt")
    extents = read_extents(source, Limits(), Progress())
    assert sum_extents(source, extents.whole, Progress()).faults == {}
    assert source.read(extents.whole["0"].offset, 16) == WEIGHTS
    extent = format_of("package").finder(source)("0")
    assert extent is not None
    assert extent.offset == extents.whole["0"].offset
    assert format_of("package").finder(source)("1") is None


def test_what_else_is_inside_is_told() -> None:
    modules = (Record(name=f"p/a/m{number}.py") for number in range(4))
    found = opened(
        packaged(
            *modules,
            Record(name="p/a/__init__.py"),
            Record(name="p/.data/ts_code/0/data.pkl", data=SD),
            Record(name="p/model/readme.txt", data=b"hello"),
            Record(name="p/model/huge", data=b"\x80\x02", nbytes=1 << 31, method=8),
            sd=SD,
        )
    )
    notes = {note.kind: note.values for note in found.notes}
    assert notes[NoteKind.PYTHON_INSIDE] == ("5 modules, a.m0, a.m1, a.m2 and 2 more",)
    assert NoteKind.NOT_LISTED in notes
    assert len(found.tensors) == 1
    assert any("5 modules" in one for one in judge(found).reasons)


def test_large_values_are_found_in_the_pickle_that_they_are_of() -> None:
    both = [stream(proto(), list_(text(letter * 40))) for letter in "ab"]
    found = container(packaged(a=both[0], b=both[1]), replace(DEFAULT_LIMITS, text_nbytes=20))
    assert found.data == both[0] + both[1]


# --- hostile ------------------------------------------------------------------------------------------------

REDUCED = tuple_(text("reduce_package"), b"K\x00", name("os.system"), tuple_(text("id"))) + op("BINPERSID")
HOSTILE: dict[str, tuple[bytes, str, NoteKind | None]] = {
    "payload in a pickle": (packaged(sd=SD, evil=stream(proto(), evil())), "dangerous", None),
    "payload in a pickle of another name": (
        packaged(Record(name="p/model/data", data=stream(proto(), evil())), sd=SD),
        "dangerous",
        None,
    ),
    "payload as a function of a persistent id": (
        packaged(sd=SD, evil=stream(proto(), REDUCED)),
        "dangerous",
        None,
    ),
    "payload before the pickle breaks off": (
        packaged(sd=SD, evil=proto() + evil()),
        "dangerous",
        NoteKind.BROKEN_OFF,
    ),
    "payload in a second record of the name": (
        packaged(Record(name="p/model/SD.pkl", data=stream(proto(), evil())), sd=SD),
        "dangerous",
        NoteKind.SHARED_NAME,
    ),
    "a pickle that is none": (packaged(sd=b"hello"), "runs-code", NoteKind.BROKEN_OFF),
    "an encrypted pickle": (
        packaged(Record(name="p/model/x.pkl", data=SD, flags=1), sd=SD),
        "runs-code",
        NoteKind.BROKEN_OFF,
    ),
    "a pickle that is packed and longer than it says": (
        packaged(Record(name="p/model/x.pkl", data=SD + b"x" * 9, nbytes=len(SD), method=8), sd=SD),
        "runs-code",
        NoteKind.DAMAGED_RECORD,
    ),
    "a storage that is missing": (
        packaged(sd=stream(proto(), tensor(storage(7, numel=4), 4))),
        "runs-code",
        NoteKind.LOST_BYTES,
    ),
    "a header that is overwritten": (
        packaged(Record(name="p/model/x", data=SD, local_signature=b"XXXX"), sd=SD),
        "runs-code",
        None,
    ),
    "texts that are too long": (
        packaged(Record(name="p/.data/python_version", data=b"3" * (1 << 17)), sd=SD),
        "runs-code",
        None,
    ),
    "no pickle at all": (packaged(), "runs-code", None),
}


def test_hostile_files_are_never_judged_better_than_they_are() -> None:
    assert judged_otherwise(HOSTILE, opened) == {}


def test_there_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_MOST_PICKLES", 1)
    with pytest.raises(CheckpointError, match="more than 1 pickles"):
        opened(packaged(a=SD, b=SD))


def test_archive_that_is_cut_off_keeps_what_is_before_the_cut() -> None:
    data = packaged(Record(name="p/model/z", data=b"x" * 99), sd=SD)
    found = opened(data[: data.index(b"p/model/z")])
    assert [row.path for row in found.tensors] == ["model~1sd.pkl/w"]
    assert NoteKind.NO_DIRECTORY in kinds(found)
    with pytest.raises(CheckpointError, match="cut off"):
        opened(data[: data.index(b"p/model/sd") + 40])

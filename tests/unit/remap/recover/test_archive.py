from __future__ import annotations

import gzip
import io
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import first_storage_ids
from inspector.containers.extents import read_extents, sum_extents
from inspector.containers.source import open_source
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import PersistentId
from inspector.progress import Progress
from inspector.remap.pickle_writer import StorageName
from inspector.remap.recover import Archive, Numbering
from tests.builders import archives, legacy
from tests.builders.archives import archive
from tests.builders.pickles import legacy_storage, read, state_dict, storage, tensor

SIZES = {"7": 40, "3": 300, "5": 0}
STORAGES = {key: random.Random(key).randbytes(4 * numel) for key, numel in SIZES.items()}
PICKLE = state_dict(**{f"t{key}": tensor(storage(key, numel=numel), numel) for key, numel in SIZES.items()})
WHOLE = archive(PICKLE, STORAGES)
OLD = legacy.checkpoint(
    state_dict(
        **{f"t{key}": tensor(legacy_storage(key, numel=numel), numel) for key, numel in SIZES.items()}
    ),
    *sorted((key, SIZES[key], data) for key, data in STORAGES.items()),
)
Write = Callable[..., zipfile.ZipFile]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the storages of a file, in this order, into a new archive."""

    def write(data: bytes, *keys: str, changed: bytes | None = None) -> zipfile.ZipFile:
        path, out = tmp_path / "in.pt", tmp_path / "out.pt"
        path.write_bytes(data)
        with open_source(str(path)) as source, out.open("wb") as target:
            extents = read_extents(source, DEFAULT_LIMITS, Progress())
            crcs = sum_extents(source, extents.whole, Progress()).crcs
            if changed is not None:
                path.write_bytes(changed)
            progress = Progress()
            Archive(source=source, extents=extents, crcs=crcs, progress=progress).write(
                target.fileno(), b"the objects", keys
            )
            assert progress.done == progress.total == sum(4 * SIZES[key] for key in keys)
        return zipfile.ZipFile(io.BytesIO(out.read_bytes()))

    return write


@pytest.mark.parametrize("data", [WHOLE, OLD])
def test_archive_is_torchs_own_layout(write: Write, data: bytes) -> None:
    made = write(data, "3", "7", "5")
    names = ["data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1", "data/2"]
    assert made.namelist() == [f"archive/{name}" for name in (*names, "version", ".data/serialization_id")]
    assert made.testzip() is None
    assert [made.read(f"archive/data/{number}") for number in range(3)] == [STORAGES[key] for key in "375"]
    assert made.read("archive/data.pkl") == b"the objects"
    assert made.read("archive/byteorder") == b"little"
    assert made.read("archive/version") == b"3\n"
    assert made.read("archive/.data/serialization_id").isdigit()
    assert len(made.read("archive/.data/serialization_id")) == 40


def test_archive_equals_what_the_layout_is_tested_with(write: Write) -> None:
    """Against the builder that stands for torch: the same records in the same bytes."""
    made = write(WHOLE, "7", "3", "5").fp.getvalue()
    again = archive(b"the objects", {str(number): STORAGES[key] for number, key in enumerate("735")})
    number = b"%040d" % zlib.crc32(b"the objects")
    assert len(made) == len(again)
    assert made.count(number) == 1
    start = made.index(number)
    assert made[:start] == again[:start]


def test_packed_file_is_read_forwards_once(write: Write) -> None:
    """Its storages stand in the order of the file, and no promise is made that they do otherwise."""
    made = write(gzip.compress(OLD), "7", "3", "5")
    names = [name.removeprefix("archive/") for name in made.namelist()]
    assert ".format_version" not in names
    assert [name for name in names if name.startswith("data/")] == ["data/2", "data/1", "data/0"]
    assert made.read("archive/data/0") == STORAGES["7"]


@pytest.mark.parametrize(("told", "kept"), [(b"big", b"big"), (b"little", b"little"), (b"odd", b"little")])
def test_byte_order_is_kept(write: Write, monkeypatch: pytest.MonkeyPatch, told: bytes, kept: bytes) -> None:
    monkeypatch.setitem(archives.HEAD, "byteorder", told)
    assert write(archive(PICKLE, STORAGES), "3").read("archive/byteorder") == kept


def test_file_that_changed_between_check_and_copy_is_refused(write: Write) -> None:
    place = WHOLE.index(STORAGES["3"]) + 100
    with pytest.raises(ExportError, match="the file changed while it was read"):
        write(WHOLE, "7", "3", changed=WHOLE[:place] + b"?" + WHOLE[place + 1 :])


# ------------------------------------------------------------------------------------------- numbering


def nodes(*pushes: bytes) -> list[PersistentId]:
    return list(read(*pushes).persistent_ids)


def numbering(
    *pushes: bytes, whole: tuple[str, ...] = ("a", "b", "view")
) -> tuple[Numbering, list[PersistentId]]:
    class Container:
        storage_ids = first_storage_ids(nodes(*pushes), DEFAULT_LIMITS)

    return Numbering(Container, dict.fromkeys(whole, 1)), nodes(*pushes)


def test_storages_are_numbered_by_their_first_use() -> None:
    made, found = numbering(
        storage("b", location="cuda:0", numel=3), storage("a", "torch.ByteStorage"), storage("b", numel=99)
    )
    assert [made.name_storage(node) for node in found] == [
        StorageName(("torch", "FloatStorage"), "0", "cuda:0", 3),
        StorageName(("torch", "ByteStorage"), "1", "cpu", 2),
        StorageName(("torch", "FloatStorage"), "0", "cuda:0", 3),
    ]
    assert made.keys == ["b", "a"]
    assert made.move_view(None) is None


@pytest.mark.parametrize("cls", ["torch.storage.UntypedStorage", "torch.storage._UntypedStorage"])
def test_untyped_storages_have_todays_name(cls: str) -> None:
    made, (node,) = numbering(storage("a", cls, numel=8))
    assert made.name_storage(node) == StorageName(("torch.storage", "UntypedStorage"), "0", "cpu", 8)


def test_views_of_torch_0_become_storages_of_their_own() -> None:
    made, (node,) = numbering(legacy_storage("a", numel=10, view=("view", 4, 3)))
    assert made.name_storage(node) == StorageName(("torch", "FloatStorage"), "0", "cpu", 3)
    assert made.keys == ["view"]


def test_lost_storage_that_nobody_left_out_is_an_error() -> None:
    made, (node,) = numbering(storage("gone"))
    with pytest.raises(ExportError, match="nested so deeply") as caught:
        made.name_storage(node)
    assert caught.value.where == "storage 'gone'"


def test_other_persistent_ids_are_left_alone() -> None:
    made, _ = numbering(storage("a"))
    assert made.name_storage(PersistentId("module")) is None

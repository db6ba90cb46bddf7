"""Files damaged in every way: what is whole is saved byte for byte, nothing else is, and all is told."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    DamagedError,
    ExportError,
    TooLargeError,
)
from inspector.limits import Limits
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.remap import recover as module
from inspector.remap.recover import Recovery, recover
from tests.builders import legacy
from tests.builders.archives import archive, directory_of
from tests.builders.pickles import (
    NONE,
    call,
    dict_,
    legacy_storage,
    list_,
    number,
    op,
    proto,
    state_dict,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.corpus import CORPUS, cases

SIZES = {"0": 40, "1": 3000, "2": 0, "3": 500}
STORAGES = {key: random.Random(key).randbytes(4 * numel) for key, numel in SIZES.items()}


def objects(push: Callable[..., bytes]) -> bytes:
    return state_dict(**{f"t{key}": tensor(push(key, numel=numel), numel) for key, numel in SIZES.items()})


ZIP = archive(objects(storage), STORAGES)
OLD = legacy.checkpoint(objects(legacy_storage), *((key, SIZES[key], data) for key, data in STORAGES.items()))


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Recovery]:
    """Write these bytes as a file and recover it; the file must stay as it is."""

    def save(data: bytes, **options: object) -> Recovery:
        path = tmp_path / "damaged.pt"
        path.write_bytes(data)
        before = path.stat().st_mtime_ns
        try:
            return recover(str(path), tmp_path / "out.pt", **options)
        finally:
            assert path.read_bytes() == data
            assert path.stat().st_mtime_ns == before

    return save


Save = Callable[..., Recovery]


def contents(done: Recovery) -> dict[str, bytes]:
    """The bytes of each tensor in the new file."""
    copy = open_checkpoint(str(done.destination))
    assert copy.notes == ()
    data = done.destination.read_bytes()
    places = {row.key: (row.file_offset or 0, row.nbytes) for row in copy.storages}
    found = {}
    for row in copy.tensors:
        offset, nbytes = places[row.storage or ""]
        found[row.path] = data[offset : offset + nbytes]
    return found


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def expected(*keys: str) -> dict[str, bytes]:
    return {f"t{key}": STORAGES[key] for key in keys}


@pytest.mark.parametrize("data", [ZIP, OLD, gzip.compress(OLD), ZIP[: directory_of(ZIP)]])
def test_whole_file_loses_nothing(save: Save, data: bytes) -> None:
    done = save(data)
    assert contents(done) == expected("0", "1", "2", "3")
    assert (done.tensors, done.storages, done.storage_nbytes) == (4, 4, 14_160)
    assert (done.lost, done.lost_nbytes) == ((), 0)
    assert done.nbytes == done.destination.stat().st_size
    assert done.unchecked == (0 if data[:2] == b"PK" else 3)


@pytest.mark.parametrize(
    ("place", "more", "kept"),
    [
        ("0", 159, "2"),
        ("0", 160, "02"),
        ("1", 0, "02"),
        ("1", 11_999, "02"),
        ("1", 12_000, "012"),
        ("3", 1, "012"),
    ],
)
@pytest.mark.parametrize(("whole", "checksum_nbytes"), [(ZIP, 16), (OLD, 0)], ids=["zip", "legacy"])
def test_file_that_was_cut_off(
    save: Save, whole: bytes, checksum_nbytes: int, place: str, more: int, kept: str
) -> None:
    more += checksum_nbytes * (more >= len(STORAGES[place]))
    done = save(whole[: whole.index(STORAGES[place]) + more])
    assert contents(done) == expected(*kept)
    assert [row.path for row in done.lost] == [f"t{key}" for key in SIZES if key not in kept]
    assert done.lost_nbytes == sum(4 * SIZES[key] for key in SIZES if key not in kept)
    assert all(row.why and row.nbytes and row.dtype == "float32" for row in done.lost)


def test_bytes_without_their_checksum_may_be_others(save: Save) -> None:
    start = ZIP.index(STORAGES["3"])
    for more in range(16):
        done = save(ZIP[: start + len(STORAGES["3"]) + more], overwrite=True)
        assert contents(done) == expected("0", "1", "2")
        assert done.lost[0].why.startswith("the file ends before its checksum")


def test_changed_byte_is_found_by_its_checksum(save: Save) -> None:
    place = ZIP.index(STORAGES["1"]) + 5000
    done = save(ZIP[:place] + bytes([ZIP[place] ^ 1]) + ZIP[place + 1 :])
    assert contents(done) == expected("0", "2", "3")
    assert done.lost[0].why == "its checksum is wrong: bytes of it were changed or lost"


def test_hole_of_zeros_in_the_middle(save: Save) -> None:
    first, last = ZIP.index(STORAGES["0"]) + 100, ZIP.index(STORAGES["1"]) + 10
    for whole in (ZIP, ZIP[: directory_of(ZIP)]):
        done = save(whole[:first] + bytes(last - first) + whole[last:], overwrite=True)
        assert contents(done) == expected("2", "3")


def test_zeros_up_to_the_length_of_the_whole(save: Save) -> None:
    for whole in (ZIP, OLD):
        cut = whole.index(STORAGES["1"]) + 40
        done = save(whole[:cut] + bytes(len(whole) - cut), overwrite=True)
        assert set(contents(done)) <= {"t0", "t1", "t2"}
        assert contents(done)["t0"] == STORAGES["0"]
        assert "t3" in [row.path for row in done.lost]
    # Of a legacy file nobody can tell that the end of a tensor is zeros; the next count shows the hole.


def test_record_that_is_missing(save: Save) -> None:
    storages = {key: data for key, data in STORAGES.items() if key != "1"}
    done = save(archive(objects(storage), storages))
    assert contents(done) == expected("0", "2", "3")
    (row,) = done.lost
    assert (row.path, row.why) == ("t1", "its bytes are not in the file")


def test_all_other_values_are_kept(save: Save) -> None:
    whole, gone = tensor(storage("0", numel=40), 40), tensor(storage("gone"), 2)
    tenth = op("BINFLOAT", b"\x3f\xb9\x99\x99\x99\x99\x99\x9a")
    value = dict_(
        (text("model"), dict_((text("w"), whole), (text("b"), gone))),
        (text("list"), list_(gone, number(7))),
        (text("tuple"), tuple_(number(1), gone)),
        (text("config"), dict_((text("lr"), tenth), (number(3), text("x")))),
        (text("net"), call("my.Net", text("arg")) + dict_((text("p"), whole)) + op("BUILD")),
    )
    done = save(archive(stream(proto(), value), {"0": STORAGES["0"]}))
    copy = open_checkpoint(str(done.destination))
    assert [row.path for row in copy.tensors] == ["model/w", "net/.p"]
    assert len(copy.storages) == 1
    assert {(row.path, row.text) for row in copy.values} >= {
        ("list", "[None, 7]"),
        ("tuple", "(1, None)"),
        ("config/lr", "0.1"),
        ("config/3", "x"),
    }
    assert [use.name for use in copy.globals if use.name.startswith("my.")] == ["my.Net"]
    assert [row.path for row in done.lost] == ["model/b", "list/0", "tuple/1"]


@pytest.mark.wide
def test_every_genuine_file_survives_whole(tmp_path: Path) -> None:
    """All containers and generations: the same tensors, nothing lost."""
    counted = 0
    for case in cases():
        if case.container not in {"zip", "legacy", "gzip(legacy)"}:
            continue
        before = open_checkpoint(str(case.path))
        bad = [row.path for row in before.tensors if row.problem and row.part_of is None]
        done = recover(str(case.path), tmp_path / "out.pt", overwrite=True)
        assert [row.path for row in done.lost] == bad, case.name
        counted += 1
    assert counted > 100


# ------------------------------------------------------------------------------------------- refusals


def test_nothing_is_whole(save: Save, tmp_path: Path) -> None:
    data = archive(state_dict(a=tensor(storage("0", numel=40), 40)), {"0": STORAGES["0"]})
    with pytest.raises(DamagedError) as caught:
        save(data[: data.index(STORAGES["0"]) + 9])
    assert caught.value.what == "none of the file's 1 tensor is whole"
    assert caught.value.where == "a: the file ends within it, after 9 of 160 bytes"
    assert not (tmp_path / "out.pt").exists()


def test_file_without_tensors_is_no_loss(save: Save) -> None:
    done = save(archive(stream(proto(), dict_((text("a"), number(1)))), {}))
    assert (done.tensors, done.lost) == (0, ())


def test_what_is_no_checkpoint_is_said(save: Save) -> None:
    with pytest.raises(ContainerError, match="a web page"):
        save(b"<!doctype html><title>Login</title>")


def test_objects_that_readers_differ_about_are_not_written_again(save: Save, tmp_path: Path) -> None:
    """Two readers, two objects: whichever was written, it would be taken for the file's own."""
    odd = stream(proto(4), op("EXT1", b"\1"))
    with pytest.raises(DamagedError, match="programs read differently") as caught:
        save(archive(odd, {}))
    assert "extension code" in (caught.value.where or "")
    assert names(tmp_path) == ["damaged.pt"]


def test_destination_is_not_replaced_unless_asked(save: Save, tmp_path: Path) -> None:
    out = tmp_path / "out.pt"
    out.write_bytes(b"mine")
    with pytest.raises(ExportError, match="the file already exists"):
        save(ZIP)
    assert out.read_bytes() == b"mine"
    assert save(ZIP, overwrite=True).destination.read_bytes()[:2] == b"PK"
    with pytest.raises(ExportError, match="replace the file itself"):
        recover(str(tmp_path / "damaged.pt"), tmp_path / "damaged.pt", overwrite=True)


@pytest.mark.parametrize("asked", range(1, 40, 4))
def test_cancelling_leaves_nothing(save: Save, tmp_path: Path, asked: int) -> None:
    class Impatient(Progress):
        left = asked

        def advance(self, units: int = 0) -> None:
            self.left -= 1
            if self.left == 0:
                self.cancel()
            super().advance(units)

    progress = Impatient()
    try:
        save(ZIP, progress=progress)
    except CancelledError:
        assert names(tmp_path) == ["damaged.pt"]
    else:
        assert progress.left > 0


def test_file_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.pt"
    path.write_bytes(ZIP)
    real = module.Archive.write

    def write(self: object, *args: object) -> None:
        real(self, *args)
        os.utime(path, ns=(1, 1))

    monkeypatch.setattr(module.Archive, "write", write)
    with pytest.raises(ExportError, match="the file changed while it was read"):
        recover(str(path), tmp_path / "out.pt")
    assert names(tmp_path) == ["in.pt"]


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda pickle: b"\x80\2}.", "does not hold what it should"),
        (lambda pickle: pickle[:-9], "cannot be read"),
        (lambda pickle: pickle.replace(b"cpu", b"mps"), "does not hold what it should"),
    ],
)
def test_new_file_is_opened_and_compared(
    save: Save,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    break_it: Callable[[bytes], bytes],
    message: str,
) -> None:
    real = module.write_pickle
    monkeypatch.setattr(module, "write_pickle", lambda root, how: break_it(real(root, how)))
    with pytest.raises(ExportError, match=message):
        save(ZIP)
    assert names(tmp_path) == ["damaged.pt"]


def test_cancelling_while_the_new_file_is_compared(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        raise CancelledError

    monkeypatch.setattr(module, "read_container", opened)
    with pytest.raises(CancelledError):
        save(ZIP)


@pytest.mark.wide
def test_every_cut_of_every_container_ends_in_a_file_or_an_error(tmp_path: Path) -> None:
    """And never in one that holds a tensor that is not byte for byte what it was."""
    path, out = tmp_path / "cut.pt", tmp_path / "out.pt"
    chance, saved = random.Random(5), 0
    for whole in (ZIP, OLD, gzip.compress(OLD)):
        for _ in range(60):
            path.write_bytes(whole[: chance.randrange(len(whole))])
            try:
                done = recover(str(path), out, overwrite=True)
            except CheckpointError:
                continue
            saved += 1
            assert contents(done).items() <= expected("0", "1", "2", "3").items()
            assert len(contents(done)) + len(done.lost) == 4
    assert saved > 30


@pytest.mark.parametrize("inflated_nbytes", [500, len(OLD) - 1700, len(OLD) - 3, len(OLD) - 1])
def test_what_is_not_read_of_a_compressed_file_is_not_lost(
    save: Save, tmp_path: Path, inflated_nbytes
) -> None:
    """A bound of ours is no end of the file: nothing is dropped, nothing is called damaged."""
    with pytest.raises(TooLargeError, match=r"once unpacked, and no more are read.*unpack it with gunzip"):
        save(gzip.compress(OLD), limits=Limits(inflated_nbytes=inflated_nbytes))
    assert not (tmp_path / "out.pt").exists()
    whole = save(gzip.compress(OLD), limits=Limits(inflated_nbytes=len(OLD)))
    assert (whole.tensors, whole.lost) == (4, ())


def test_byte_strings_of_python_2_are_recovered_as_they_were(save: Save) -> None:
    root = dict_(
        (text("t"), tensor(storage("0", numel=40), 40)), (op("SHORT_BINSTRING", b"\x04caf\xe9"), NONE)
    )
    done = save(archive(stream(proto(), root), {"0": STORAGES["0"]}))
    assert done.lost == ()
    assert b"U\x04caf\xe9" in done.destination.read_bytes()


def test_a_program_becomes_a_state_dict(tmp_path: Path) -> None:
    done = recover(str(CORPUS / "torchscript/conv.pt"), tmp_path / "out.pt")
    found = {row.path for row in open_checkpoint(str(done.destination)).tensors}
    assert found == {"0.weight", "0.bias"}


def test_what_a_cut_pickle_lost_is_unknown(tmp_path: Path) -> None:
    data = (CORPUS / "plain_pickle/state_p4.pkl").read_bytes()
    for end, is_cut in ((len(data), False), (len(data) - 1, True)):
        path = tmp_path / f"{end}.pkl"
        path.write_bytes(data[:end])
        assert recover(str(path), tmp_path / f"{end}.pt").is_cut == is_cut

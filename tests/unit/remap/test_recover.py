from __future__ import annotations

import gzip
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import Container, first_storage_ids
from inspector.containers.programs import Program
from inspector.errors import (
    CancelledError,
    CheckpointError,
    DamagedError,
    ExportError,
    TooLargeError,
)
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call, Dict, PersistentId, Value
from inspector.progress import Progress
from inspector.remap import recover as module
from inspector.remap.recover import Lost, Numbering, Recovery, Rows, drop_lost, list_rows, recover
from tests.builders import archives, legacy
from tests.builders.archives import archive, directory_of
from tests.builders.pickles import (
    MARK,
    NONE,
    call,
    dict_,
    legacy_storage,
    list_,
    name,
    number,
    op,
    plain,
    proto,
    read,
    state_dict,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.corpus import CORPUS, cases
from tests.sweep import table

GONE = tensor(storage("gone", numel=2), 2)
HERE = tensor(storage("here", numel=2), 2)
WHY = "its bytes are not in the file"


def container(*parts: bytes) -> Container:
    read = read_pickle(stream(proto(), *parts))
    return Container(
        path="x",
        format="zip",
        file_nbytes=0,
        root=read.root,
        stream=read,
        programs=(Program("data.pkl", "object", read),),
        storage_ids=first_storage_ids(read.persistent_ids, DEFAULT_LIMITS),
        stored={},
    )


def rows_of(made: Container) -> Rows:
    return list_rows(made, {"gone": WHY}, DEFAULT_LIMITS, Progress())


def left(*parts: bytes) -> Value:
    """What is left of an object, as plain data; a tensor that is whole shows as 'here'."""
    made = container(*parts)
    rows = rows_of(made)
    root = drop_lost(made.stream.root, rows.lost_values, Progress())
    return shown(root)


def shown(value: Value) -> Value:
    if isinstance(value, Call):
        name = getattr(value.func, "dotted", "?")
        if name.startswith("torch._utils._rebuild_tensor"):
            return value.args[0].pid[2]
        parts = [value.args, value.kwargs, value.state, value.items, value.pairs]
        return (name, *(shown(part) for part in parts if part))
    if isinstance(value, Dict):
        return {shown(key): shown(item) for key, item in value.pairs}
    if isinstance(value, list | tuple):
        return type(value)(map(shown, value))
    return plain(value)


def d(**items: bytes) -> bytes:
    return dict_(*((text(key), value) for key, value in items.items()))


@table(
    ("value", "expected"),
    [
        (d(a=HERE, b=GONE, c=number(1)), {"a": "here", "c": 1}),
        (d(a=d(x=GONE), b=HERE), {"a": {}, "b": "here"}),
        (list_(HERE, GONE, number(1)), ["here", None, 1]),
        (tuple_(HERE, GONE), ("here", None)),
        (d(a=tuple_(number(1), tuple_(GONE, HERE))), {"a": (1, (None, "here"))}),
        (d(a=list_(tuple_(GONE)), b=HERE), {"a": [(None,)], "b": "here"}),
        (d(a=storage("gone"), b=HERE), {"b": "here"}),
        (
            call("collections.OrderedDict")
            + text("k")
            + GONE
            + op("SETITEM")
            + text("l")
            + HERE
            + op("SETITEM"),
            ("collections.OrderedDict", [("l", "here")]),
        ),
        # Python 2: a list of lists
        (
            call("collections.OrderedDict", list_(list_(text("k"), GONE), list_(text("l"), HERE))),
            ("collections.OrderedDict", [("l", "here")]),
        ),
        (call("m.Point", HERE, GONE), ("m.Point", ("here", None))),
        (call("m.Net") + d(weight=GONE, bias=HERE) + op("BUILD"), ("m.Net", {"bias": "here"})),
        (call("m.Net") + tuple_(NONE, d(w=GONE)) + op("BUILD"), ("m.Net", (None, {}))),
        (
            call("collections.deque") + MARK + GONE + HERE + op("APPENDS"),
            ("collections.deque", [None, "here"]),
        ),
        (
            name("m.C") + tuple_() + d(kw=GONE) + op("NEWOBJ_EX"),
            ("m.C", {}),
        ),
        # a composite is lost with any of its parts
        (
            d(
                p=call(
                    "torch._utils._rebuild_parameter", GONE, op("NEWTRUE"), call("collections.OrderedDict")
                ),
                q=HERE,
            ),
            {"q": "here"},
        ),
        (
            d(
                s=call(
                    "torch._utils._rebuild_sparse_tensor",
                    call("torch.serialization._get_layout", text("torch.sparse_coo")),
                    tuple_(HERE, GONE, call("torch.Size", tuple_(number(2)))),
                ),
                q=HERE,
            ),
            {"q": "here"},
        ),
        (
            op("EMPTY_SET") + MARK + number(1) + tuple_(number(2), GONE) + op("ADDITEMS"),
            ("set", [1, (2, None)]),
        ),
    ],
)
def test_what_is_left(value: bytes, expected: Value) -> None:
    assert left(value) == expected


def test_rows_are_sorted_and_say_why() -> None:
    sparse = call(
        "torch._utils._rebuild_sparse_tensor",
        call("torch.serialization._get_layout", text("torch.sparse_coo")),
        tuple_(HERE, GONE, call("torch.Size", tuple_(number(2)))),
    )
    odd = tensor(storage("here", numel=2), 3)
    rows = rows_of(container(d(a=HERE, s=sparse, b=GONE, odd=odd, c=HERE)))
    assert [tensor.path for tensor in rows.kept] == ["a", "c"]
    assert [row.path for row in rows.lost] == ["s", "b", "odd"]
    assert rows.lost[0].why == WHY
    assert rows.lost[1] == Lost("b", WHY, "cpu", "float32", (2,), 8)
    assert "storage" in rows.lost[2].why


def test_what_is_shared_stays_shared() -> None:
    made = container(op("EMPTY_DICT"), op("BINPUT", b"\1"), text("a"), list_(GONE), op("BINPUT", b"\2"),
                     op("SETITEM"), text("b"), op("BINGET", b"\2"), op("SETITEM"), text("me"),
                     op("BINGET", b"\1"), op("SETITEM"))  # fmt: skip
    root = drop_lost(made.stream.root, rows_of(made).lost_values, Progress())
    pairs = dict(root.pairs)
    assert pairs["a"] is pairs["b"]
    assert pairs["a"] == [None]
    assert pairs["me"] is root


@pytest.mark.wide
def test_deep_and_doubled_tuples_are_copied_once() -> None:
    # Deeper than anything is listed, so the row that is lost is told by hand.
    deep = container(op("EMPTY_LIST"), op("TUPLE1") * 50_000)
    root = drop_lost(deep.stream.root, frozenset({1}), Progress())
    for _ in range(50_000):
        (root,) = root
    assert root == []
    doubled = op("EMPTY_TUPLE") + (op("DUP") + op("TUPLE2")) * 100
    made = container(list_(doubled, GONE))
    root = drop_lost(made.stream.root, rows_of(made).lost_values, Progress())
    assert root[1] is None  # and it ends at all: written out, the tuple has 2 to the 100 parts


@pytest.mark.wide
def test_cancellation() -> None:
    made = container(op("EMPTY_LIST"), MARK, GONE, op("EMPTY_LIST") * 20_000, op("APPENDS"))
    lost = rows_of(made).lost_values
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        drop_lost(made.stream.root, lost, progress)
    with pytest.raises(CancelledError):
        list_rows(made, {}, DEFAULT_LIMITS, progress)


# ------------------------------------------------------------------------------------------- numbering


def nodes(*pushes: bytes) -> list[PersistentId]:
    return list(read(*pushes).persistent_ids)


def numbering(
    *pushes: bytes, whole: tuple[str, ...] = ("a", "b", "view")
) -> tuple[Numbering, list[PersistentId]]:
    class Container:
        storage_ids = first_storage_ids(nodes(*pushes), DEFAULT_LIMITS)

    return Numbering(Container, dict.fromkeys(whole, 1)), nodes(*pushes)


def test_lost_storage_that_nobody_left_out_is_an_error() -> None:
    made, (node,) = numbering(storage("gone"))
    with pytest.raises(ExportError, match="nested so deeply") as caught:
        made.name_storage(node)
    assert caught.value.where == "storage 'gone'"


def test_other_persistent_ids_are_left_alone() -> None:
    made, _ = numbering(storage("a"))
    assert made.name_storage(PersistentId("module")) is None


SIZES_2 = {"0": 40, "1": 3000, "2": 0, "3": 500}
STORAGES_2 = {key: random.Random(key).randbytes(4 * numel) for key, numel in SIZES_2.items()}


def objects(push: Callable[..., bytes]) -> bytes:
    return state_dict(**{f"t{key}": tensor(push(key, numel=numel), numel) for key, numel in SIZES_2.items()})


ZIP = archive(objects(storage), STORAGES_2)
OLD_2 = legacy.checkpoint(
    objects(legacy_storage), *((key, SIZES_2[key], data) for key, data in STORAGES_2.items())
)


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
    return {f"t{key}": STORAGES_2[key] for key in keys}


@pytest.mark.parametrize("data", [ZIP, OLD_2, gzip.compress(OLD_2), ZIP[: directory_of(ZIP)]])
def test_whole_file_loses_nothing(save: Save, data: bytes) -> None:
    done = save(data)
    assert contents(done) == expected("0", "1", "2", "3")
    assert (done.tensors, done.storages, done.storage_nbytes) == (4, 4, 14_160)
    assert (done.lost, done.lost_nbytes) == ((), 0)
    assert done.nbytes == done.destination.stat().st_size
    assert done.unchecked == (0 if data[:2] == b"PK" else 3)


def test_packed_file_is_read_forwards_once(save: Save) -> None:
    """Its storages stand in the order of the file, and no promise is made that they do otherwise."""
    made = zipfile.ZipFile(save(gzip.compress(OLD_2)).destination).namelist()
    assert "archive/.format_version" not in made
    assert made.index("archive/data/3") > made.index("archive/data/0")


@table(("told", "kept"), [(b"big", b"big"), (b"little", b"little"), (b"odd", b"little")])
def test_byte_order_is_kept(save: Save, monkeypatch: pytest.MonkeyPatch, told: bytes, kept: bytes) -> None:
    monkeypatch.setitem(archives.HEAD, "byteorder", told)
    made = zipfile.ZipFile(save(archive(objects(storage), STORAGES_2), overwrite=True).destination)
    assert made.read("archive/byteorder") == kept


@table("name", ["sum_extents", "_write_archive"])
def test_file_that_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, place, real = tmp_path / "in.pt", ZIP.index(STORAGES_2["3"]) + 100, getattr(module, name)
    path.write_bytes(ZIP)

    def changing(*given: object, **named: object) -> object:
        found = real(*given, **named)
        before = path.stat()
        path.write_bytes(ZIP[:place] + b"?" + ZIP[place + 1 :])
        # Between the sums and the copy, what is copied tells; behind it, the time of the file.
        is_late = name == "_write_archive"
        os.utime(path, ns=(1, 1) if is_late else (before.st_atime_ns, before.st_mtime_ns))
        return found

    monkeypatch.setattr(module, name, changing)
    with pytest.raises(ExportError, match="the file changed while it was read"):
        recover(str(path), tmp_path / "out.pt")
    assert names(tmp_path) == ["in.pt"]


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
@pytest.mark.parametrize(("whole", "checksum_nbytes"), [(ZIP, 16), (OLD_2, 0)], ids=["zip", "legacy"])
def test_file_that_was_cut_off(
    save: Save, whole: bytes, checksum_nbytes: int, place: str, more: int, kept: str
) -> None:
    more += checksum_nbytes * (more >= len(STORAGES_2[place]))
    done = save(whole[: whole.index(STORAGES_2[place]) + more])
    assert contents(done) == expected(*kept)
    assert [row.path for row in done.lost] == [f"t{key}" for key in SIZES_2 if key not in kept]
    assert done.lost_nbytes == sum(4 * SIZES_2[key] for key in SIZES_2 if key not in kept)
    assert all(row.why and row.nbytes and row.dtype == "float32" for row in done.lost)


def test_bytes_without_their_checksum_may_be_others(save: Save) -> None:
    start = ZIP.index(STORAGES_2["3"])
    for more in range(16):
        done = save(ZIP[: start + len(STORAGES_2["3"]) + more], overwrite=True)
        assert contents(done) == expected("0", "1", "2")
        assert done.lost[0].why.startswith("the file ends before its checksum")


def test_changed_byte_is_found_by_its_checksum(save: Save) -> None:
    place = ZIP.index(STORAGES_2["1"]) + 5000
    done = save(ZIP[:place] + bytes([ZIP[place] ^ 1]) + ZIP[place + 1 :])
    assert contents(done) == expected("0", "2", "3")
    assert done.lost[0].why == "its checksum is wrong: bytes of it were changed or lost"


def test_hole_of_zeros_in_the_middle(save: Save) -> None:
    first, last = ZIP.index(STORAGES_2["0"]) + 100, ZIP.index(STORAGES_2["1"]) + 10
    for whole in (ZIP, ZIP[: directory_of(ZIP)]):
        done = save(whole[:first] + bytes(last - first) + whole[last:], overwrite=True)
        assert contents(done) == expected("2", "3")


def test_zeros_up_to_the_length_of_the_whole(save: Save) -> None:
    for whole in (ZIP, OLD_2):
        cut = whole.index(STORAGES_2["1"]) + 40
        done = save(whole[:cut] + bytes(len(whole) - cut), overwrite=True)
        assert set(contents(done)) <= {"t0", "t1", "t2"}
        assert contents(done)["t0"] == STORAGES_2["0"]
        assert "t3" in [row.path for row in done.lost]
    # Of a legacy file nobody can tell that the end of a tensor is zeros; the next count shows the hole.


def test_record_that_is_missing(save: Save) -> None:
    storages = {key: data for key, data in STORAGES_2.items() if key != "1"}
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
    done = save(archive(stream(proto(), value), {"0": STORAGES_2["0"]}))
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
    data = archive(state_dict(a=tensor(storage("0", numel=40), 40)), {"0": STORAGES_2["0"]})
    with pytest.raises(DamagedError) as caught:
        save(data[: data.index(STORAGES_2["0"]) + 9])
    assert caught.value.what == "none of the file's 1 tensor is whole"
    assert caught.value.where == "a: the file ends within it, after 9 of 160 bytes"
    assert not (tmp_path / "out.pt").exists()


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
    for whole in (ZIP, OLD_2, gzip.compress(OLD_2)):
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


@pytest.mark.parametrize("inflated_nbytes", [500, len(OLD_2) - 1700, len(OLD_2) - 3, len(OLD_2) - 1])
def test_what_is_not_read_of_a_compressed_file_is_not_lost(
    save: Save, tmp_path: Path, inflated_nbytes
) -> None:
    """A bound of ours is no end of the file: nothing is dropped, nothing is called damaged."""
    with pytest.raises(TooLargeError, match=r"once unpacked, and no more are read.*unpack it with gunzip"):
        save(gzip.compress(OLD_2), limits=Limits(inflated_nbytes=inflated_nbytes))
    assert not (tmp_path / "out.pt").exists()
    whole = save(gzip.compress(OLD_2), limits=Limits(inflated_nbytes=len(OLD_2)))
    assert (whole.tensors, whole.lost) == (4, ())


def test_byte_strings_of_python_2_are_recovered_as_they_were(save: Save) -> None:
    root = dict_(
        (text("t"), tensor(storage("0", numel=40), 40)), (op("SHORT_BINSTRING", b"\x04caf\xe9"), NONE)
    )
    done = save(archive(stream(proto(), root), {"0": STORAGES_2["0"]}))
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

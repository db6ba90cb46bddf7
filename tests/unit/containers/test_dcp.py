from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.dcp import VALUES, Values, find_row, read_dcp, read_metadata_stream
from inspector.containers.dcp_metadata import (
    OWN_NAMES,
    Nesting,
    TensorEntry,
    is_metadata,
    parse_metadata,
)
from inspector.containers.folder import Folder
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.containers.programs import Programs, count_globals
from inspector.containers.source import BytesSource, Source
from inspector.containers.storage_reader import StorageReader
from inspector.errors import (
    CancelledError,
    CheckpointError,
    DamagedError,
    NotACheckpointError,
    PickleError,
    TooLargeError,
)
from inspector.limits import Limits
from inspector.model.build import open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call, Dict, PersistentId, StoredTensor, Value
from inspector.progress import Progress
from inspector.safety.unread import judge_unread
from inspector.safety.verdict import judge
from tests.builders.dcp import (
    METADATA,
    Saved,
    floats,
    index_of,
    metadata,
    place_of,
    saved_tensor,
    saved_value,
    saved_zip,
    size,
    tensor_entry,
    two_ranks,
)
from tests.builders.pickles import (
    NONE,
    call,
    dict_,
    list_,
    name,
    new,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.corpus import cases
from tests.sweep import table
from tests.work import growth


class Files(Folder):
    """A folder that counts what is opened of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), str(folder))
        self.opened: list[str] = []

    def open(self, name: str) -> Source:
        self.opened.append(name)
        return super().open(name)


def read(folder: Path, **limits: int) -> Container:
    return read_dcp(Files(folder), Limits(**limits).started(), Progress())


def plain(value: Value) -> object:
    if isinstance(value, Dict):
        return {key: plain(item) for key, item in value.pairs}
    return (value.key, value.shape) if isinstance(value, StoredTensor) else value


def kinds(found: Container) -> dict[NoteKind, tuple[str, ...]]:
    return {note.kind: note.values for note in found.notes}


def test_everything_is_found(tmp_path: Path) -> None:
    found = read(two_ranks().write(tmp_path / "a"))
    assert found.format == "dcp"
    assert plain(found.root) == {
        "step": 7,
        "names": ["a", "b"],
        "model": {"rows": ("model.rows", (4, 3)), "columns": ("model.columns", (3, 4))},
        "scale": ("scale", ()),
        "empty": ("empty", (0, 2)),
    }
    assert {Path(part.path).name for part in found.parts} == {"__0_0.distcp", "__1_0.distcp"}
    assert found.file_nbytes == sum(file.stat().st_size for file in (tmp_path / "a").iterdir())
    assert found.versions == (("dcp", "1.0.0"),)
    assert {one.location for one in found.storage_ids.values()} == {NO_DEVICE}
    assert kinds(found) == {NoteKind.RANKS: ("2 ranks", "2 files")}


def test_tensors_are_read_whole(tmp_path: Path) -> None:
    found = read(two_ranks().write(tmp_path / "a"))
    reader = StorageReader(found, Files(tmp_path / "a"))
    for key, shape in (("model.rows", (4, 3)), ("model.columns", (3, 4))):
        assert reader.nbytes(key) == 48
        assert reader.read(key, 0, 48) == floats(shape, (shape[1], 1), 0)
        assert not reader.is_packed(key)
        with (tmp_path / "out").open("w+b", buffering=0) as out:
            reader.copy_to(key, 4, 48, out.fileno(), Progress())
            out.seek(0)
            assert out.read() == floats(shape, (shape[1], 1), 0)[4:]
    assert reader.read("empty", 0, 0) == b""
    assert reader.crc("scale") == 0


def test_files_are_opened_one_after_the_other(tmp_path: Path) -> None:
    files = Files(two_ranks().write(tmp_path / "a"))
    read_dcp(files, Limits().started(), Progress())
    assert len(files.opened) < 8


def test_values_bring_their_programs_and_tensors(tmp_path: Path) -> None:
    saved = Saved()
    for label in ("a", "b"):
        saved.value(label, call("os.system", storage("0", numel=0), tensor(storage("0", numel=0), 0)))
    saved.put("__0_0.distcp", saved_value(number(3)), "unlisted")
    files = Files(saved.write(tmp_path / "a"))
    found = read_dcp(files, Limits().started(), Progress())
    programs = files.programs
    assert [program.name for program in programs.all()] == [".metadata", "saved values"]
    assert count_globals(programs.all())["os.system"] == 2
    assert list(found.storage_ids) == ["a:0", "b:0"]


@pytest.mark.parametrize("name", ["meta.pt", "extra/meta.pt"])
def test_pickles_beside_the_parts_count(name: str, tmp_path: Path) -> None:
    """Lightning loads its `meta.pt` with the folder, which hides it from who walks folders."""
    folder = Saved().write(tmp_path / "a")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(stream(proto(), call("os.system", text("id"))))
    assert judge(open_checkpoint(str(folder))).verdict == "dangerous"


def test_missing_and_short_files_are_named(tmp_path: Path) -> None:
    folder = two_ranks().write(tmp_path / "a")
    (folder / "__0_0.distcp").unlink()
    (folder / "__7_0.distcp").write_bytes(b"")
    found = read(folder)
    assert kinds(found)[NoteKind.MISSING_PART] == ("1 file is", "__0_0.distcp")
    assert found.refusal.startswith("FileNotFoundError: ")
    assert kinds(found)[NoteKind.EXTRA_PART] == ("1 file is", "__7_0.distcp")
    assert sorted(set(found.storage_ids) - set(found.stored)) == ["model.columns", "model.rows"]
    assert isinstance(dict(found.root.pairs)["step"], PersistentId)  # type: ignore[union-attr]

    folder = two_ranks().write(tmp_path / "b")
    whole = (folder / "__1_0.distcp").read_bytes()
    (folder / "__1_0.distcp").write_bytes(whole[: len(whole) // 2])
    found = read(folder)
    assert kinds(found)[NoteKind.SHORT_PART] == ("1 file is", "__1_0.distcp")
    assert found.refusal.startswith("RuntimeError: PytorchStreamReader")
    assert "scale" not in found.stored


def test_names_that_lead_out_are_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(saved_value(number(3)))
    names = ["../secret", str(tmp_path / "secret"), "C:\\secret", "..\\secret", "sub/../../secret"]
    entries = {str(one): new(f"{METADATA}.BytesStorageMetadata") for one in range(len(names))}
    places = [(index_of(str(one), None), place_of(path, 0, 9)) for one, path in enumerate(names)]
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / ".metadata").write_bytes(metadata(entries, places, {}))
    found = read(folder)
    (listed,) = kinds(found)[NoteKind.PART_OUTSIDE]
    assert listed.startswith("../secret, ")
    assert listed.endswith(" and 2 more")
    assert found.parts == ()


def test_chunks_that_are_no_whole_are_named(tmp_path: Path) -> None:
    saved = Saved()
    saved.tensor("w", (4, 3), ("__0_0.distcp", (0, 0), (3, 3)), ("__1_0.distcp", (2, 0), (2, 3)))
    saved.tensor("b", (4,), ("__0_0.distcp", (0,), (3,)))
    found = read(saved.write(tmp_path / "a"))
    assert found.stored == {}
    (count, name, why) = kinds(found)[NoteKind.FAULTY_CHUNKS]
    assert (count, name) == ("2 tensors", "w")
    assert "overlap" in why


def test_chunks_without_a_place_are_lost(tmp_path: Path) -> None:
    saved = Saved(entries={"w": tensor_entry((4,), [((0,), (2,)), ((2,), (2,)), ((4,), (0,))])})
    saved.put("__0_0.distcp", b"x" * 99, "w", (0,))
    found = read(saved.write(tmp_path / "a"))
    assert found.stored == {}
    assert found.gathered["w"].chunks[1].part == -1


def test_compressed_parts_are_named(tmp_path: Path) -> None:
    entries = {"w": tensor_entry((2,), [((0,), (2,))]), "v": new(f"{METADATA}.BytesStorageMetadata")}
    places = [
        (index_of(flat, start), place_of("__0_0.distcp", 0, 4, ["stream.own/1"]))
        for flat, start in (("w", (0,)), ("v", None))
    ]
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / ".metadata").write_bytes(metadata(entries, places, {}))
    (folder / "__0_0.distcp").write_bytes(b"\x28\xb5\x2f\xfd")
    found = read(folder)
    assert kinds(found)[NoteKind.PACKED_PARTS] == ("stream.own/1",)
    assert isinstance(dict(found.root.pairs)["v"], PersistentId)  # type: ignore[union-attr]


@pytest.mark.parametrize("data", [b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\x28\xb5\x2f\xfd" + bytes(90)])
def test_compressed_values_that_are_damaged_are_unread(data: bytes, tmp_path: Path) -> None:
    pytest.importorskip("zstandard", reason="it inflates them")
    folder = tmp_path / "a"
    folder.mkdir()
    places = [(index_of("v", None), place_of("__0_0.distcp", 0, len(data), ["stream.zstd/1"]))]
    (folder / ".metadata").write_bytes(metadata({"v": new(f"{METADATA}.BytesStorageMetadata")}, places, {}))
    (folder / "__0_0.distcp").write_bytes(data)
    found = read(folder)
    assert NoteKind.UNREAD_VALUES in kinds(found)
    assert found.refusal


def test_values_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    saved = two_ranks()
    saved.put("__0_0.distcp", b"no zip", "odd")
    saved.entries["odd"] = new(f"{METADATA}.BytesStorageMetadata")
    saved.put("__0_0.distcp", saved_value(text("x"))[:-3] + b"PK?", "cut")
    saved.entries["cut"] = new(f"{METADATA}.BytesStorageMetadata")
    saved.entries["nowhere"] = new(f"{METADATA}.BytesStorageMetadata")
    found = read(saved.write(tmp_path / "a"))
    count, name, _ = kinds(found)[NoteKind.UNREAD_VALUES]
    assert (count, name) == ("2 values", "odd")
    assert isinstance(dict(found.root.pairs)["nowhere"], PersistentId)  # type: ignore[union-attr]


def test_safetensors_are_told_by_their_first_tensor(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    saved = Saved()
    saved.value("step", number(3))
    first = len(saved.files["__0_0.distcp"])
    saved.put("__0_0.distcp", len(header).to_bytes(8, "little") + header + bytes(8), "w", (0,))
    saved.entries["w"] = tensor_entry((2,), [((0,), (2,))])
    found = read(saved.write(tmp_path / "a"))
    assert found.gathered["w"].chunks[0][3:] == (
        first,
        len(saved.files["__0_0.distcp"]) - first,
        "safetensors",
    )
    assert plain(found.root) == {"step": 3, "w": ("w", (2,))}
    assert found.refusal.startswith("UnpicklingError")


def test_reading_is_bounded_and_can_be_cancelled(tmp_path: Path) -> None:
    folder = two_ranks().write(tmp_path / "a")
    with pytest.raises(TooLargeError, match="the metadata is longer"):
        read(folder, pickle_nbytes=10)
    (folder / ".metadata").write_bytes(b"N.")
    with pytest.raises(DamagedError):
        read(folder)
    saved = Saved()
    saved.value("step", number(3))
    progress = Progress()

    class Cancelling(Files):
        def open(self, name: str) -> Source:
            if name != ".metadata":
                progress.cancel()
            return super().open(name)

    with pytest.raises(CancelledError):
        read_dcp(Cancelling(saved.write(tmp_path / "b")), Limits().started(), progress)


def test_ranks_that_saved_alone_are_opened_by_their_metadata(tmp_path: Path) -> None:
    folder = two_ranks().write(tmp_path / "a")
    (folder / ".metadata").rename(folder / "__1.metadata")
    with pytest.raises(NotACheckpointError, match="each rank saved a checkpoint of its own"):
        read(folder)
    found = read_dcp(Folder("x", str(folder), "__1.metadata"), Limits().started(), Progress())
    assert (found.path, len(found.storage_ids)) == ("x", 4)


def test_metadata_may_have_more_values_than_another_pickle(tmp_path: Path) -> None:
    folder = two_ranks().write(tmp_path / "a")
    data = (folder / ".metadata").read_bytes()

    def fits(values: int) -> bool:
        try:
            read_metadata_stream(BytesSource(data, "x"), Programs(), Limits(values=values), Progress())
        except PickleError:
            return False
        return True

    most = next(values for values in range(0, 2000, 10) if fits(values))
    with pytest.raises(PickleError, match="values"):
        read_pickle(data, limits=Limits(values=most))


def test_what_describes_a_folder_is_not_kept(tmp_path: Path) -> None:
    found = open_checkpoint(str(two_ranks().write(tmp_path / "a")))
    assert found.safety is not None
    assert found.safety.calls_made == 0
    assert f"{METADATA}.Metadata" in {use.name for use in found.globals}


def test_broken_metadata_of_nothing_but_data_is_not_called_dangerous(tmp_path: Path) -> None:
    folder = two_ranks().write(tmp_path / "a")
    data = (folder / ".metadata").read_bytes()
    for more, verdict in ((b"", "unknown"), (call("os.system", text("id")) + b"0", "dangerous")):
        (folder / ".metadata").write_bytes(data[:2] + more + data[2:-1] + b"\xff")
        with pytest.raises(PickleError) as raised:
            open_checkpoint(str(folder))
        seen = judge_unread(raised.value)
        assert seen is not None
        assert seen.verdict == verdict


def test_a_value_does_not_take_the_storage_of_a_tensor(tmp_path: Path) -> None:
    saved = two_ranks()
    saved.entries["a"] = new(f"{METADATA}.BytesStorageMetadata")
    pickle = stream(proto(), tensor(storage("0", numel=1), 1))
    saved.put("__0_0.distcp", saved_zip(pickle, {"0": b"1234"}), "a")
    saved.tensor("a:0", (2,), ("__0_0.distcp", (0,), (2,)))
    found = read(saved.write(tmp_path / "c"))
    assert found.storage_ids["a:0"].numel == 2
    assert found.storage_ids["a:0'"].numel == 1


ROW = saved_value(number(7)) + saved_tensor(b"1234", (1,)) + saved_value(text("x"))


def read_alone(data: bytes, path: str = "a.bin") -> Container:
    return read_container(BytesSource(data, path))


@pytest.mark.parametrize("path", ["a.bin", "__0_0.distcp"])
def test_what_stands_one_behind_the_other_is_listed(path: str) -> None:
    found = read_alone(ROW, path)
    assert found.format == "distcp"
    assert isinstance(found.root, list)
    assert (found.root[0], found.root[2]) == (7, "x")
    place = found.stored["1:0"]
    assert place.offset is not None
    assert ROW[place.offset : place.offset + place.nbytes] == b"1234"
    assert [note.kind for note in found.notes] == [NoteKind.ALONE]
    assert "Not a directory" in found.refusal


def test_one_zip_is_a_shard_by_its_name_alone() -> None:
    assert read_alone(saved_value(number(7))).format == "zip"
    assert read_alone(saved_value(number(7)), "x.distcp").format == "distcp"


def test_what_is_cut_off_is_told() -> None:
    found = read_alone(ROW[:-30], "x.distcp")
    assert isinstance(found.root, list)
    assert len(found.root) == 2
    assert [note.kind for note in found.notes] == [NoteKind.ALONE, NoteKind.STRAY_BYTES]
    with pytest.raises(DamagedError, match="nothing in this file"):
        read_alone(ROW[:50], "x.distcp")
    # Without its name and its end it is any damaged zip.
    assert read_alone(ROW[:-30]).format == "zip"


def test_what_cannot_be_read_is_counted() -> None:
    broken = bytearray(ROW)
    broken[ROW.index(b"data.pkl") : ROW.index(b"data.pkl") + 12] = bytes(12)
    at = ROW.index(b"PK\x01\x02")
    broken[at : at + 4] = bytes(4)
    found = read_alone(bytes(broken), "x.distcp")
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


def test_storages_get_keys_of_their_own() -> None:
    data = saved_zip(
        stream(proto(), list_(tensor(storage("0"), 2), storage("0"), call("x.Y"))), {"0": b"12345678"}
    )
    values = Values(Programs(), Limits(), Progress())
    source = BytesSource(b"--" + data + data, "part")
    first = values.read(source, 3, 2, len(data), "a")
    values.read(source, 3, 2 + len(data), len(data), "a")
    assert list(values.storage_ids) == ["a:0", "a:0'"]
    assert values.stored["a:0"] == StoredBytes(3, 2 + data.index(b"12345678"), 8)
    assert isinstance(first, list)
    assert isinstance(first[0], Call)
    assert isinstance(first[0].args, tuple)
    node = first[0].args[0]
    assert isinstance(node, PersistentId)
    assert isinstance(node.pid, tuple)
    assert node.pid[2] == "a:0"


def test_many_storages_are_renamed_in_one_walk() -> None:
    def prepare(count: int) -> Callable[[], object]:
        pickle = stream(proto(), list_(*(storage(str(index)) for index in range(count))))
        data = saved_zip(pickle)
        values = Values(Programs(), Limits(), Progress())
        return lambda: values.read(BytesSource(data, "part"), 0, 0, len(data), "a")

    assert growth(prepare, 50, 400) < 2


def test_ids_of_other_things_are_left_alone() -> None:
    data = saved_zip(stream(proto(), list_(tuple_(text("0")) + op("BINPERSID"), storage("0"))), {})
    values = Values(Programs(), Limits(), Progress())
    found = values.read(BytesSource(data, "part"), 0, 0, len(data), "a")
    assert isinstance(found, list)
    assert isinstance(found[0], PersistentId)
    assert found[0].pid == ("0",)
    assert values.stored == {}


def test_programs_are_kept_where_reading_fails() -> None:
    programs = Programs()
    values = Values(programs, Limits(), Progress())
    data = saved_zip(stream(proto(), call("os.system", text("id")))[:-1])
    with pytest.raises(CheckpointError):
        values.read(BytesSource(data, "part"), 0, 0, len(data), "a")
    (program,) = programs.all()
    assert (program.name, program.is_whole) == (VALUES, False)
    cut = saved_value(number(1))[:-30]
    with pytest.raises(DamagedError, match="a value is damaged"):
        values.read(BytesSource(cut, "part"), 0, 0, len(cut), "a")


def test_long_texts_are_held() -> None:
    data = saved_value(text("x" * 100))
    values = Values(Programs(), Limits(text_nbytes=10), Progress())
    assert values.read(BytesSource(data, "part"), 0, 0, len(data), "a") == "x" * 100


ONE, TWO, THREE = (saved_value(push) for push in (number(1), text("PK\x05\x06" * 30), number(3)))


def count_nothing(_parts: int) -> None:
    """Count nothing."""


def spans(data: bytes) -> list[bytes]:
    source = BytesSource(data, "a.distcp")
    row = find_row(source, count_nothing)
    assert row.lost == len(data) - sum(span.nbytes for span in row.spans)
    return [source.read(span.offset, span.nbytes) for span in row.spans]


def test_zips_are_found_one_behind_the_other() -> None:
    assert spans(ONE + TWO + THREE) == [ONE, TWO, THREE]
    assert spans(ONE) == [ONE]
    assert spans(b"") == []


def test_what_is_lost_is_told() -> None:
    assert spans(ONE + TWO + THREE[:-1]) == [ONE, TWO]
    assert spans(ONE + TWO + THREE[:-22]) == [ONE, TWO]
    assert spans(b"lost " + TWO + THREE) == [TWO, THREE]
    assert spans(b"lost " + TWO[:-1]) == []
    assert spans(b"no zip") == []
    assert spans(ONE[:10] + ONE[11:]) == []
    assert spans(ONE + bytes(99)) == [ONE]


def test_searching_is_bounded() -> None:
    looked: list[int] = []
    find_row(BytesSource(bytes(3 << 20), "a"), looked.append)
    assert looked == [1, 2048, 2048, 2048]


def parsed(data: bytes) -> object:
    return parse_metadata(read_pickle(data).root, ".metadata", count_nothing)


def described(**fields: bytes) -> bytes:
    return stream(
        proto(), new(f"{METADATA}.Metadata", *((text(key), value) for key, value in fields.items()))
    )


def test_what_other_planners_leave_is_passed_over() -> None:
    found = parse_metadata(
        read_pickle(
            described(
                state_dict_metadata=dict_(),
                planner_data=dict_(
                    (text("a"), text("x")),
                    (text("b"), tuple_()),
                    (text("c"), tuple_(NONE)),
                    (text("d"), tuple_(number(3))),
                    (text("e"), tuple_(text("e"), number(-3))),
                    (number(4), tuple_(text("e"))),
                    (text("f"), tuple_(text("f"), number(3))),
                ),
                version=number(3),
            )
        ).root,
        ".metadata",
        count_nothing,
    )
    assert found.paths == {"f": ("f", 3)}
    assert (found.version, found.stored) == ("", {})
    assert (
        parse_metadata(
            read_pickle(described(state_dict_metadata=dict_(), planner_data=NONE)).root, "", count_nothing
        ).paths
        == {}
    )


def test_other_pickles_are_none() -> None:
    others: list[Value] = [
        3,
        read_pickle(stream(proto(), new("evil.Other", (text("state_dict_metadata"), dict_())))).root,
        read_pickle(stream(proto(), new(f"{METADATA}.Metadata", (text("a"), dict_())))).root,
        read_pickle(stream(proto(), new(f"{METADATA}.Metadata"))).root,
    ]
    for root in others:
        assert not is_metadata(root)
        with pytest.raises(DamagedError, match="does not describe a distributed checkpoint"):
            parse_metadata(root, ".metadata", count_nothing)


CHUNK = f"{METADATA}.ChunkStorageMetadata"
TENSOR = f"{METADATA}.TensorStorageMetadata"


def broken_tensor(**fields: bytes) -> bytes:
    return new(TENSOR, *((text(key), value) for key, value in fields.items()))


def properties(*state: bytes) -> bytes:
    return name(f"{METADATA}.TensorProperties") + b")\x81" + tuple_(*state) + b"b"


GOOD = properties(name("torch.float32"), NONE, NONE)


@table(
    ("entry", "why"),
    [
        (broken_tensor(properties=GOOD, chunks=list_()), "the entry of w"),
        (broken_tensor(properties=GOOD, size=size(2)), "the entry of w"),
        (broken_tensor(properties=NONE, size=size(2), chunks=list_()), "the entry of w"),
        (
            broken_tensor(properties=properties(name("torch.float32")), size=size(2), chunks=list_()),
            "the entry of w",
        ),
        (
            broken_tensor(
                properties=properties(name("os.float32"), NONE, NONE), size=size(2), chunks=list_()
            ),
            "the entry",
        ),
        (
            broken_tensor(properties=properties(NONE, NONE, NONE), size=size(2), chunks=list_()),
            "the entry of w",
        ),
        (
            broken_tensor(
                properties=properties(name("torch.device"), NONE, NONE), size=size(2), chunks=list_()
            ),
            "the entry",
        ),
        (broken_tensor(properties=GOOD, size=size(-1), chunks=list_()), "the entry of w"),
        (broken_tensor(properties=GOOD, size=number(1), chunks=list_()), "the entry of w"),
        (broken_tensor(properties=GOOD, size=size(*[1] * 65), chunks=list_()), "the entry of w"),
        (broken_tensor(properties=GOOD, size=size(2), chunks=list_(number(1))), "a chunk of w"),
        (
            broken_tensor(properties=GOOD, size=size(2), chunks=list_(new(CHUNK, (text("sizes"), size(1))))),
            "a chunk of w",
        ),
    ],
)
def test_damaged_entries_are_refused(entry: bytes, why: str) -> None:
    with pytest.raises(DamagedError, match=re.escape(why)):
        parsed(metadata({"w": entry}, [], {}))


@table(
    ("place", "why"),
    [
        ((number(3), place_of("a", 0, 1)), "what is where"),
        ((index_of("a", None), number(3)), "what is where"),
        ((index_of("a", None), place_of("a", -1, 3)), "before the beginning"),
        ((index_of("a", None), place_of("a", 3, -1)), "before the beginning"),
        ((index_of("a", None), place_of("a", 1 << 62, 1 << 62)), "the place of a is damaged"),
        (
            (index_of("a", None), new("x.Y", (text("relative_path"), text("a")), (text("offset"), NONE))),
            "the place of a",
        ),
    ],
)
def test_damaged_places_are_refused(place: tuple[bytes, bytes], why: str) -> None:
    with pytest.raises(DamagedError, match=why):
        parsed(metadata({}, [place], {}))


def test_names_must_be_texts() -> None:
    with pytest.raises(DamagedError, match="lists no names"):
        parsed(described(state_dict_metadata=NONE))
    with pytest.raises(DamagedError, match="no str"):
        parsed(described(state_dict_metadata=dict_((number(1), tensor_entry((), [])))))


def test_gradients_and_plain_sizes_are_read() -> None:
    entry = broken_tensor(
        properties=properties(name("torch.int8"), NONE, b"\x88"), size=list_(number(2)), chunks=list_()
    )
    found = parse_metadata(read_pickle(metadata({"w": entry}, [], {})).root, "", count_nothing)
    assert found.entries == (TensorEntry("w", "int8", (2,), True, ()),)


def plain_nesting(value: Value) -> object:
    if isinstance(value, Dict):
        return {key: plain_nesting(item) for key, item in value.pairs}
    return [plain_nesting(item) for item in value] if isinstance(value, list) else value


def nested(*entries: tuple[str, tuple[str | int, ...]]) -> object:
    nesting = Nesting(len(entries))
    for index, (label, path) in enumerate(entries):
        nesting.put(label, path, index)
    return plain_nesting(nesting.root)


def test_names_are_put_where_their_keys_lead() -> None:
    assert nested(
        ("a", ("a",)), ("m.w", ("m", "w")), ("m.b", ("m", "b")), ("l.1.x", ("l", 1, "x")), ("l.0", ("l", 0))
    ) == {
        "a": 0,
        "m": {"w": 1, "b": 2},
        "l": [4, {"x": 3}],
    }


def test_keys_that_lead_nowhere_leave_the_name_flat() -> None:
    assert nested(("a", ("a",)), ("a.b", ("a", "b"))) == {"a": 0, "a.b": 1}
    assert nested(("a", ("a",)), ("a.again", ("a",))) == {"a": 0, "a.again": 1}
    assert nested(("l.0", ("l", 0)), ("l.x", ("l", "x"))) == {"l": [0], "l.x": 1}
    assert nested(("l.0", ("l", 0)), ("l.x.y", ("l", "x", "y"))) == {"l": [0], "l.x.y": 1}
    assert nested(("l.x", ("l", "x")), ("l.0", ("l", 0))) == {"l": {"x": 0}, "l.0": 1}
    assert nested(("0", (0,))) == {"0": 0}


def test_lists_are_not_longer_than_there_are_entries() -> None:
    assert nested(("l.far", ("l", 1 << 40))) == {"l": [], "l.far": 0}
    assert nested(("l.far", ("l", 1 << 40, "x"))) == {"l": [], "l.far": 0}


def test_values_are_kept_apart_from_what_nests() -> None:
    nesting = Nesting(2)
    nesting.put("a", ("a",), Dict([]))
    nesting.put("a.b", ("a", "b"), 1)
    assert plain_nesting(nesting.root) == {"a": {}, "a.b": 1}


def test_genuine_metadata_names_nothing_else() -> None:
    for case in cases(container="dcp"):
        for program in read_container(str(case.path)).programs:
            if program.name == ".metadata":
                names = set(count_globals([program]))
                assert {name for name in names if name.startswith("torch.distributed")} <= OWN_NAMES

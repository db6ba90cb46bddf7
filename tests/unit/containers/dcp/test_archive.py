from __future__ import annotations

from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.dcp import read_dcp, read_metadata_stream
from inspector.containers.folder import Folder
from inspector.containers.notes import NoteKind
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.containers.programs import Programs, count_globals
from inspector.containers.source import BytesSource, Source
from inspector.containers.storage_reader import StorageReader
from inspector.errors import CancelledError, DamagedError, NotACheckpointError, PickleError, TooLargeError
from inspector.limits import Limits
from inspector.model.build import open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Dict, PersistentId, StoredTensor, Value
from inspector.progress import Progress
from inspector.safety.unread import judge_unread
from tests.builders.dcp import (
    METADATA,
    Saved,
    floats,
    index_of,
    metadata,
    place_of,
    saved_value,
    saved_zip,
    tensor_entry,
    two_ranks,
)
from tests.builders.pickles import call, new, number, proto, storage, stream, tensor, text


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
    for name in ("a", "b"):
        saved.value(name, call("os.system", storage("0", numel=0), tensor(storage("0", numel=0), 0)))
    saved.put("__0_0.distcp", saved_value(number(3)), "unlisted")
    files = Files(saved.write(tmp_path / "a"))
    found = read_dcp(files, Limits().started(), Progress())
    programs = files.programs
    assert [program.name for program in programs.all()] == [".metadata", "saved values"]
    assert count_globals(programs.all())["os.system"] == 2
    assert list(found.storage_ids) == ["a:0", "b:0"]


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
        (index_of(flat, start), place_of("__0_0.distcp", 0, 9, ["stream.zstd/1"]))
        for flat, start in (("w", (0,)), ("v", None))
    ]
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / ".metadata").write_bytes(metadata(entries, places, {}))
    (folder / "__0_0.distcp").write_bytes(b"\x28\xb5\x2f\xfd")
    found = read(folder)
    assert kinds(found)[NoteKind.PACKED_PARTS] == ("stream.zstd/1",)
    assert isinstance(dict(found.root.pairs)["v"], PersistentId)  # type: ignore[union-attr]


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

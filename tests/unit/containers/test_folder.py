from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers import folder as module
from inspector.containers.belonging import (
    configurations_of,
    files_of,
    is_pretrained,
    is_training,
    whole_of,
)
from inspector.containers.container import Chunk, Container, Gathered, Part, StoredBytes
from inspector.containers.folder import Folder
from inspector.containers.joined import Member, join
from inspector.containers.notes import Note, NoteKind, are_files, listed, shown
from inspector.containers.opening import open_path, opened, stamp_at, stands_for_folder
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.programs import Programs
from inspector.containers.small_json import Members, read_json, value_of
from inspector.containers.source import BytesSource, FileSource
from inspector.diff.compare import ChangedError, Measuring
from inspector.diff.records import Pair
from inspector.errors import (
    CheckpointError,
    ContainerError,
    DamagedError,
    ExportError,
    TooLargeError,
    ValuesError,
)
from inspector.limits import Limits
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.pickles.values import Blob, Dict
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap import export_form as form_export
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from inspector.safety.verdict import judge
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from tests.builders import legacy
from tests.builders.archives import archive
from tests.builders.dcp import two_ranks
from tests.builders.folders import shard, sharded
from tests.builders.pickles import (
    dict_,
    legacy_storage,
    list_,
    op,
    state_dict,
    storage,
    stream,
    tensor,
    text,
)
from tests.builders.safetensors import model


def filled(folder: Path) -> Folder:
    (folder / "a" / "b" / "c" / "d").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three", "a/b/c/four", "a/b/c/d/five"):
        (folder / name).write_bytes(name.encode())
    return Folder("as named", str(folder))


def test_files_are_listed_by_name(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert folder.sizes == {"a/b/c/four": 10, "a/b/three": 9, "a/two": 5, "one": 3}
    assert (folder.path, folder.nbytes, folder.file_nbytes, folder.is_folder) == ("as named", 0, 27, True)
    assert folder.read_upto(0, 9) == b""
    assert folder.read_at(0, 9) == b""
    with folder.open("a/two") as source:
        assert source.read(0, 5) == b"a/two"


def test_only_what_was_listed_is_opened(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    folder = filled(inside)
    for name in ("../secret", str(tmp_path / "secret"), "", "a", "missing", "a/../one"):
        with pytest.raises(ContainerError, match="no such file in the folder"):
            folder.open(name)


def test_links_count_only_within_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "inside2").write_bytes(b"secret")
    for name, target in (
        ("out", "../inside2"),
        ("far", "/etc/passwd"),
        ("in", "a/two"),
        ("broken", "nowhere"),
        ("loop", "loop"),
        ("up", ".."),
    ):
        (inside / name).symlink_to(target)
    os.mkfifo(inside / "pipe")
    folder = filled(inside)
    assert sorted(set(folder.sizes) - {"a/b/c/four", "a/b/three", "a/two", "one"}) == ["in"]
    assert folder.outside == ("far", "out")
    with pytest.raises(ContainerError, match="leads out of the folder"):
        folder.open("out")
    with folder.open("in") as source:
        assert source.read(0, 5) == b"a/two"


def test_snapshots_of_hugging_face_may_link_to_their_blobs(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--x" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    for place, name in (("blobs", "abc"), ("other", "def")):
        (tmp_path / "models--x" / place).mkdir()
        (tmp_path / "models--x" / place / name).write_bytes(b"12345")
        (snapshot / f"{name}.bin").symlink_to(f"../../{place}/{name}")
    folder = Folder(str(snapshot), str(snapshot))
    assert folder.sizes == {"abc.bin": 5}
    assert folder.outside == ("def.bin",)


def test_a_file_that_vanishes_while_it_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")

    def gone(_path: str) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os.path, "getsize", gone)
    assert Folder("x", str(tmp_path)).sizes == {"a": 1}
    assert Folder("x", str(tmp_path / "nowhere")).sizes == {}


def test_listing_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / str(number)).touch()
    assert not Folder("x", str(tmp_path)).is_cut
    monkeypatch.setattr(module, "_MOST_FILES", 3)
    folder = Folder("x", str(tmp_path))
    assert (len(folder.sizes), folder.is_cut) == (3, True)


def test_a_checkpoint_is_found_among_very_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own files come before those of subfolders, and what is named like one is listed beyond others."""
    monkeypatch.setattr(module, "_MOST_FILES", 60)
    monkeypatch.setattr(module, "_NAMED_ALONE", 40)
    for number in range(30):
        (tmp_path / f"{number}.log").touch()
    (tmp_path / "0deep").mkdir()
    for number in range(500):
        (tmp_path / "0deep" / f"{number}.pt").touch()
    saved = two_ranks().write(tmp_path)
    folder = Folder("x", str(saved))
    assert folder.is_cut
    assert {".metadata", "__0_0.distcp", "__1_0.distcp"} <= folder.sizes.keys()
    found = open_checkpoint(str(saved))
    assert len(found.tensors) == 4
    assert judge(found).verdict == "unknown"  # not all was seen


def test_files_that_changed_places_are_another_folder(tmp_path: Path) -> None:
    """Newest time, total size and count stay as they are."""
    for name in ("a.bin", "b.bin", "c.bin"):
        (tmp_path / name).write_bytes(name.encode())
        os.utime(tmp_path / name, ns=(5, 5))
    folder = Folder("x", str(tmp_path))
    assert folder.identity() == folder.stamp
    (tmp_path / "a.bin").rename(tmp_path / "x")
    (tmp_path / "b.bin").rename(tmp_path / "a.bin")
    (tmp_path / "x").rename(tmp_path / "b.bin")
    assert folder.identity() != folder.stamp
    folder = Folder("x", str(tmp_path))
    (tmp_path / "new").write_bytes(b"C.bin")
    os.utime(tmp_path / "new", ns=(5, 5))
    (tmp_path / "new").replace(tmp_path / "c.bin")
    assert folder.identity() != folder.stamp


def test_a_few_files_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    with filled(tmp_path) as folder:
        first = folder.part_at(folder.path_of("one"))
        assert folder.part_at(folder.path_of("one")) is first
        for name in ("a/two", "a/b/three"):
            part = folder.part_at(folder.path_of(name))
            assert part.read(0, part.nbytes) == name.encode()
        with pytest.raises(ContainerError):
            first.read(0, 3)
        kept = folder.part_at(folder.path_of("a/two"))
    with pytest.raises(ContainerError):
        kept.read(0, 3)


def test_a_change_of_any_file_is_noticed(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert folder.identity() == folder.stamp
    (tmp_path / "a" / "two").write_bytes(b"longer")
    assert folder.identity() != folder.stamp
    (tmp_path / "one").unlink()
    assert folder.identity() != folder.stamp


def test_the_folder_we_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").touch()
    monkeypatch.chdir(tmp_path)
    assert Folder(".", ".").sizes == Folder("", "").sizes == {"one": 0}


def test_names_are_listed_escaped_and_cut() -> None:
    assert listed([*"abc", *map(str, range(1000))]) == "a, b, c and 1,000 more"
    assert listed(["a\nb"]) == "a\\u000ab"
    assert len(shown("x" * 1000)) == 80
    assert (are_files(1), are_files(2)) == ("1 file is", "2 files are")


def test_files_and_folders_are_opened(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"x")
    with open_path(str(tmp_path / "a.pt")) as source:
        assert type(source) is FileSource
    with open_path(str(tmp_path)) as source:
        assert isinstance(source, Folder)
        assert (source.root, source.entry) == (str(tmp_path), "")
    with pytest.raises(ContainerError, match="no such file"):
        open_path(str(tmp_path / "b.pt"))


def test_a_stamp_tells_two_states_of_a_path_apart(tmp_path: Path) -> None:
    file = tmp_path / "a.pt"
    assert stamp_at(str(file)) is None
    assert stamp_at("a\0b") is None
    file.write_bytes(b"x")
    with open_path(str(file)) as source:
        assert stamp_at(str(file)) == source.stamp
    before = stamp_at(str(tmp_path))
    (tmp_path / "b.pt").write_bytes(b"y")
    assert stamp_at(str(tmp_path)) != before


def test_files_stand_for_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__0_0.distcp").write_bytes(b"x")
    with open_path(str(tmp_path / "__0_0.distcp")) as source:
        assert type(source) is FileSource
    (tmp_path / ".metadata").write_bytes(b"x")
    for name in (".metadata", "__0_0.distcp"):
        with open_path(str(tmp_path / name)) as source:
            assert isinstance(source, Folder)
            assert (source.path, source.root, source.entry) == (str(tmp_path / name), str(tmp_path), name)
    monkeypatch.chdir(tmp_path)
    with open_path(".metadata") as source:
        assert isinstance(source, Folder)
        assert source.sizes == {".metadata": 1, "__0_0.distcp": 1}
    with pytest.raises(ContainerError, match="no such file"):
        open_path("x/.metadata")


def test_sources_are_handed_on(tmp_path: Path) -> None:
    source = BytesSource(b"x", "a")
    with opened(source) as same:
        assert same is source
    assert source.part_at("anything") is source
    (tmp_path / "a.pt").write_bytes(b"x")
    with opened(str(tmp_path / "a.pt")) as file:
        assert file.read(0, 1) == b"x"
    with pytest.raises(ContainerError):
        file.read(0, 1)


def test_the_file_that_names_an_iteration_stands_for_its_folder(tmp_path: Path) -> None:
    name = "latest_checkpointed_iteration.txt"
    assert not stands_for_folder(str(tmp_path), name)
    (tmp_path / name).write_text("5")
    assert stands_for_folder(str(tmp_path), name)
    assert not stands_for_folder(str(tmp_path), f"my_{name}")


TRAINER = ("model.safetensors", "optimizer.pt", "rng_state_0.pth", "training_args.bin", "config.json")


def test_names_alone_tell_what_a_folder_is() -> None:
    assert is_training(TRAINER)
    assert is_training(("pytorch_model_1.bin", "random_states_0.pkl"))
    assert is_training(("model.safetensors.index.json", "scheduler.bin"))
    assert not is_training(("optimizer.pt", "notes.txt"))
    assert not is_training(("model.safetensors", "training_args.bin"))
    assert not is_training(("model.safetensors", "my_optimizer.pt"))
    assert is_pretrained(("model.safetensors", "config.json"))
    assert not is_pretrained(("model.safetensors", "README.md"))
    assert not is_pretrained(("model.safetensors", "model.safetensors.index.json", "config.json"))
    assert not is_pretrained(("config.json",))


def test_model_comes_first_and_in_one_form() -> None:
    assert files_of(TRAINER) == ["model.safetensors", "optimizer.pt", "rng_state_0.pth", "training_args.bin"]
    both = ("pytorch_model.bin", "model.safetensors", "config.json", "training_args.bin")
    assert files_of(both) == ["model.safetensors"]
    assert files_of(("pytorch_model.bin", "optimizer.bin")) == ["pytorch_model.bin", "optimizer.bin"]
    assert configurations_of(TRAINER) == ["config.json"]


def test_file_is_part_of_what_lies_beside_it(tmp_path: Path) -> None:
    shard, index = tmp_path / "m-00001-of-00002.bin", tmp_path / "m.bin.index.json"
    assert whole_of(str(shard)) is None
    index.touch()
    assert whole_of(str(shard)) == str(index)
    assert whole_of(str(tmp_path / "m-1-of-2.bin")) is None
    state = tmp_path / "optimizer.pt"
    state.touch()
    assert whole_of(str(state)) is None
    (tmp_path / "pytorch_model.bin").touch()
    assert whole_of(str(state)) == str(tmp_path)
    assert whole_of(str(tmp_path / "training_args.bin")) == str(tmp_path)
    assert whole_of(str(tmp_path / "pytorch_model.bin")) is None
    assert whole_of(str(tmp_path / "nowhere" / "optimizer.pt")) is None


def test_folder_we_are_in(tmp_path: Path) -> None:
    for name in ("optimizer.pt", "pytorch_model.bin"):
        (tmp_path / name).touch()
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert whole_of("optimizer.pt") == "."
    finally:
        os.chdir(before)


def read(data: bytes, **limits: int) -> Members:
    return read_json(BytesSource(data, "x.json"), Limits(**limits))


def test_members_keep_their_order_and_repetitions() -> None:
    found = read(b'{"a": 1, "b": {"c": [1, null]}, "a": 2}')
    assert found == [("a", 1), ("b", [("c", [1, None])]), ("a", 2)]
    assert isinstance(found.first("b"), Members)
    assert (found.first("a"), found.first("z")) == (1, None)


def test_whatever_is_no_object_is_one_sentence() -> None:
    wrong = {
        b"": "no valid JSON",
        b"[1]": "no object",
        b"{": "no valid JSON",
        b'{"a": ' + b"[" * 100_000 + b"}": "no valid JSON",
        b'{"a": ' + b"1" * 5000 + b"}": "no valid JSON",
        b'{"\xff": 1}': "no valid JSON",
        b"\xff\xfe{}": "no valid JSON",
    }
    for data, words in wrong.items():
        with pytest.raises(DamagedError, match=words):
            read(data)


def test_what_it_would_build_is_bounded() -> None:
    with pytest.raises(TooLargeError):
        read(b'{"a": [[],[],[]]}', values=5)
    with pytest.raises(TooLargeError):
        read(b'{"a": 1}', directory_nbytes=4)
    with pytest.raises(CheckpointError):
        read(b'{"a": 1' + b"," * 9, values=8)


def test_values_are_inert_and_nested_no_deeper_than_anybody_writes() -> None:
    found = read(b'{"a": [1, 2.5, true, null, "x", {"b": []}]}')
    value = value_of(found)
    assert isinstance(value, Dict)
    ((key, inner),) = value.pairs
    assert key == "a"
    assert isinstance(inner, list)
    assert inner[:5] == [1, 2.5, True, None, "x"]
    deep = read(
        b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"
    )  # as deep as `json` goes, and deeper than Python does
    with pytest.raises(TooLargeError, match="nested too deeply"):
        value_of(deep)


TakeApart = Callable[..., Container]
WEIGHTS = bytes(range(16))


def whole(*containers: Container, **limits: int) -> Container:
    members = [Member(f"file{number}", one) for number, one in enumerate(containers)]
    root = Dict([(name, one.root) for name, one in members])
    return join("folder", "folder", members, root, Limits(**limits))


def zipped(key: str = "0", location: str = "cuda:1") -> bytes:
    return archive(state_dict(w=tensor(storage(key, location=location, numel=4), 4)), {key: WEIGHTS})


def test_each_part_has_its_own_storages_and_file(take_apart: TakeApart) -> None:
    parts = [take_apart(zipped()), take_apart(model(w=(2,))), take_apart(zipped("1:0"))]
    container = whole(*parts)
    assert list(container.storage_ids) == ["0:0", "1:0", "2:1:0"]
    assert [one.key for one in container.storage_ids.values()] == ["0:0", "1:0", "2:1:0"]
    assert [place.part for place in container.stored.values()] == [0, 1, 2]
    assert [part.format for part in container.parts] == ["zip", "safetensors", "zip"]
    assert container.file_nbytes == sum(part.file_nbytes for part in parts)
    rows = build_checkpoint(container)
    assert [(one.path, one.device, one.storage) for one in rows.tensors] == [
        ("file0/w", "cuda:1", "0:0"),
        ("file1/w", "none", "1:0"),
        ("file2/w", "cuda:1", "2:1:0"),
    ]
    assert [one.tensors for one in rows.storages] == [1, 1, 1]
    assert rows.parts == container.parts


def test_views_of_legacy_files_are_renamed_with_their_storage(take_apart: TakeApart) -> None:
    node = legacy_storage("9", numel=8, view=("10", 4, 4))
    data = legacy.checkpoint(stream(dict_((text("w"), tensor(node, 4)))), ("9", 8, bytes(32)))
    container = whole(take_apart(zipped()), take_apart(data))
    rows = build_checkpoint(container)
    assert [(one.path, one.storage, one.problem) for one in rows.tensors] == [
        ("file0/w", "0:0", None),
        ("file1/w", "1:10", None),
    ]
    found = [parse_storage_id(node) for one, _ in container.streams for node in one.persistent_ids]
    assert [one.view for one in found if one is not None] == [None, ("1:10", 4, 4)]
    assert not [use for use in rows.needs.uses if use[0]]


def test_one_tensor_in_two_places_is_renamed_once(take_apart: TakeApart) -> None:
    part = take_apart(model(w=(2,)))
    shared = part.root.pairs[0][1]
    part.root.pairs.append(("again", shared))
    container = whole(part)
    assert shared.key == "0:0"
    assert [one.storage for one in build_checkpoint(container).tensors] == ["0:0", "0:0"]


def test_large_values_keep_their_bytes(take_apart: TakeApart) -> None:
    def named(letter: str) -> bytes:
        full = op("MARK") + text("x") + op("FROZENSET")
        return archive(stream(dict_((text("long"), list_(text(letter * 40), full)))), {})

    parts = [take_apart(named(letter), text_nbytes=30) for letter in "abc"]
    container = whole(*parts, text_nbytes=30)
    blobs = [branch.pairs[0][1][0] for _, branch in container.root.pairs]
    assert all(type(one) is Blob for one in blobs)
    assert [container.data[one.offset :][: one.nbytes] for one in blobs] == [b"a" * 40, b"b" * 40, b"c" * 40]
    assert all(one.data == b"" for one, _ in container.streams)
    plain = whole(take_apart(zipped()), take_apart(zipped()))
    assert plain.data == b""


def test_notes_versions_and_refusals_have_the_name_of_their_part(take_apart: TakeApart) -> None:
    one, other, third = (take_apart(zipped()) for _ in range(3))
    one = replace(one, versions=(("a", "1"),), notes=(Note(NoteKind.OVERLAP),), tied=(("x", "y"),))
    other = replace(
        other, versions=(("a", "2"), ("b", "3")), refusal="Error: no", refused=(("0", "Error: 0"),)
    )
    container = whole(one, other, replace(third, versions=(("a", "1"),), refusal="Error: third"))
    assert container.versions == (("a", "1"), ("b", "3"), ("a of file1", "2"))
    assert [note.sentence for note in container.notes] == [
        "file0: Several records share bytes, which no ordinary program writes."
    ]
    assert container.notes[0].within("run").part == "run: file0"
    assert (container.refusal, container.refused) == ("Error: no", (("1:0", "Error: 0"),))
    assert container.tied == (("x", "y"),)
    assert Note(NoteKind.REFUSED, part="x").within("y").part == "y: x"


def test_parts_of_parts_are_numbered_through(take_apart: TakeApart) -> None:
    chunks = (Chunk((0,), (1,), 1, 0, 4), Chunk((1,), (1,), -1, 0, 0))
    inner = replace(
        take_apart(model(w=(2,))),
        parts=(Part("a", 1), Part("b", 2)),
        stored={"0": StoredBytes(1, 0, 8)},
        gathered={"0": Gathered("w", "float32", 4, (2,), chunks)},
    )
    container = whole(take_apart(zipped()), inner)
    assert container.stored["1:0"].part == 2
    assert [chunk.part for chunk in container.gathered["1:0"].chunks] == [2, -1]
    again = whole(take_apart(zipped()), container)
    assert again.stored["1:1:0"].part == 3
    assert [part.path for part in again.parts][2:] == ["a", "b"]
    assert [one.storage for one in build_checkpoint(again).tensors] == ["0:0", "1:0:0", "1:1:0"]


def test_stranger_in_a_part_is_one_in_the_whole(take_apart: TakeApart) -> None:
    odd = archive(stream(dict_((text("w"), text("stranger") + b"Q"))), {})
    rows = build_checkpoint(replace(whole(take_apart(odd)), programs=take_apart(odd).programs))
    assert any(name == "" or "persistent" in name for name, _ in rows.needs.uses)


def test_programs_are_named_by_file_and_own_name(take_apart: TakeApart) -> None:
    programs = Programs()
    part = take_apart(zipped())
    programs.absorb((*part.programs, "no program"), "file0")
    programs.absorb(tuple(one._replace(is_whole=False) for one in part.programs), "file1")
    assert [(one.name, one.kind, one.is_whole) for one in programs.all()] == [
        (f"file0: {part.programs[0].name}", "object", True),
        (f"file1: {part.programs[0].name}", "object", False),
    ]


FIRST, SECOND = (f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in two files of one size and one time."""
    files = {FIRST: shard("a.weight"), SECOND: shard("b.weight")}
    assert len(files[FIRST]) == len(files[SECOND])
    sharded(tmp_path / "model", files, {"a.weight": FIRST, "b.weight": SECOND})
    for name in files:
        os.utime(tmp_path / "model" / name, ns=(5, 5))
    return tmp_path / "model"


def swap(folder: Path) -> None:
    (folder / FIRST).rename(folder / "x")
    (folder / SECOND).rename(folder / FIRST)
    (folder / "x").rename(folder / SECOND)


def test_values_are_not_told(folder: Path) -> None:
    opened = Requests(open_checkpoint(str(folder)))
    with ValueReader() as reader:
        assert reader.statistics(opened, 0, Progress()).low is not None
        swap(folder)
        with pytest.raises(ValuesError, match="changed since it was opened"):
            reader.statistics(opened, 0, Progress())


def test_the_window_s_watcher_sees_another_file(folder: Path) -> None:
    found = open_checkpoint(str(folder))
    assert stamp_at(str(folder)) == found.stamp
    swap(folder)
    assert stamp_at(str(folder)) != found.stamp


def test_differences_are_not_measured(folder: Path) -> None:
    measuring = Measuring(str(folder), str(folder))
    measuring.compare(Progress())
    measuring.measure([Pair(0, 0)], Progress())
    assert measuring.found
    swap(folder)
    with pytest.raises(ChangedError, match="has changed since it was compared"):
        measuring.measure([Pair(0, 0)], Progress())
    assert not measuring.found
    measuring.close()


def test_no_copy_appears(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = form_export._write

    def write_and_swap(*arguments: object) -> None:
        write(*arguments)
        swap(folder)

    monkeypatch.setattr(form_export, "_write", write_and_swap)
    with pytest.raises(ExportError, match="changed while it was copied"):
        export_form(str(folder), tmp_path / "out.pt", None, Form(only_weights=True))
    assert not (tmp_path / "out.pt").exists()

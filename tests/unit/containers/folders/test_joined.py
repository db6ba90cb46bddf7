"""Several containers as one: keys of their own, notes with names, and values where they are."""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.container import Chunk, Container, Gathered, Part, StoredBytes
from inspector.containers.joined import Member, join
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.programs import Programs
from inspector.limits import Limits
from inspector.model.build import build_checkpoint
from inspector.pickles.values import Blob, Dict
from inspector.records import replace
from tests.builders import legacy
from tests.builders.archives import archive
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

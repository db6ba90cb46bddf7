from __future__ import annotations

import re

import pytest

from inspector.containers.dcp_metadata import Stored, TensorEntry, is_metadata, parse_metadata
from inspector.errors import DamagedError
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Value
from tests.builders.dcp import METADATA, index_of, metadata, place_of, size, tensor_entry, two_ranks
from tests.builders.pickles import NONE, dict_, list_, name, new, number, proto, stream, text, tuple_
from tests.sweep import table


def count_nothing(_parts: int) -> None:
    """Count nothing."""


def parsed(data: bytes) -> object:
    return parse_metadata(read_pickle(data).root, ".metadata", count_nothing)


def test_everything_is_read() -> None:
    found = parse_metadata(read_pickle(two_ranks().metadata()).root, ".metadata", count_nothing)
    assert [one if isinstance(one, str) else one.name for one in found.entries] == [
        "step",
        "names",
        "model.rows",
        "model.columns",
        "scale",
        "empty",
    ]
    assert found.entries[2] == TensorEntry(
        "model.rows", "float32", (4, 3), False, (((0, 0), (3, 3)), ((3, 0), (1, 3)))
    )
    assert found.paths["model.rows"] == ("model", "rows")
    assert found.stored["step", None] == Stored("__0_0.distcp", 0, found.stored["step", None].length)
    assert found.stored["model.rows", (3, 0)].path == "__1_0.distcp"
    assert found.version == "1.0.0"


def test_transforms_are_read() -> None:
    place = place_of("a", 0, 3, ["stream.zstd/1"])
    found = parse_metadata(
        read_pickle(metadata({}, [(index_of("a", None), place)], {})).root, ".metadata", count_nothing
    )
    assert found.stored["a", None].transforms == ("stream.zstd/1",)


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

"""Maps as data; what torch does with them is compared in tests/torch/test_simulation_table.py."""

from __future__ import annotations

import pytest

from inspector.target.call import (
    BAD_MAP,
    Function,
    MapLocation,
    TagMap,
    TorchDevice,
    WrongType,
    device_for,
    goes_to_meta,
    tag_for,
    type_name,
)
from tests.sweep import table

NOW, OLD = (2, 13), (2, 3)
CPU = TorchDevice(text="cpu")
DICTIONARY = TagMap(pairs=(("cuda:0", "cpu"), ("cuda:1", CPU), (TorchDevice(text="cuda:0"), "meta")))


@table(
    ("map_location", "tag", "asked"),
    [
        (None, "cuda:0", "cuda:0"),
        ("mps", "cuda:0", "mps"),
        (CPU, "cuda:0", "cpu"),
        (DICTIONARY, "cuda:0", "cpu"),
        (DICTIONARY, "cuda", "cuda"),
        (TagMap(pairs=(("a", "b"), ("a", "c"))), "a", "c"),
        (Function(gives="storage"), "cuda:0", "cpu"),
        (Function(gives="nothing"), "cuda:0", "cuda:0"),
    ],
)
def test_storages(map_location: MapLocation, tag: str, asked: str) -> None:
    assert tag_for(map_location, tag, NOW) == asked


@table(
    ("map_location", "release", "message"),
    [
        (DICTIONARY, NOW, "TypeError: expected string or bytes-like object, got 'torch.device'"),
        (DICTIONARY, OLD, "AttributeError: 'torch.device' object has no attribute 'startswith'"),
        (WrongType(name="bytes"), NOW, "TypeError: cannot use a string pattern on a bytes-like object"),
        (
            WrongType(name="bytes"),
            OLD,
            "TypeError: startswith first arg must be bytes or a tuple of bytes, not str",
        ),
        (WrongType(name="int"), NOW, "TypeError: 'int' object is not callable"),
    ],
)
def test_what_torch_stumbles_over(map_location: MapLocation, release: tuple[int, int], message: str) -> None:
    assert tag_for(map_location, "cuda:1", release) == (BAD_MAP, message)


def test_python_says_so_itself() -> None:
    """The texts of releases that are not installed come from Python and can be had without them."""
    with pytest.raises(TypeError) as raised:
        b"cpu".startswith("cuda")  # type: ignore[arg-type]
    assert tag_for(WrongType(name="bytes"), "cpu", OLD)[1] == f"TypeError: {raised.value}"


@table(
    ("map_location", "is_wrapper", "device"),
    [
        (None, True, "cuda:0"),
        ("cpu", False, "cpu"),
        (CPU, True, "cpu"),
        (DICTIONARY, True, "meta"),
        (DICTIONARY, False, "cpu"),
        (TagMap(pairs=()), True, "cuda:0"),
    ],
)
def test_devices_of_their_own(map_location: MapLocation, is_wrapper: bool, device: str) -> None:
    assert device_for(map_location, "cuda:0", NOW, is_wrapper=is_wrapper) == device
    assert device_for(map_location, "cuda:0", OLD, is_wrapper=is_wrapper) == "cuda:0"  # not yet mapped


@pytest.mark.parametrize(
    ("map_location", "beginning"),
    [
        (Function(), "RuntimeError: Callable map_location not supported"),
        (WrongType(name="bytes"), "AssertionError: expected callable map_location, got bytes"),
    ],
)
def test_devices_of_their_own_that_cannot_be_mapped(map_location: MapLocation, beginning: str) -> None:
    finding, message = device_for(map_location, "cuda:0", NOW, is_wrapper=True)
    assert finding == BAD_MAP
    assert message.startswith(beginning)


def test_what_is_seen_to_go_to_meta() -> None:
    assert goes_to_meta("meta")
    assert goes_to_meta(TorchDevice(text="meta:0"))
    assert not any(map(goes_to_meta, ("meta:0", CPU, None, TagMap(pairs=(("cpu", "meta"),)))))


def test_names_of_types() -> None:
    assert type_name(TagMap(pairs=())) == type({}).__name__
    assert type_name(Function()) == type(lambda: None).__name__
    assert type_name(WrongType(name="list")) == "list"

"""The argument `map_location` of `torch.load`, as data: what it makes of a place that a file names.

torch takes None, a text, a `torch.device`, a dictionary or a function, and stumbles over anything else only
when it restores the first storage. The rules are those of `_get_restore_location`, once in
`torch/serialization.py` for storages and once in `torch/_utils.py` for tensors that name a device themselves.
"""

from __future__ import annotations

from typing import Literal

from inspector.records import dataclass
from inspector.target.restore import Failure
from inspector.target.versions import MATCHES_WHOLE_TAG, OWN_DEVICES_MAPPED, Release

BAD_MAP = "bad-map-location"
"""The finding for a `map_location` that torch cannot work with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDevice:
    """A `torch.device`, told from the text of the same name because torch does so in dictionaries.

    Attributes:
        text: What `str` gives of it: `cuda:1`, `cpu`.
    """

    text: str


Place = str | TorchDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class TagMap:
    """A dictionary.

    Attributes:
        pairs: Its items in order. Texts are compared exactly: `cuda` is another key than `cuda:0`.
    """

    pairs: tuple[tuple[Place, Place], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of a storage, which is on the CPU, and its location tag.

    Attributes:
        gives: `storage`: it gives the storage back, as `lambda storage, tag: storage` does, which leaves
            everything on the CPU. `nothing`: it gives None, and torch goes by the tag.
    """

    gives: Literal["storage", "nothing"] = "storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongType:
    """Something that is no `map_location` at all.

    Attributes:
        name: The name of its type: `bytes`, `int`, `list`.
    """

    name: str


MapLocation = Place | TagMap | Function | WrongType | None


def type_name(map_location: MapLocation) -> str:
    """Return what Python calls the type of an argument that is no text and no device."""
    if isinstance(map_location, WrongType):
        return map_location.name
    return "dict" if isinstance(map_location, TagMap) else "function"


def goes_to_meta(map_location: MapLocation) -> bool:
    """Return whether torch sees at once that everything goes to the meta device."""
    if isinstance(map_location, TorchDevice):
        return map_location.text.partition(":")[0] == "meta"
    return map_location == "meta"


def tag_for(map_location: MapLocation, tag: str, release: Release) -> str | Failure:
    """Return the tag by which torch restores a storage, or (finding, message) where it stumbles.

    A function that gives the storage back leaves it where it was read to, which is what `cpu` does too.
    """
    if isinstance(map_location, TagMap):
        found = dict(map_location.pairs).get(tag, tag)
        return found if isinstance(found, str) else (BAD_MAP, _no_text("torch.device", release))
    if isinstance(map_location, Function):
        return "cpu" if map_location.gives == "storage" else tag
    if isinstance(map_location, WrongType):
        if map_location.name == "bytes":  # taken for a text at first
            return BAD_MAP, _no_text("bytes", release)
        return BAD_MAP, f"TypeError: '{map_location.name}' object is not callable"
    return tag if map_location is None else text_of(map_location)


def device_for(
    map_location: MapLocation, device: str, release: Release, *, is_wrapper: bool
) -> str | Failure:
    """Return the device of a tensor that names its own, or (finding, message) where torch stumbles.

    Wrappers name a `torch.device`, tensors that are sent name a text, and a dictionary is asked for just
    that: the key `"cuda:0"` does not reach a wrapper.
    """
    if map_location is None or release < OWN_DEVICES_MAPPED:
        return device
    if isinstance(map_location, TagMap):
        key = TorchDevice(text=device) if is_wrapper else device
        return text_of(dict(map_location.pairs).get(key, key))
    if isinstance(map_location, Function):
        return BAD_MAP, (
            "RuntimeError: Callable map_location not supported with _rebuild_wrapper_subclass "
            "or _rebuild_device_tensor_from_numpy"
        )
    if isinstance(map_location, WrongType):
        return BAD_MAP, f"AssertionError: expected callable map_location, got {map_location.name}"
    return text_of(map_location)


def text_of(place: Place) -> str:
    """Return the text of a device."""
    return place if isinstance(place, str) else place.text


def _no_text(kind: str, release: Release) -> str:
    """Return what Python says where torch takes something else for a str; the last text since Python 3.11."""
    if kind == "bytes":
        if release >= MATCHES_WHOLE_TAG:
            return "TypeError: cannot use a string pattern on a bytes-like object"
        return "TypeError: startswith first arg must be bytes or a tuple of bytes, not str"
    if release >= MATCHES_WHOLE_TAG:
        return f"TypeError: expected string or bytes-like object, got '{kind}'"
    return f"AttributeError: '{kind}' object has no attribute 'startswith'"

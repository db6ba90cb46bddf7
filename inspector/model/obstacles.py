"""What keeps torch from reading a file at all, whatever the machine and whatever it is allowed to import.

What its zip reader refuses is found where the zip is read, see `containers.zip.torch_words`; the rest is
`torch/serialization.py`. The texts are those of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from inspector.containers.container import Mark
from inspector.containers.formats import format_of
from inspector.containers.zip.torch_words import miniz_words
from inspector.model.checkpoint import Checkpoint, Storage

_OLDEST_ZIP_VERSION, _NEWEST_ZIP_VERSION = 1, 10
_MOST_DIGITS = 19
_NUMBER = re.compile(r"[ \t\n\v\f\r]*\+?(-?)0*(\d+)", re.ASCII)  # what std::stoull takes, whatever follows
_FETCH = "Fetch or copy the file again."
_SAVE = "Open it and save it again with the program that wrote it."
_LOST: frozenset[Mark] = frozenset({"no-directory", "bad-directory"})
# What torch cannot read from the legacy format, by the name that the file imports for it.
_NOT_IN_LEGACY = {
    "torch.storage.UntypedStorage": (
        "AttributeError: type object 'torch.storage.UntypedStorage' has no attribute 'dtype'"
    ),
    "torch._C.Generator": "SystemError: <built-in method __setstate__ of torch._C.Generator object",
}


class Obstacle(NamedTuple):
    """One reason why `torch.load` stops.

    Attributes:
        finding: The id of the finding that explains it.
        message: torch's text, with the exception's name; its beginning, where the rest depends on the build.
        remedy: What to do about it, in one sentence.
    """

    finding: str
    message: str
    remedy: str


def file_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Give what torch says to the container, before it looks at any tensor; None if it takes it."""
    if is_gzipped(checkpoint):
        return Obstacle(
            "torch-refuses",
            "UnpicklingError: invalid load key, '\\x1f'.",
            "Unpack it with gunzip, or give torch.load what gzip.open returns.",
        )
    if not format_of(checkpoint.format).has_records:
        return None
    if checkpoint.refusal:
        finding, remedy = ("truncated", _FETCH) if lost_directory(checkpoint) else ("torch-refuses", _SAVE)
        return Obstacle(finding, checkpoint.refusal, remedy)
    versions = dict(checkpoint.versions)
    version = versions.get(".data/version", versions.get("version", str(_NEWEST_ZIP_VERSION)))
    return _version_obstacle(version) or _byteorder_obstacle(versions.get("byteorder"))


def storage_obstacles(checkpoint: Checkpoint) -> dict[str, Obstacle]:
    """Give, by storage, what torch says to records of a zip before it asks for their device."""
    return dict(_iter_storage_obstacles(checkpoint))


def _iter_storage_obstacles(checkpoint: Checkpoint) -> Iterator[tuple[str, Obstacle]]:
    if not format_of(checkpoint.format).has_records:
        return
    is_elsewhere = "torch-1.4" in checkpoint.marks
    refused = dict(checkpoint.refused)
    for storage in checkpoint.storages:
        if is_elsewhere or storage.missing or storage.expected_nbytes is not None:
            said = refused.get(storage.key)
            if said is not None and not is_elsewhere:
                yield storage.key, Obstacle("truncated", said, _FETCH)
            else:
                yield storage.key, _record_obstacle(storage, is_elsewhere=is_elsewhere)


def _record_obstacle(storage: Storage, *, is_elsewhere: bool) -> Obstacle:
    expected = storage.expected_nbytes
    if expected is not None and not is_elsewhere:
        return Obstacle(
            "truncated",
            f"RuntimeError: record size ({storage.nbytes} bytes) does not match expected size "
            f"({expected} bytes = {expected} elements * 1 bytes/element) for dtype Byte",
            _FETCH,
        )
    message = miniz_words(f"locating file data/{storage.key}", "file not found")
    if not is_elsewhere:
        return Obstacle("truncated", message, _FETCH)
    remedy = "Only torch 1.4 reads it: load it there, and save it in that version's usual format."
    return Obstacle("torch-refuses", message, remedy)


def legacy_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Give what torch says to a legacy file when every storage has its device; None if it takes it."""
    if not format_of(checkpoint.format).is_stream:
        return None
    for use in checkpoint.globals:
        if use.name in _NOT_IN_LEGACY:
            return Obstacle("torch-refuses", _NOT_IN_LEGACY[use.name], _SAVE)
    if "no-keys" in checkpoint.marks:
        return Obstacle("truncated", "EOFError", _FETCH)
    if any(storage.missing and storage.nbytes for storage in checkpoint.storages):
        return Obstacle("truncated", "RuntimeError: unexpected EOF", _FETCH)
    if "odd-keys" in checkpoint.marks:
        return Obstacle("torch-refuses", "AssertionError: storage key", _SAVE)
    return None


def find_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Give the first reason, or None if torch can read the file somewhere."""
    found = file_obstacle(checkpoint)
    if found is None:
        found = next((one for _, one in _iter_storage_obstacles(checkpoint)), None)
    return found or legacy_obstacle(checkpoint)


def has_wrong_checksum(checkpoint: Checkpoint) -> bool:
    """Say whether the pickle is not what its checksum says; torch does not look."""
    return "wrong-checksum" in checkpoint.marks


def lost_directory(checkpoint: Checkpoint) -> bool:
    """Say whether a zip was read without its directory, which the end of the file had."""
    return not checkpoint.marks.isdisjoint(_LOST)


def is_damaged(checkpoint: Checkpoint) -> bool:
    """Say whether bytes of the file are lost, so that saving what is whole is worth offering."""
    return lost_directory(checkpoint) or any(
        (storage.missing and storage.nbytes > 0) or storage.expected_nbytes is not None
        for storage in checkpoint.storages
    )


def is_gzipped(checkpoint: Checkpoint) -> bool:
    """Say whether the whole file is compressed."""
    return "gzip" in checkpoint.marks


def is_ambiguous(checkpoint: Checkpoint) -> bool:
    """Say whether the pickle may not be the one that torch reads."""
    return "ambiguous" in checkpoint.marks


def _version_obstacle(version: str) -> Obstacle | None:
    number = _NUMBER.match(version)
    if number is None:
        return Obstacle("torch-refuses", f"RuntimeError: Couldn't parse the version {version}", _FETCH)
    if len(number[2]) > _MOST_DIGITS:
        return Obstacle("torch-refuses", "IndexError: stoull", _FETCH)
    version = number[1] + number[2]
    read = f"RuntimeError: Attempted to read a PyTorch file with version {version}, but the"
    if int(version) < _OLDEST_ZIP_VERSION:
        message = f"{read} minimum supported version for reading is {_OLDEST_ZIP_VERSION}."
        return Obstacle("torch-refuses", message, _SAVE)
    if int(version) > _NEWEST_ZIP_VERSION:
        message = f"{read} maximum supported version for reading is {_NEWEST_ZIP_VERSION}."
        return Obstacle("newer-format", message, "Update torch, or save it again for an older one.")
    return None


def _byteorder_obstacle(byteorder: str | None) -> Obstacle | None:
    if byteorder in {None, "little", "big"}:
        return None
    return Obstacle("torch-refuses", f"ValueError: Unknown endianness type: {byteorder}", _FETCH)

"""What keeps torch from reading a file at all, whatever the machine and whatever it is allowed to import.

torch's zip reader is `caffe2/serialize/inline_container.cc`, the rest is `torch/serialization.py`; the texts
are those of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inspector.model.checkpoint import Checkpoint, Storage

_OLDEST_ZIP_VERSION, _NEWEST_ZIP_VERSION = 1, 10
_MOST_DIGITS = 19
_FETCH = "Fetch or copy the file again."
_SAVE = "Open it and save it again with the program that wrote it."
# How notes of the containers begin that mean as much.
_NO_DIRECTORY = "The zip has no directory"
_BAD_DIRECTORY = "The zip's directory is damaged"
_AMBIGUOUS = "Several records share a name"
_NO_VERSION = "The record 'version' is missing"
_GZIPPED = "Compressed with gzip"
_NO_FOLDER = "Not all records stand in one folder"
_UNDECODABLE_NAME = "The name of a record is no text"
_WRONG_CHECKSUM = "The checksum of data.pkl is wrong"
_TENSORS_FOLDER = "Written by torch 1.4"
# What torch cannot read from the legacy format, by the name that the file imports for it.
_NOT_IN_LEGACY = {
    "torch.storage.UntypedStorage": (
        "AttributeError: type object 'torch.storage.UntypedStorage' has no attribute 'dtype'"
    ),
    "torch._C.Generator": "SystemError: <built-in method __setstate__ of torch._C.Generator object",
}
_NO_VERSION_ERROR = (
    'RuntimeError: Expected hasRecord("version") to be true, but got false.  (Could this error message be '
    "improved?  If so, please report an enhancement request to PyTorch.)"
)

_NO_CENTRAL = "failed finding central directory"
_MINIZ = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your "
    "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was "
    "transferred incorrectly, or the file was modified after saving."
)
# What torch says to containers that were noted as such, in the order in which it looks.
_REFUSED = (
    (_NO_FOLDER, "RuntimeError: file in archive is not in a subdirectory"),
    (_NO_VERSION, _NO_VERSION_ERROR),
    (_UNDECODABLE_NAME, "UnicodeDecodeError: 'utf-8' codec can't decode byte"),
)


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
    if checkpoint.format != "zip":
        return None
    if lost_directory(checkpoint):
        message = f"RuntimeError: PytorchStreamReader failed reading zip archive: {_NO_CENTRAL}. {_MINIZ}"
        return Obstacle("truncated", message, _FETCH)
    for beginning, message in _REFUSED:
        if _has_note(checkpoint, beginning):
            return Obstacle("torch-refuses", message, _SAVE)
    versions = dict(checkpoint.versions)
    version = versions.get("version", versions.get(".data/version", str(_NEWEST_ZIP_VERSION)))
    return _version_obstacle(version) or _byteorder_obstacle(versions.get("byteorder"))


def storage_obstacles(checkpoint: Checkpoint) -> dict[str, Obstacle]:
    """Give, by storage, what torch says to records of a zip before it asks for their device."""
    return dict(_iter_storage_obstacles(checkpoint))


def _iter_storage_obstacles(checkpoint: Checkpoint) -> Iterator[tuple[str, Obstacle]]:
    if checkpoint.format != "zip":
        return
    is_elsewhere = _has_note(checkpoint, _TENSORS_FOLDER)
    for storage in checkpoint.storages:
        if is_elsewhere or storage.missing or storage.expected_nbytes is not None:
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
    message = (
        f"RuntimeError: PytorchStreamReader failed locating file data/{storage.key}: file not found. {_MINIZ}"
    )
    if not is_elsewhere:
        return Obstacle("truncated", message, _FETCH)
    remedy = "Only torch 1.4 reads it: load it there, and save it in that version's usual format."
    return Obstacle("torch-refuses", message, remedy)


def legacy_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Give what torch says to a legacy file when every storage has its device; None if it takes it."""
    if checkpoint.format != "legacy":
        return None
    for use in checkpoint.globals:
        if use.name in _NOT_IN_LEGACY:
            return Obstacle("torch-refuses", _NOT_IN_LEGACY[use.name], _SAVE)
    if any(storage.missing and storage.nbytes for storage in checkpoint.storages):
        return Obstacle("truncated", "RuntimeError: unexpected EOF", _FETCH)
    return None


def find_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Give the first reason, or None if torch can read the file somewhere."""
    found = file_obstacle(checkpoint)
    if found is None:
        found = next((one for _, one in _iter_storage_obstacles(checkpoint)), None)
    return found or legacy_obstacle(checkpoint)


def has_wrong_checksum(checkpoint: Checkpoint) -> bool:
    """Say whether the pickle is not what its checksum says; torch does not look."""
    return _has_note(checkpoint, _WRONG_CHECKSUM)


def lost_directory(checkpoint: Checkpoint) -> bool:
    """Say whether a zip was read without its directory, which the end of the file had."""
    return _has_note(checkpoint, _NO_DIRECTORY) or _has_note(checkpoint, _BAD_DIRECTORY)


def is_damaged(checkpoint: Checkpoint) -> bool:
    """Say whether bytes of the file are lost, so that saving what is whole is worth offering."""
    return lost_directory(checkpoint) or any(
        (storage.missing and storage.nbytes > 0) or storage.expected_nbytes is not None
        for storage in checkpoint.storages
    )


def is_gzipped(checkpoint: Checkpoint) -> bool:
    """Say whether the whole file is compressed."""
    return _has_note(checkpoint, _GZIPPED)


def is_ambiguous(checkpoint: Checkpoint) -> bool:
    """Say whether the pickle may not be the one that torch reads."""
    return _has_note(checkpoint, _AMBIGUOUS) or _has_note(checkpoint, _BAD_DIRECTORY)


def _has_note(checkpoint: Checkpoint, beginning: str) -> bool:
    return any(note.startswith(beginning) for note in checkpoint.notes)


def _version_obstacle(version: str) -> Obstacle | None:
    if not version.isascii() or not version.isdecimal() or len(version) > _MOST_DIGITS:
        return Obstacle("torch-refuses", f"RuntimeError: Couldn't parse the version {version}", _FETCH)
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

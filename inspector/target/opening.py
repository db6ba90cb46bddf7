"""What `torch.load` says before it reads a single value: to the container, and to its own arguments.

The order is that of `load` in `torch/serialization.py`, and of `load` in `torch/jit/_serialization.py`.
"""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.containers.zip.directory import MinizError, miniz_words
from inspector.containers.zip.records import PICKLE
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import file_obstacle, is_gzipped, packed_opcode
from inspector.target import versions
from inspector.target.call import (
    BAD_MAP,
    UNSAFE,
    LoadCall,
    Refusal,
    TorchDevice,
    refusal_message,
    text_of,
    type_name,
)
from inspector.target.profile import Profile
from inspector.target.restore import Failure, restore_failure, send_failure
from inspector.target.versions import Release, release_of

BAD_OPTION = "bad-load-option"
"""The finding for an argument that does not go with the file or with that torch."""

OTHER_LOADER = "other-loader"
"""The finding for a file that another function loads."""

_NEWEST_VERSION_BEFORE_1_6 = 2
_SUFFIX = ".safetensors"
_NO_FOLDER = "RuntimeError: file in archive is not in a subdirectory"


def opening_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Return (finding, message) for what stops a load before the pickle is read; None if nothing does."""
    if how.by_loader:
        return _of_container(checkpoint)
    if is_gzipped(checkpoint):
        return _stream_failure(checkpoint, target, how)
    return _FAILURES.get(checkpoint.format, _stream_failure)(checkpoint, target, how)


def can_map(checkpoint: Checkpoint, release: Release) -> bool:
    """Return whether `mmap=True` loads a file, and loads what is in it.

    torch maps the file and takes the bytes where a record stands, compressed or not, and says nothing: of a
    compressed record that is noise (`load_tensor` in `torch/serialization.py`).
    """
    if release < versions.HAS_MMAP or not format_of(checkpoint.format).has_records:
        return False
    return all(row.file_offset is not None or row.missing for row in checkpoint.storages if row.nbytes)


def _zip_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    release = release_of(target.torch_version)
    return (
        _old_torch_failure(checkpoint, release)
        or _of_container(checkpoint)
        or _unknown_argument(how, release, "Unpickler")
    )


def _safetensors_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Check a file that torch 2.13 has the library of that name read, if its path says so."""
    release = release_of(target.torch_version)
    if release < versions.READS_SAFETENSORS or not checkpoint.path.endswith(_SUFFIX):
        return OTHER_LOADER, _as_a_pickle(how, release)
    return _bad_map(how) or _of_container(checkpoint)


def _as_a_pickle(how: LoadCall, release: Release) -> str:
    """Return how the message begins where torch takes a file for a pickle, its first byte for an opcode."""
    if how.is_weights_only(release):
        return refusal_message(Refusal(finding=OTHER_LOADER), release)
    return "UnpicklingError: invalid load key"


def _bad_map(how: LoadCall) -> Failure | None:
    """Check what torch hands on as the device that everything goes to."""
    kind = {"dict": "dict", "function": "callable"}.get(type_name(how.map_location))
    if kind is None or how.map_location is None or isinstance(how.map_location, str | TorchDevice):
        return None
    return BAD_MAP, (
        f"RuntimeError: Loading safetensors file with {kind} map_location is not supported. "
        "Use a device string or torch.device instead."
    )


def _stream_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Check a file that is no zip: legacy, or compressed as a whole."""
    release = release_of(target.torch_version)
    if how.mmap and release >= versions.HAS_MMAP:
        return BAD_OPTION, _no_mmap(checkpoint.path, release)
    failure = _unknown_argument(how, release, "load")
    if failure is None and is_gzipped(checkpoint) and how.is_weights_only(release):
        return "torch-refuses", refusal_message(
            Refusal(finding="torch-refuses", opcode=packed_opcode(checkpoint)), release
        )
    return failure or _of_container(checkpoint)


def _no_mmap(path: str, release: Release) -> str:
    """Return what torch says to a legacy file; up to 2.2 that is a tuple by mistake."""
    please = "please torch.save your checkpoint with this option in order to use mmap."
    if release < versions.NAMES_MMAP_FILE:
        return (
            "RuntimeError: ('mmap can only be used with files saved with ', "
            f"'`torch.save(_use_new_zipfile_serialization=True), {please}')"
        )
    return (
        "RuntimeError: mmap can only be used with files saved with "
        f"`torch.save({path}, _use_new_zipfile_serialization=True), {please}"
    )


def _of_container(checkpoint: Checkpoint) -> Failure | None:
    obstacle = file_obstacle(checkpoint)
    return None if obstacle is None else (obstacle.kind.finding, obstacle.message)


def _old_torch_failure(checkpoint: Checkpoint, release: Release) -> Failure | None:
    """Check a zip against a torch that is older than the format."""
    if release < versions.READS_ZIP:
        return "newer-format", (
            f"RuntimeError: {checkpoint.path} is a zip archive (did you mean to use torch.jit.load()?)"
        )
    version = dict(checkpoint.versions).get("version", "")
    is_newer = version.isdecimal() and int(version[:9]) > _NEWEST_VERSION_BEFORE_1_6
    if release < versions.READS_ZIP_3 and is_newer:
        return "newer-format", (  # the beginning names a place in torch's sources
            f"RuntimeError: Attempted to read a PyTorch file with version {version}, but the maximum "
            f"supported version for reading is {_NEWEST_VERSION_BEFORE_1_6}. "
            "Your PyTorch installation may be too old."
        )
    return None


def _unknown_argument(how: LoadCall, release: Release, callee: str) -> Failure | None:
    """Check arguments that are younger than the target's torch, which hands them on to Python's unpickler."""
    for name, is_given, since in (
        ("weights_only", how.weights_only is not None, versions.HAS_WEIGHTS_ONLY),
        ("mmap", how.mmap, versions.HAS_MMAP),
    ):
        if is_given and release < since:
            return BAD_OPTION, f"TypeError: '{name}' is an invalid keyword argument for {callee}()"
    return None


def _script_failure(_checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Check TorchScript, which `torch.load` hands on to `torch.jit.load`."""
    release = release_of(target.torch_version)
    if how.is_weights_only(release):
        return "runs-code", (
            "RuntimeError: Cannot use ``weights_only=True`` with TorchScript archives passed to "
            f"``torch.load``. {UNSAFE}"
        )
    place = how.map_location
    if place is None:
        return None
    if not isinstance(place, str | TorchDevice):
        return BAD_MAP, (
            "ValueError: map_location should be either None, string or torch.device, "
            f"but got type: <class '{type_name(place)}'>"
        )
    text = text_of(place)
    if text.startswith("cuda"):
        return restore_failure(text, target)
    failure = send_failure(text, target)
    if failure is not None and failure[0] == "xpu-unavailable":  # said by C++, not by Python's part
        return failure[0], "RuntimeError: PyTorch is not linked with support for xpu devices"
    return failure


def _archive_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Check an archive for another loader, in which torch looks for the object's pickle."""
    failure = _zip_failure(checkpoint, target, how)
    if failure is not None:
        return failure
    if not checkpoint.versions:  # before torch 2.8, torch.export wrote its records into no folder
        return OTHER_LOADER, _NO_FOLDER
    return OTHER_LOADER, miniz_words(f"locating file {PICKLE}", MinizError.NOT_FOUND)


def _agent_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Check an agent of Stable-Baselines3, whose records stand in no folder."""
    failure = _zip_failure(checkpoint, target, how)
    return failure or (OTHER_LOADER, _NO_FOLDER)


def _pickle_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Check a plain pickle, which torch takes for the magic number of a legacy file, and runs."""
    release = release_of(target.torch_version)
    failure = _stream_failure(checkpoint, target, how)
    if failure is not None:
        return OTHER_LOADER, failure[1]
    refusal = how.refusal
    stops = refusal is not None and (refusal.opcode is not None or bool(refusal.name))
    if refusal is not None and stops and how.is_weights_only(release):
        return OTHER_LOADER, refusal_message(refusal, release)
    return OTHER_LOADER, "RuntimeError: Invalid magic number; corrupt file?"


def _array_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> Failure | None:
    """Check an array, whose first byte torch takes for an opcode that there is not."""
    failure = _stream_failure(checkpoint, target, how)
    if failure is not None and failure[0] == BAD_OPTION:
        return failure
    return OTHER_LOADER, _as_a_pickle(how, release_of(target.torch_version))


_FAILURES = {
    "pickle": _pickle_failure,
    "joblib": _pickle_failure,
    "zip": _zip_failure,
    "torchscript": _script_failure,
    "safetensors": _safetensors_failure,
    "pt2": _archive_failure,
    "package": _archive_failure,
    "stable-baselines3": _agent_failure,
    "npz": _agent_failure,
    "npy": _array_failure,
}

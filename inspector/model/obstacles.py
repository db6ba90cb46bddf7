"""What keeps torch from reading a file at all, whatever the machine and whatever it is allowed to import.

What its zip reader refuses is found where the zip is read; the rest is `torch/serialization.py`.
The texts are those of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from inspector.containers.formats import format_of
from inspector.containers.notes import AMBIGUOUS, NoteKind
from inspector.containers.zip.directory import MinizError, miniz_words
from inspector.model.arguments import UNKNOWN, kind_of_name
from inspector.model.checkpoint import Checkpoint, Fault, GlobalUse, KeyFault, Storage, Tensor, Verb
from inspector.model.once import once
from inspector.model.tensors.views import PAST, end_of, torch_words
from inspector.pickles.oddities import OddityKind, StreamFault
from inspector.pickles.values import present_name

_OLDEST_ZIP_VERSION, _NEWEST_ZIP_VERSION = 1, 10
_MOST_DIGITS = 19
_NUMBER = re.compile(r"[ \t\n\v\f\r]*\+?(-?)0*(\d+)", re.ASCII)  # what std::stoull takes, whatever follows
_DIRECTORY_LOST = frozenset({NoteKind.NO_DIRECTORY, NoteKind.BAD_DIRECTORY})
# What torch cannot read from the legacy format, by the name that the file imports for it.
_NOT_IN_LEGACY = {
    "torch.storage.UntypedStorage": (
        "AttributeError: type object 'torch.storage.UntypedStorage' has no attribute 'dtype'"
    ),
    "torch._C.Generator": "SystemError: <built-in method __setstate__ of torch._C.Generator object",
    # It reads the sizes when their bytes are not there yet, and says what it makes of the noise.
    "torch._utils._rebuild_nested_tensor": "RuntimeError",
}
_HANGS = "(no message: it does not come back)"
CALLED_WRONGLY = "TypeError"
_PRESENT_NAMES = 3  # from this protocol on Python takes names of Python 2 as they are
# What the restricted unpickler says, and Python's.
_OF_FAULT: dict[Fault, tuple[str, str]] = {
    KeyFault.UNHASHABLE: ("TypeError: unhashable type", "TypeError: unhashable type"),
    KeyFault.ENDLESS: (_HANGS, _HANGS),
    KeyFault.ALIKE: (_HANGS, _HANGS),
    KeyFault.DEEP: ("Segmentation fault", "Segmentation fault"),
    StreamFault.UNDECODABLE_NAME: ("UnicodeDecodeError", "UnicodeDecodeError"),
    StreamFault.UNDECODABLE_TEXT: ("UnicodeDecodeError", "UnicodeDecodeError"),
    StreamFault.ARGUMENTS: ("", "TypeError: argument list must be a tuple"),
    StreamFault.LONG_FRAME: ("", "UnpicklingError: pickle data was truncated"),
    StreamFault.UNKNOWN_PROTOCOL: ("", "ValueError: unsupported pickle protocol: "),
    StreamFault.NO_NUMBER: ("", "ValueError: could not convert string to "),
    OddityKind.OUT_OF_BAND_BUFFER: ("", "UnpicklingError: pickle stream refers to out-of-band data but no "),
    # Its reader in C takes other instructions there, see `docs/security.md`.
    OddityKind.FRAME_STRADDLE: ("", "UnpicklingError"),
    OddityKind.ODD_ITEMS: ("IndexError: list index out of range", "UnpicklingError: odd number of items"),
    OddityKind.APPEND_ON_OTHER: ("", "AttributeError"),
    OddityKind.SETITEM_ON_OTHER: ("", "TypeError"),
    OddityKind.BUILD_ON_OTHER: ("", "UnpicklingError: state is not a dictionary"),
}


_FETCH = "Fetch or copy the file again."
_SAVE = "Open it and save it again with the program that wrote it."
_ENGINE = (
    'DeepSpeed\'s engine loads it: set "checkpoint": {"load_universal": true} in its configuration. For '
    "torch.load write one file."
)
_REFUSES = "torch-refuses"


class ObstacleKind(Enum):
    """What stops `torch.load`, the id of the finding that explains it, and what to do about it."""

    # the whole file is compressed
    GZIP = 1, _REFUSES, "Unpack it first, or give torch.load what gzip.open returns (bz2.open, lzma.open)."
    # the directory of the zip is lost or damaged
    DIRECTORY = 2, "truncated", _FETCH
    # its zip reader refuses the archive
    ARCHIVE = 3, _REFUSES, _SAVE
    BAD_VERSION = 4, _REFUSES, _FETCH
    OLDER_VERSION = 5, _REFUSES, _SAVE
    NEWER_VERSION = 6, "newer-format", "Update torch, or save it again for an older one."
    BYTE_ORDER = 7, _REFUSES, _FETCH
    # the record of a storage is missing, or refused
    RECORD = 8, "truncated", _FETCH
    # it is not as long as the pickle says
    RECORD_SIZE = 9, "truncated", _FETCH
    # it is where only torch 1.4 looks for it
    TORCH_1_4 = (
        *(10, _REFUSES),
        "Only torch 1.4 reads it: load it there, and save it in that version's usual format.",
    )
    # the legacy format cannot hold what the file imports
    LEGACY_TYPE = 11, _REFUSES, _SAVE
    # a legacy file ends before its last storage does
    CUT_OFF = 12, "truncated", _FETCH
    # one of several files is not there, or cannot be read
    MISSING_FILE = 13, "missing-part", "Fetch the missing files, and put them beside the others."
    # the only file of weights has a name that its loader must be told
    VARIANT = 19, _REFUSES, "Tell it which variant to take, as the printed code does."
    # an array of objects is a pickle
    OBJECTS = (
        *(14, _REFUSES),
        "Only if you trust whoever made it, give numpy.load the option allow_pickle=True.",
    )
    # a universal checkpoint of DeepSpeed has no states of ranks to join
    UNIVERSAL = 15, _REFUSES, _ENGINE
    # the list of storage keys is not that of the pickle
    ODD_KEYS = 16, _REFUSES, _SAVE
    # a tensor cannot be what the pickle says
    TENSOR = 17, "invalid-tensor", _FETCH
    # the pickle does with its values what cannot be done
    PICKLE = 18, _REFUSES, _SAVE

    def __init__(self, _number: int, finding: str, remedy: str) -> None:
        self.finding = finding
        self.remedy = remedy


# By how a file is compressed: its first byte that is no opcode to torch, and what Python's unpickler says.
_PACKED = {
    "gzip": (0x1F, "invalid load key, '\\x1f'."),
    "xz": (0xFD, "invalid load key, '\\xfd'."),
    "bzip2": (0x42, "pickle data was truncated"),
    "lzma": (0x00, "invalid load key, '\\x00'."),
    "zlib": (0x78, "invalid load key, 'x'."),
    "joblib's zlib": (0x5A, "invalid load key, 'Z'."),
    "lz4": (0x04, "invalid load key, '\\x04'."),
    "zstd": (0xB5, "invalid load key, '\\xb5'."),  # behind the MARK that it begins with
}
_TRUNCATED = "UnpicklingError: pickle data was truncated"


class Obstacle(NamedTuple):
    """One reason why `torch.load` stops.

    Attributes:
        message: torch's text, with the exception's name; its beginning, where the rest depends on the build.
    """

    kind: ObstacleKind
    message: str


def file_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Return what torch says to the container, before it looks at any tensor; None if it takes it."""
    if is_gzipped(checkpoint) and not format_of(checkpoint.format).unchecked:
        return Obstacle(ObstacleKind.GZIP, f"UnpicklingError: {_PACKED[packing(checkpoint)][1]}")
    if checkpoint.refusal:
        return Obstacle(_refusing(checkpoint), checkpoint.refusal)
    if not format_of(checkpoint.format).has_records:
        return None
    versions = dict(checkpoint.versions)
    version = versions.get(".data/version", versions.get("version", str(_NEWEST_ZIP_VERSION)))
    return _version_obstacle(version) or _byteorder_obstacle(versions.get("byteorder"))


_NOTED = (
    (NoteKind.OBJECT_ARRAYS, ObstacleKind.OBJECTS),
    (NoteKind.UNIVERSAL, ObstacleKind.UNIVERSAL),
    (NoteKind.MISSING_PART, ObstacleKind.MISSING_FILE),
    (NoteKind.PART_OUTSIDE, ObstacleKind.MISSING_FILE),
    (NoteKind.VARIANT_TAKEN, ObstacleKind.VARIANT),
)


def _refusing(checkpoint: Checkpoint) -> ObstacleKind:
    """Return what a reader refuses that takes none of a file."""
    if lost_directory(checkpoint):
        return ObstacleKind.DIRECTORY
    noted = next((kind for note, kind in _NOTED if _has(checkpoint, note)), None)
    if noted is not None:
        return noted
    if _has(checkpoint, NoteKind.UNREAD_PART):  # one of several files, or a record of an archive
        return ObstacleKind.MISSING_FILE if checkpoint.parts else ObstacleKind.RECORD
    has_records = format_of(checkpoint.format).has_records
    is_cut = not has_records and any(row.missing and row.nbytes for row in checkpoint.storages)
    return ObstacleKind.CUT_OFF if is_cut else ObstacleKind.ARCHIVE


@once
def storage_obstacles(checkpoint: Checkpoint) -> dict[str, Obstacle]:
    """Return, by storage, what torch says to records of a zip before it asks for their device."""
    return dict(_iter_storage_obstacles(checkpoint))


def _iter_storage_obstacles(checkpoint: Checkpoint) -> Iterator[tuple[str, Obstacle]]:
    if not format_of(checkpoint.format).has_records:
        return
    is_elsewhere = _has(checkpoint, NoteKind.TORCH_1_4)
    refused = dict(checkpoint.refused)
    for storage in checkpoint.storages:
        if is_elsewhere or storage.missing or storage.expected_nbytes is not None:
            yield storage.key, _record_obstacle(storage, refused.get(storage.key), is_elsewhere=is_elsewhere)


def _record_obstacle(storage: Storage, refusal: str | None, *, is_elsewhere: bool) -> Obstacle:
    expected = storage.expected_nbytes
    not_found = miniz_words(f"locating file data/{storage.key}", MinizError.NOT_FOUND)
    if is_elsewhere:
        return Obstacle(ObstacleKind.TORCH_1_4, not_found)
    if refusal is None and expected is not None:
        return Obstacle(
            ObstacleKind.RECORD_SIZE,
            f"RuntimeError: record size ({storage.nbytes} bytes) does not match expected size "
            f"({expected} bytes = {expected} elements * 1 bytes/element) for dtype Byte",
        )
    return Obstacle(ObstacleKind.RECORD, refusal or not_found)


def legacy_type(checkpoint: Checkpoint) -> GlobalUse | None:
    """Return the first name of what torch cannot read from the legacy format; it stops there."""
    if not format_of(checkpoint.format).is_stream:
        return None
    return next((use for use in checkpoint.globals if use.name in _NOT_IN_LEGACY), None)


def legacy_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Return what torch says to a legacy file when every storage has its device; None if it takes it."""
    if not format_of(checkpoint.format).is_stream:
        is_cut = _has(checkpoint, NoteKind.CUT_PICKLE)
        return Obstacle(ObstacleKind.CUT_OFF, _TRUNCATED) if is_cut else None
    named = legacy_type(checkpoint)
    if named is not None:
        return Obstacle(ObstacleKind.LEGACY_TYPE, _NOT_IN_LEGACY[named.name])
    if _has(checkpoint, NoteKind.NO_KEYS):
        return Obstacle(ObstacleKind.CUT_OFF, "EOFError")
    found = _legacy_storage_obstacle(checkpoint)
    if found is None and _has(checkpoint, NoteKind.ODD_KEYS):
        return Obstacle(ObstacleKind.ODD_KEYS, "AssertionError: storage key")
    return found


def _legacy_storage_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    past = [row for row in checkpoint.tensors if (row.problem or "").startswith(PAST)]
    for storage in checkpoint.storages:
        if storage.missing:  # also where nothing but its length is
            return Obstacle(ObstacleKind.CUT_OFF, "RuntimeError: unexpected EOF")
        if not past and storage.expected_nbytes is None:
            continue
        declared = storage.nbytes if storage.expected_nbytes is None else storage.expected_nbytes
        ends = [end_of(row) for row in past if row.storage == storage.key]
        if max(declared, *ends, 0) != storage.nbytes:  # it grows with the tensors that need more
            return Obstacle(ObstacleKind.TENSOR, "RuntimeError: storage has wrong byte size: expected ")
    return None


@once
def tensor_obstacles(checkpoint: Checkpoint) -> dict[int, Obstacle]:
    """Return, by the row of a tensor, what torch says on making it; of those that it makes, nothing.

    A legacy file's storages grow with their tensors, and do not fit when their bytes are read.
    """
    wrong = [(number, row) for number, row in enumerate(checkpoint.tensors) if row.problem is not None]
    found = ((number, _tensor_obstacle(checkpoint, row)) for number, row in wrong)
    return {number: obstacle for number, obstacle in found if obstacle is not None}


def _tensor_obstacle(checkpoint: Checkpoint, row: Tensor) -> Obstacle | None:
    problem = row.problem or ""
    if format_of(checkpoint.format).is_stream and problem.startswith(PAST) and row.dtype[:1] != "q":
        return None
    words = torch_words(problem)
    return Obstacle(ObstacleKind.TENSOR, words) if words else None


def pickle_obstacle(checkpoint: Checkpoint, *, restricted: bool) -> Obstacle | None:
    """Return what an unpickler raises that may import every name: torch's restricted one, or Python's."""
    needs = checkpoint.needs
    words = [_OF_FAULT[fault][not restricted] for fault in needs.faults if fault in _OF_FAULT]
    words += [_words_of_use(checkpoint, name, verb, restricted=restricted) for name, verb in needs.uses]
    if not restricted and needs.protocol >= _PRESENT_NAMES:
        words += ["ModuleNotFoundError" for use in checkpoint.globals if present_name(use.name) != use.name]
    first = next(filter(None, words), "")
    return Obstacle(ObstacleKind.PICKLE, first) if first else None


def _words_of_use(checkpoint: Checkpoint, name: str, verb: Verb, *, restricted: bool) -> str:
    if verb in {Verb.MISCALL, Verb.MISBUILD, Verb.MISREAD}:
        return CALLED_WRONGLY
    if restricted:
        return ""  # an error of its own, which torch wraps
    kind = kind_of_name(present_name(name))
    if verb is Verb.LOAD and not format_of(checkpoint.format).is_stream:
        return "AssertionError"
    if verb is Verb.CALL and not name:  # of what a listed name makes, nothing can be called
        return (
            CALLED_WRONGLY
            if UNKNOWN not in {kind_of_name(present_name(use.name)) for use in checkpoint.globals}
            else ""
        )
    if verb is Verb.APPEND and kind != UNKNOWN and name != "builtins.bytearray":
        return "AttributeError"
    is_mapping = present_name(name) in {"collections.OrderedDict", "collections.Counter"}
    return CALLED_WRONGLY if verb is Verb.SETITEM and kind != UNKNOWN and not is_mapping else ""


def find_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Return the first reason, or None if torch can read the file somewhere."""
    found = file_obstacle(checkpoint)
    if found is None:
        found = next(iter(storage_obstacles(checkpoint).values()), None)
    if found is None:
        found = next(iter(tensor_obstacles(checkpoint).values()), None)
    return found or legacy_obstacle(checkpoint)


def has_wrong_checksum(checkpoint: Checkpoint) -> bool:
    """Return whether the pickle is not what its checksum says; torch does not look."""
    return _has(checkpoint, NoteKind.WRONG_CHECKSUM)


def lost_directory(checkpoint: Checkpoint) -> bool:
    """Return whether a zip was read without its directory, which the end of the file had."""
    return _has(checkpoint, *_DIRECTORY_LOST)


@once
def is_damaged(checkpoint: Checkpoint) -> bool:
    """Return whether bytes of the file are lost, so that saving what is whole is worth offering."""
    if lost_directory(checkpoint) or _has(checkpoint, NoteKind.CUT_PICKLE):
        return True
    return any(
        (storage.missing and storage.nbytes > 0) or storage.expected_nbytes is not None
        for storage in checkpoint.storages
    )


def is_gzipped(checkpoint: Checkpoint) -> bool:
    """Return whether the whole file is compressed."""
    return _has(checkpoint, NoteKind.GZIP)


def packing(checkpoint: Checkpoint) -> str:
    """Return how the whole file is compressed; empty where it is not."""
    return next((note.values[0] for note in checkpoint.notes if note.kind is NoteKind.GZIP), "")


def packed_opcode(checkpoint: Checkpoint) -> int:
    """Return the first byte of a compressed file that torch's restricted unpickler does not know."""
    return _PACKED[packing(checkpoint)][0]


def is_ambiguous(checkpoint: Checkpoint) -> bool:
    """Return whether the pickle may not be the one that torch reads."""
    return _has(checkpoint, *AMBIGUOUS)


def _has(checkpoint: Checkpoint, *kinds: NoteKind) -> bool:
    return any(note.kind in kinds for note in checkpoint.notes)


def _version_obstacle(version: str) -> Obstacle | None:
    number = _NUMBER.match(version)
    if number is None:
        return Obstacle(ObstacleKind.BAD_VERSION, f"RuntimeError: Couldn't parse the version {version}")
    if len(number[2]) > _MOST_DIGITS:
        return Obstacle(ObstacleKind.BAD_VERSION, "IndexError: stoull")
    version = number[1] + number[2]
    read = f"RuntimeError: Attempted to read a PyTorch file with version {version}, but the"
    if int(version) < _OLDEST_ZIP_VERSION:
        message = f"{read} minimum supported version for reading is {_OLDEST_ZIP_VERSION}."
        return Obstacle(ObstacleKind.OLDER_VERSION, message)
    if int(version) > _NEWEST_ZIP_VERSION:
        message = f"{read} maximum supported version for reading is {_NEWEST_ZIP_VERSION}."
        return Obstacle(ObstacleKind.NEWER_VERSION, message)
    return None


def _byteorder_obstacle(byteorder: str | None) -> Obstacle | None:
    if byteorder in {None, "little", "big"}:
        return None
    return Obstacle(ObstacleKind.BYTE_ORDER, f"ValueError: Unknown endianness type: {byteorder}")

"""Which format a zip is of, told by the names of its records: half of all formats of models are zips.

The directory is read once, here, and handed on to the reader. A zip of `torch.save`, which most are, is told
before anything of the table is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from inspector.containers.container import Extent
from inspector.containers.source import Source
from inspector.containers.zip.directory import (
    ZipDirectory,
    ZipEntry,
    payload_offset,
    read_directory,
)
from inspector.containers.zip.metadata import is_listed
from inspector.errors import ContainerError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress

PICKLE = "data.pkl"
_DATA = "data/"
_PACKAGED = ".data/extern_modules"
_FOR_OTHERS = (".npy", ".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib")
_PLAIN = "zip"
_SHARD = "distcp"
_SHARDS = ".distcp"
_CONSTANTS = "constants.pkl"  # torch's own mark of TorchScript: `_is_torchscript_zip`


class Records:
    """The records of a torch archive by their name below the archive's folder, which torch finds in any case.

    Attributes:
        directory: The zip's directory.
        names: Their full names, in the order of the directory.
        prefix: The archive's folder with its slash; empty where the first record stands in none.
        own: What the keys of storages begin with that are names of records themselves; empty for none.
        pattern: What the records of all storages are named, where that is known; empty for torch.save's ways.
    """

    own = ""
    pattern = ""

    def __init__(self, directory: ZipDirectory) -> None:
        self.directory = directory
        entries = directory.entries
        self.names = [entry.name for entry in entries]
        folder, slash, _ = (self.names[0] if self.names else "").partition("/")
        self.prefix = folder + slash if slash else ""
        # Of several of one name the first counts here, while miniz takes whichever its search hits on.
        self._by_name = {_folded(entry.name): entry for entry in reversed(entries)}

    def get(self, name: str) -> ZipEntry | None:
        """Return a record by its name below the folder, or None."""
        return self._by_name.get(_folded(self.prefix + name))

    def storage(self, key: str) -> ZipEntry | None:
        """Return the record of a storage, or None."""
        if self.own and key.startswith(self.own):
            return self.get(key)
        if self.pattern:
            return self.get(self.pattern.format(key))
        return self.get(f"data/{key}") or self.get(f"tensors/{key}")

    def for_others(self) -> list[ZipEntry]:
        """Return the records that other readers than torch.load take for arrays or pickles, by their names.

        `torch.package` unpickles whatever it is asked for; its mark may stand in a zip of torch.save as well.
        """
        pickle, every = _folded(self.prefix + PICKLE), self.get(_PACKAGED) is not None
        return [
            entry
            for entry in self.directory.entries
            if (every or _folded(entry.name).partition("\0")[0].endswith(_FOR_OTHERS))
            and _folded(entry.name) != pickle
        ]

    def share_a_name(self) -> bool:
        """Return whether programs may take one record for another: torch compares names without case."""
        if any("\0" in name for name in self.names):
            return True
        return len(set(map(str.lower, self.names))) < len(self.names)

    def lists(self, name: str) -> bool:
        """Return whether torch lists a record by just this name below the folder."""
        return is_listed(name, self.prefix, self.names)

    def below(self, folder: str) -> Iterator[str]:
        """Yield the names of the records below a folder of the archive, which is named with its slash."""
        start = self.prefix + folder
        return (name[len(self.prefix) :] for name in self.names if name.startswith(start))


def _folded(name: str) -> str:
    """Return a name as miniz compares it: the capital letters of ASCII are small."""
    if name.islower():
        return name
    if name.isascii():
        return name.lower()
    return name.encode("utf-8", "surrogateescape").lower().decode("utf-8", "surrogateescape")


class ZipKind(NamedTuple):
    """One row: how to tell a zip by its names.

    Attributes:
        name: The name of its format, the same as that of its row in `formats.FORMATS`.
        matches: Says whether a zip with these records is one; asked where torch.save did not write it, and
            after all rows above said no.
    """

    name: str
    matches: Callable[[Records], bool]


def _lists(*names: str) -> Callable[[Records], bool]:
    return lambda records: any(map(records.lists, names))


def _all_of(*names: str) -> Callable[[Records], bool]:
    """Return what tells whether all of these stand in the zip, by their full names."""
    return lambda records: set(names).issubset(records.names)


def _below(folder: str) -> Callable[[Records], bool]:
    return lambda records: next(records.below(folder), None) is not None


def _only(ending: str) -> Callable[[Records], bool]:
    return lambda records: bool(records.names) and all(name.endswith(ending) for name in records.names)


ZIP_KINDS: tuple[ZipKind, ...] = (
    ZipKind("torchscript", _lists(_CONSTANTS, "model.json")),
    ZipKind("pt2", _lists("archive_format")),
    ZipKind("pt2", _all_of("serialized_exported_program.json")),
    ZipKind("pt2", _below("data/aotinductor/")),
    ZipKind("package", _lists(".data/extern_modules")),
    ZipKind("npz", _only(".npy")),
    ZipKind("stable-baselines3", _all_of("data", "policy.pth")),
    ZipKind("stable-baselines3", _all_of("_stable_baselines3_version")),
)


def kind_of(source: Source, limits: Limits, progress: Progress) -> str:
    """Return the name of a zip's format: that of `torch.save` where nothing says that it is another.

    Its records are kept for the reader. Of a damaged one nothing is known, and the reader sees to it.
    """
    try:
        records = Records(read_directory(source, limits, progress))
    except ContainerError:
        return _SHARD if _is_shard(source) else _PLAIN
    if str(source.path).endswith(_SHARDS) or (records.directory.doubts and _is_shard(source)):
        return _SHARD
    source.kept = records
    # torch.load dispatches TorchScript alone; of the others it loads the data.pkl, if there is one.
    if records.get(PICKLE) is not None and not records.lists(_CONSTANTS):
        return _PLAIN
    return next((kind.name for kind in ZIP_KINDS if kind.matches(records)), _PLAIN)


def _is_shard(source: Source) -> bool:
    """Return whether several zips stand one behind the other, as in a distributed checkpoint."""
    from inspector.containers.dcp.zips import ends_in_row  # noqa: PLC0415 - healthy zips never need it

    return str(source.path).endswith(_SHARDS) or ends_in_row(source)


def find_by(source: Source, *, own: str = "", pattern: str = "") -> Callable[[str], Extent | None]:
    """Return what finds the bytes of a storage by its key, in an archive that names their records so."""
    records = Records(read_directory(source, DEFAULT_LIMITS))
    records.own, records.pattern = own, pattern

    def find(key: str) -> Extent | None:
        entry = records.storage(key)
        if entry is None:
            return None
        start = payload_offset(source, entry)
        return Extent(start, entry.stored_nbytes, entry.nbytes, entry.method, entry.crc)

    return find


def records_of(source: Source, limits: Limits, progress: Progress) -> Records:
    """Return the records of a zip: those that were kept, once, else they are read."""
    kept, source.kept = source.kept, None
    return kept if isinstance(kept, Records) else Records(read_directory(source, limits, progress))

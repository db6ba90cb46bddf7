"""Saved objects that are no tensors of their own: small files of `torch.save` within the files of ranks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inspector.containers.container import Container, StoredBytes
from inspector.containers.gathered.window import Window
from inspector.containers.notes import AMBIGUOUS
from inspector.containers.persistent_ids import StorageId, parse_storage_id, rename_storage
from inspector.containers.programs import Programs
from inspector.containers.source import Source
from inspector.containers.zip.archive import read_torchzip
from inspector.errors import DamagedError
from inspector.limits import Limits
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.records import replace

_MOST_PICKLE_NBYTES = 64 << 20
VALUES = "saved values"
"""The name of the programs that make them."""


class Values:
    """Reads values, and gathers what each of them brings: programs, and storages under keys of their own.

    Attributes:
        storage_ids: The storages of tensors within values, by key.
        stored: Where their bytes are.
    """

    def __init__(
        self, programs: Programs, limits: Limits, progress: Progress, taken: Collection[str] = ()
    ) -> None:
        """Prepare to read; programs are added to these, and no storage gets a key that is taken."""
        self.storage_ids: dict[str, StorageId] = {}
        self.stored: dict[str, StoredBytes] = {}
        self._taken = set(taken)
        self._programs = programs
        # What is large must not stay in a stream that nobody can ask for it later.
        self._limits = replace(limits, text_nbytes=_MOST_PICKLE_NBYTES, pickle_nbytes=_MOST_PICKLE_NBYTES)
        self._progress = progress

    def read(self, source: Source, part: int, offset: int, nbytes: int, name: str) -> Value:
        """Return a value.

        Args:
            source: The file that it is in.
            part: The number of that file.
            offset: Where it begins.
            nbytes: How long it is.
            name: What its storages are called.
        """
        window = Window(source, offset, nbytes)
        try:
            container = read_torchzip(window, self._limits, self._progress)
        finally:
            self._programs.adopt(window.programs, VALUES, "object")
        if any(note.kind in AMBIGUOUS for note in container.notes):
            raise DamagedError("a value is damaged", where=f"{name} in {source.path}")
        for storage_id, stored in _renamed(container, name, self._taken):
            self.storage_ids[storage_id.key] = storage_id
            if stored is not None:
                place = None if stored.offset is None else stored.offset + offset
                self.stored[storage_id.key] = StoredBytes(part, place, stored.nbytes)
        return container.root


def _renamed(
    container: Container, name: str, taken: set[str]
) -> Iterator[tuple[StorageId, StoredBytes | None]]:
    """Yield the storages under keys that no other has, and let the persistent ids name these."""
    renamed: dict[str, StorageId] = {}
    for key, storage_id in container.storage_ids.items():
        new = f"{name}:{key}"
        while new in taken:
            new += "'"
        taken.add(new)
        renamed[key] = storage_id._replace(key=new)
    for node in container.pickle().persistent_ids:
        own = parse_storage_id(node)
        if own is not None:
            rename_storage(node, own._replace(key=renamed[own.key].key))
    for key, storage_id in renamed.items():
        yield storage_id, container.stored.get(key)

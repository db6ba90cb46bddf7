"""What every container reader gives: the object's pickle, the storages' places, and facts about the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.containers.programs import Program
from inspector.containers.source import Stamp
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.pickles.machine import Stream
from inspector.pickles.values import PersistentId
from inspector.records import dataclass
from inspector.units import format_count, format_nbytes


class StoredBytes(NamedTuple):
    """The bytes of one storage: where they start in the file (None when compressed) and how many."""

    file_offset: int | None
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One file, taken apart.

    Attributes:
        path: The file as it was named.
        format: `zip` or `legacy`, in the words of `show --json`.
        file_nbytes: Size of the file.
        stream: The pickle of the saved object.
        programs: All pickles that `torch.load` runs, and those that other readers run in their place, in the
            order in which they are run. The object's is one of them.
        pickle_offset: Where that pickle starts in the file; -1 when it is compressed.
        pickle_nbytes: How long it is, in bytes, up to and with its STOP.
        storage_ids: The first persistent id of each storage by key, in the order of first use. torch counts
            only the first.
        stored: The bytes of each storage by key; a storage that is missing has no entry.
        versions: Versions written in the file.
        notes: What there is to know about the file; verdicts rest on their kinds.
        refusal: What torch's reader says to the container, exception and all; empty where it opens it.
        refused: What it says to the record of a storage, as (key, words).
        stamp: What the file looked like before it was read; None for one that no path leads to.
    """

    path: str
    format: str
    file_nbytes: int
    stream: Stream
    programs: tuple[Program, ...]
    pickle_offset: int
    pickle_nbytes: int
    storage_ids: dict[str, StorageId]
    stored: dict[str, StoredBytes]
    versions: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()
    refusal: str = ""
    refused: tuple[tuple[str, str], ...] = ()
    stamp: Stamp | None = None


def first_storage_ids(nodes: Iterable[PersistentId], limits: Limits) -> dict[str, StorageId]:
    """Give the first persistent id of each storage, by key and in order; views have keys of their own.

    Raises:
        ContainerError: There are more storages than the limits allow.
    """
    found: dict[str, StorageId] = {}
    for node in nodes:
        storage_id = parse_storage_id(node)
        if storage_id is not None:
            found.setdefault(storage_id.key, storage_id)
            if storage_id.view is not None:
                found.setdefault(storage_id.view[0], storage_id.viewed())
    if len(found) > limits.storages:
        raise ContainerError(f"the file has more than {limits.storages:,} storages")
    return found


def damage_note(storage_ids: Mapping[str, StorageId], stored: Mapping[str, StoredBytes]) -> Note | None:
    """Return how much of a file is lost and how much is whole; None if nothing is lost."""
    real = {key: one for key, one in storage_ids.items() if one.view is None or one.view[0] != key}
    lost = [one for key, one in real.items() if key not in stored and one.numel]
    if not lost:
        return None
    lost_nbytes = sum(one.nbytes for one in lost)
    whole_nbytes = sum(place.nbytes for key, place in stored.items() if key in real)
    counts = format_count(len(lost), "storage"), f"{len(real):,}"
    return Note(NoteKind.LOST_BYTES, (*counts, format_nbytes(lost_nbytes), format_nbytes(whole_nbytes)))

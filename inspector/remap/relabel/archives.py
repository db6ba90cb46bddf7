"""Other devices in an archive of several pickles, each of which names the storages that it needs."""

from __future__ import annotations

from inspector.containers.container import Container, PickleRecord
from inspector.containers.source import Source
from inspector.containers.zip.directory import ZipEntry, read_directory
from inspector.containers.zip.records import Records, read_zip_record
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.plan import Plan
from inspector.remap.relabel.patches import Patch, appended_piece, fits, refuse_doubles, zip_pieces
from inspector.remap.relabel.rewrite import rewrite_pickle
from inspector.remap.relabel.writers import CopyWriter


def new_pickles(container: Container, plan: Plan, progress: Progress) -> dict[str, bytes]:
    """Return the pickles that change with the devices of a plan, by the full names of their records."""
    changed: dict[str, bytes] = {}
    for one in container.pickles:
        pickle = rewrite_pickle(one.stream, _own_plan(plan, one), progress=progress)
        if pickle != one.stream.data[: one.stream.end]:
            changed[one.name] = pickle
    return changed


def _own_plan(plan: Plan, pickle: PickleRecord) -> Plan:
    """Return a plan in the keys of one pickle."""
    length = len(pickle.prefix)
    if not length:
        return plan
    storages = {key[length:]: to for key, to in plan.storages.items() if key.startswith(pickle.prefix)}
    held = frozenset(key[length:] for key in plan.held if key.startswith(pickle.prefix))
    return replace(plan, storages=storages, held=held)


def entries_of(source: Source, records: Records, names: dict[str, bytes]) -> list[tuple[ZipEntry, bytes]]:
    """Return the records of these names with their new contents."""
    found = [(entry, names[entry.name]) for entry in records.directory.entries if entry.name in names]
    for entry, _ in found:
        refuse_doubles(source, records, entry)
    return found


def write_archive(container: Container, writer: CopyWriter, plan: Plan) -> bool:
    """Write a copy; return whether every byte outside of the pickles kept its place."""
    records = Records(read_directory(writer.source, writer.limits, writer.progress))
    changed = entries_of(writer.source, records, new_pickles(container, plan, writer.progress))
    return writer.write_records(records, changed)


def archive_pieces(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    """Return what to write over an archive, or behind it."""
    records = Records(read_directory(source, DEFAULT_LIMITS, progress))
    changed = entries_of(source, records, new_pickles(container, plan, progress))
    if len(changed) == 1 and not fits(*changed[0]):
        entry, pickle = changed[0]
        read_zip_record(source, entry, DEFAULT_LIMITS.pickle_nbytes)
        return (appended_piece(source, records, entry, pickle),)
    for entry, pickle in changed:
        if not fits(entry, pickle):
            raise ExportError(
                "the new device names are longer than the old ones, and several pickles hold them",
                where=source.path,
                remedy="write a copy instead, with -o",
            )
    return tuple(piece for entry, pickle in changed for piece in zip_pieces(source, entry, pickle))


def archive_mapped(container: Container, plan: Plan, _progress: Progress) -> Container:
    """Return an archive's container with the devices of a plan."""
    ids = {
        key: one._replace(location=plan.storages.get(key, one.location))
        for key, one in container.storage_ids.items()
    }
    return replace(container, storage_ids=ids)

"""What changes in a tar checkpoint of torch 0.1: location tags, each in a small pickle before its storage.

Where each tag can take the place of the old one nothing moves. Otherwise the member of the storages gets
another size, which its header tells, and all behind it moves by multiples of 512 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.containers.container import Container
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.source import Source
from inspector.containers.tar import StorageRecord, TarLayout, read_layout
from inspector.containers.tar_members import STORAGES, padded, resized_headers
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.trace import trace_pickle
from inspector.progress import Progress
from inspector.remap.plan import Plan, destinations
from inspector.remap.relabel.edits import Edit, apply_edits, mend_frames, text_edits
from inspector.remap.relabel.padding import pad_pickle, unpad_pickle
from inspector.remap.relabel.rewrite import unchangeable

_LOCATION = 1  # its place in what describes a storage


def tar_locations(container: Container, plan: Plan) -> dict[str, str]:
    """Return the new location tag of each storage that moves, by its key."""
    storages = filter(None, map(parse_storage_id, container.pickle().persistent_ids))
    return {key: to for key, to in destinations(storages, plan).items() if to is not None}


def tar_edits(source: Source, container: Container, plan: Plan, progress: Progress) -> list[Edit]:
    """Return what changes in the file, in order, headers included where the size of a member does."""
    locations = tar_locations(container, plan)
    if not locations:
        return []
    layout = read_layout(source, DEFAULT_LIMITS, progress)
    edits = list(_label_edits(source, layout, locations, progress))
    fitting = [pad_pickle(edit.data, edit.end - edit.start) for edit in edits]
    fitted = [edit._replace(data=data) for edit, data in zip(edits, fitting, strict=True) if data]
    if len(fitted) == len(edits):
        return fitted
    member = layout.members[STORAGES]
    nbytes = member.nbytes + sum(len(edit.data) - (edit.end - edit.start) for edit in edits)
    rest = min(member.payload + padded(member.nbytes), source.nbytes)
    return [
        Edit(member.start, member.payload, resized_headers(source, member, nbytes)),
        *edits,
        Edit(member.end, rest, bytes(padded(nbytes) - nbytes)),
    ]


def _label_edits(
    source: Source, layout: TarLayout, locations: dict[str, str], progress: Progress
) -> Iterator[Edit]:
    for record in layout.storages:
        progress.advance(0)
        to = locations.get(str(record.key))
        if to is not None and to != record.location:
            old = source.read(record.start, record.end - record.start)
            yield Edit(record.start, record.end, _relabelled(unpad_pickle(old), record, to))


def _relabelled(data: bytes, record: StorageRecord, to: str) -> bytes:
    trace = trace_pickle(data, texts=frozenset({record.location}))
    place = trace.place_of(trace.root, _LOCATION)
    if place is None or place not in trace.texts:
        raise unchangeable(record.location)
    edits = text_edits(data, trace, {place: to})
    return apply_edits(data, edits + mend_frames(data, trace.frames, edits))

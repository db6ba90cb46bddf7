"""What changes in rare files: tar checkpoints of torch 0.1, and pickles with files of torch in them.

In a tar file location tags change, each in a small pickle before its storage. Where each can take the place
of the old one nothing moves. Otherwise the member of the storages gets another size, which its header tells,
and all behind it moves by multiples of 512 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.containers import tar_archive
from inspector.containers.codings import LINE, TEXT, Within
from inspector.containers.container import Container
from inspector.containers.legacy import read_layout
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.pickled import Nested, Pickled, open_pickled
from inspector.containers.rebuilds import SENT, WRAPPER
from inspector.containers.source import Source
from inspector.containers.tar_archive import STORAGES, StorageRecord, TarLayout, padded, resized_headers
from inspector.errors import PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.values.children import iter_values
from inspector.pickles.trace import trace_pickle
from inspector.pickles.values import PersistentId
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.plan import Plan, destinations
from inspector.remap.rewrite import (
    Edit,
    apply_edits,
    fitted_pickle,
    mend_frames,
    pad_pickle,
    rewrite_pickle,
    text_edits,
    unchangeable,
    unpad_pickle,
)

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
    layout = tar_archive.read_layout(source, DEFAULT_LIMITS, progress)
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


# ------------------------------------------------------------------------------------------------------------
# Other devices in a plain pickle: the files of torch within it are rewritten, and every length mended.
#
# A storage's location stands in the pickle of the file that holds it, which is bytes of the outer pickle. As
# those become shorter or longer, the length before them changes, and that of each frame around them. Where
# nothing may move, the new pickle is brought to the length of the old one.

_ZIP = b"PK\x03\x04"
_CONVERT = "write it as a file of torch.save first (export --format same -o model.pt), and remap that"


def pickled_edits(source: Source, plan: Plan, progress: Progress, *, in_place: bool) -> list[Edit]:
    """Return what changes in a plain pickle, in order."""
    opened = open_pickled(source, DEFAULT_LIMITS, progress)
    _refuse_own_devices(opened, plan)
    edits: list[Edit] = []
    growths: list[tuple[int, int]] = []
    for nested in opened.files.found:
        progress.advance(0)
        edit = _nested_edit(source, nested, plan, progress, in_place=in_place)
        if edit is None:
            continue
        growth = len(edit.data) - (edit.end - edit.start)
        if growth and nested.place.width:
            edits.append(length_edit(source, nested, growth))
        edits.append(edit)
        growths.append((edit.start, growth))
    return sorted([*edits, *_frame_edits(opened, growths)])


def mapped_pickled(container: Container, plan: Plan) -> Container:
    """Return a container with the devices of a plan."""
    to = destinations(container.storage_ids.values(), plan)
    for value in iter_values(container.root):
        own = parse_storage_id(value) if isinstance(value, PersistentId) else None
        location = None if own is None else to.get(own.key)
        if own is not None and location is not None and isinstance(value, PersistentId):
            value.meaning = own._replace(location=location)
    storage_ids = {
        key: one._replace(location=to[one.key] or one.location) for key, one in container.storage_ids.items()
    }
    return replace(container, storage_ids=storage_ids)


def _refuse_own_devices(opened: Pickled, plan: Plan) -> None:
    """Refuse a plan that moves what is no storage: tensors that name their device themselves."""
    names = {node.name for one in opened.container.programs for node in one.stream.globals}
    if plan.hidden or (plan.tensors and names & {WRAPPER, *SENT}):
        raise PlanError(
            "devices outside of storages are not changed in a plain pickle",
            where=opened.container.path,
            remedy=_CONVERT,
        )


def _nested_edit(
    source: Source, nested: Nested, plan: Plan, progress: Progress, *, in_place: bool
) -> Edit | None:
    """Return what changes in the bytes of one file within; None where nothing does."""
    start = f"{nested.number}:"
    moves = {key.removeprefix(start): to for key, to in plan.storages.items() if key.startswith(start)}
    if not moves:
        return None
    place = nested.place
    inside = Within(source, place.offset, nested.nbytes, place.nbytes, place.spelling)
    if inside.read_upto(0, len(_ZIP)) == _ZIP:
        raise PlanError("a zip within a pickle is not changed", where=source.path, remedy=_CONVERT)
    layout = read_layout(inside, DEFAULT_LIMITS, progress)
    held = frozenset(key.removeprefix(start) for key in plan.held if key.startswith(start))
    new = rewrite_pickle(layout.object_stream, replace(plan, storages=moves, held=held), progress=progress)
    first, last = inside.stored_at(layout.object_start), inside.stored_at(layout.object_end)
    new = fitted_pickle(new, layout.object_end - layout.object_start if in_place else 0)
    return Edit(first, last, _spelled(new, place.spelling))


def _spelled(data: bytes, spelling: int) -> bytes:
    """Write bytes as the text that they are in the outer pickle."""
    if spelling == TEXT:
        return data.decode("latin-1").encode()
    if spelling != LINE:
        return data
    text = data.decode("latin-1").replace("\\", "\\u005c")  # see `save_str` in CPython's `Lib/pickle.py`
    for char in "\0\n\r\x1a":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("raw-unicode-escape")


def length_edit(source: Source, nested: Nested, growth: int) -> Edit:
    """Return the edit of the length that stands before the bytes of a file within."""
    place = nested.place
    start = place.offset - place.width
    count = int.from_bytes(source.read(start, place.width), "little") + growth
    if not 0 <= count < 1 << (8 * place.width):
        raise PlanError(
            "the new device names do not fit into the bytes of a tensor", where=source.path, remedy=_CONVERT
        )
    return Edit(start, place.offset, count.to_bytes(place.width, "little"))


def _frame_edits(opened: Pickled, growths: list[tuple[int, int]]) -> Iterator[Edit]:
    for place, nbytes in opened.frames:
        start = place + 8
        growth = sum(more for at, more in growths if start <= at < start + nbytes)
        if growth:
            yield Edit(place, start, (nbytes + growth).to_bytes(8, "little"))

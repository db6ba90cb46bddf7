"""A pickle with other devices in it, and not one other instruction changed.

A location tag is a text on the stack, and equal texts share a memo slot: the `"cpu"` of a persistent id may
be the very object that a user's dictionary has as a key. So every *use* is changed, not the definition: a
literal takes its new text where it stands, and wherever the memo would now give the wrong text a literal is
written in its place. PUT and MEMOIZE stay where they are, since MEMOIZE counts.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from inspector.containers.persistent_ids import parse_storage_id
from inspector.errors import PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.tensors import describe_tensor
from inspector.pickles.instructions import CODES, U8
from inspector.pickles.machine import Stream
from inspector.pickles.trace import Push, Trace, trace_pickle
from inspector.pickles.values import Call, PersistentId, Value
from inspector.progress import Progress
from inspector.remap.plan import Plan
from inspector.remap.rules import matches_device

_LOCATION = 3  # its place in a storage's persistent id
_DEVICE = 2  # its place among the arguments of the calls below
DEVICE_CALLS = frozenset(
    {"_rebuild_device_tensor_from_numpy", "_rebuild_device_tensor_from_cpu_tensor", "_rebuild_xla_tensor"}
)
_FRAME_NBYTES = 9


class Edit(NamedTuple):
    """Replace the bytes from `start` to `end`."""

    start: int
    end: int
    data: bytes


def rewrite_pickle(
    stream: Stream, plan: Plan, *, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
) -> bytes:
    """Give the stream's bytes with the devices of a plan; the same bytes if the plan changes nothing in it.

    Raises:
        PlanError: A device that must change is not written in a way that can be changed.
        CancelledError: The work was cancelled.
    """
    data = stream.data[: stream.end]
    trace = trace_pickle(data, texts=plan.texts, names=DEVICE_CALLS, limits=limits, progress=progress)
    wanted: dict[int, str] = {}
    for pid in trace.pids:
        _want_location(trace, plan, pid, wanted)
    for call in trace.calls:
        _want_device(trace, plan, call, wanted)
    edits = _edit_pushes(data, trace, wanted)
    return _apply(data, [*edits, *_mend_frames(data, trace, edits)])


# --- which uses change --------------------------------------------------------------------------------------


def _want_location(trace: Trace, plan: Plan, pid: Value, wanted: dict[int, str]) -> None:
    storage = parse_storage_id(PersistentId(pid))
    if storage is not None:
        to = plan.storages.get(storage.viewed().key, storage.location)
        _want(trace, pid, _LOCATION, (storage.location, to), wanted)


def _want_device(trace: Trace, plan: Plan, call: Call, wanted: dict[int, str]) -> None:
    """Change the device argument of a tensor that is sent to its device while loading."""
    args = call.args
    device = args[_DEVICE] if isinstance(args, tuple) and len(args) > _DEVICE else None
    if not isinstance(device, str) or not isinstance(args, tuple):
        return
    inner = describe_tensor(args[0])
    if inner is not None and inner.storage is not None:
        to = plan.rebuilt.get(inner.storage.key, device)
    else:  # a NumPy array: no storage, so only rules by device can mean it
        rule = next(
            (rule for rule in plan.rules if rule.device and matches_device(rule.device, device)), None
        )
        to = device if rule is None else rule.to
    _want(trace, args, _DEVICE, (device, to), wanted)


def _want(trace: Trace, owner: Value, index: int, text: tuple[str, str], wanted: dict[int, str]) -> None:
    """Note that an element of a tuple, a text, shall change from one to another (or must not change)."""
    old, new = text
    place = trace.place_of(owner, index)
    push = None if place is None else trace.pushes.get(place)
    if push is None:
        if new != old:
            raise PlanError(f"the device {old} is written in a way that cannot be changed")
        return
    if wanted.setdefault(push.start, new) != new:
        where = f"byte {push.start:,}"
        raise PlanError("one device text serves storages that are sent to different devices", where=where)


# --- how the bytes change -----------------------------------------------------------------------------------


def _edit_pushes(data: bytes, trace: Trace, wanted: dict[int, str]) -> list[Edit]:
    """Give the edits that make each push leave the text that its user wants."""
    edits: list[Edit] = []
    left: dict[int, str] = {}  # what each push leaves once edited
    for start, push in trace.pushes.items():
        text = wanted.get(start, push.text)
        given = push.text if push.base is None else left.get(push.base, push.text)
        left[start] = text
        if text != given:
            edits.append(Edit(start, push.end, _literal(data, trace, push, text)))
    return edits


def _literal(data: bytes, trace: Trace, push: Push, text: str) -> bytes:
    """Write a text with the kind of instruction that the stream writes this text with."""
    first = push
    while first.base is not None and first.base in trace.pushes:
        first = trace.pushes[first.base]
    encoded = text.encode("ascii")
    code = data[first.start]
    if code in {CODES["SHORT_BINUNICODE"], CODES["SHORT_BINSTRING"]}:
        return bytes([code, len(encoded)]) + encoded
    if code in {CODES["BINUNICODE"], CODES["BINSTRING"]}:
        return bytes([code]) + struct.pack("<I", len(encoded)) + encoded
    if code == CODES["BINUNICODE8"]:
        return bytes([code]) + U8.pack(len(encoded)) + encoded
    quote = b"'" if code == CODES["STRING"] else b""
    return bytes([code]) + quote + encoded + quote + b"\n"


def _mend_frames(data: bytes, trace: Trace, edits: list[Edit]) -> list[Edit]:
    """Give the edits that keep each FRAME as long as the instructions it holds."""
    mended = []
    for start in trace.frames:
        first = start + _FRAME_NBYTES
        (nbytes,) = U8.unpack_from(data, start + 1)
        growth = sum(
            len(edit.data) - (edit.end - edit.start) for edit in edits if first <= edit.start < first + nbytes
        )
        if growth:
            mended.append(Edit(start + 1, first, U8.pack(nbytes + growth)))
    return mended


def _apply(data: bytes, edits: list[Edit]) -> bytes:
    parts = []
    pos = 0
    for edit in sorted(edits):
        parts += [data[pos : edit.start], edit.data]
        pos = edit.end
    return b"".join([*parts, data[pos:]])

"""A pickle with other devices in it, and not one other instruction changed."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.errors import PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.found import Found
from inspector.model.roles.devices import DEVICE_TYPES
from inspector.model.roles.hidden import GENERATOR, MESH_TYPE
from inspector.model.tensors.rebuild import device_text
from inspector.model.tensors.storages import REBUILDS, OwnDevice, find_own_device
from inspector.model.values.children import attribute_pairs
from inspector.model.values.text import class_of
from inspector.model.walk import walk
from inspector.pickles.instructions import CODES, I4, U8, instruction_end, iter_instructions
from inspector.pickles.machine import Stream
from inspector.pickles.trace import Built, Push, Trace, TracedCall, trace_pickle
from inspector.pickles.values import Call, PersistentId, Value
from inspector.progress import Progress
from inspector.remap.plan import TOGETHER, Plan, destinations
from inspector.remap.rules import is_same_device

_FRAME_NBYTES = 9
_SHORT = frozenset({CODES["SHORT_BINUNICODE"], CODES["SHORT_BINSTRING"]})
_LONG = frozenset({CODES["BINUNICODE"], CODES["BINSTRING"]})


class Edit(NamedTuple):
    """Replace the bytes from `start` to `end`."""

    start: int
    end: int
    data: bytes


def literal_of(data: bytes, trace: Trace, push: Push[str], text: str) -> bytes:
    """Return the instruction that pushes a text, of the kind that the stream writes this push's text with.

    `weights_only` knows some kinds only, so no kind is brought in that the stream does not use already.
    """
    first = _first_push(trace, push)
    if text == first.value:
        return data[first.start : first.end]
    return _text_instruction(data[first.start], text)


def _first_push(trace: Trace, push: Push[str]) -> Push[str]:
    while push.base is not None:
        push = trace.texts[push.base]
    return push


def _text_instruction(code: int, text: str) -> bytes:
    encoded = text.encode("ascii")
    if code in _SHORT:
        return bytes([code, len(encoded)]) + encoded
    if code in _LONG:
        return bytes([code]) + struct.pack("<I", len(encoded)) + encoded
    if code == CODES["BINUNICODE8"]:
        return bytes([code]) + U8.pack(len(encoded)) + encoded
    quote = b"'" if code == CODES["STRING"] else b""
    return bytes([code]) + quote + encoded + quote + b"\n"


def index_instruction(index: int) -> bytes:
    """Write a device's number, with opcodes that are known to `weights_only`."""
    if 0 <= index < 256:
        return bytes([CODES["BININT1"], index])
    return bytes([CODES["BININT"]]) + I4.pack(index)


def index_of(data: bytes, built: Built) -> bytes:
    """Return the instruction that pushes the number among the arguments of a `torch.device`, or nothing."""
    if len(built.starts) == 1:
        return b""
    start = built.starts[1]
    if len(built.starts) > 2 or instruction_end(data, start) != built.close:
        raise PlanError(
            "the number of a device is written in a way that cannot be changed", where=f"byte {start:,}"
        )
    return data[start : built.close]


def index_edit(data: bytes, built: Built, index: bytes) -> Edit:
    """Return the edit that changes, adds or takes away the number among the arguments of a `torch.device`."""
    start = built.close - len(index_of(data, built))
    if data[built.close] == CODES["TUPLE"]:
        return Edit(start, built.close, index)
    return Edit(start, built.close + 1, index + bytes([CODES["TUPLE2" if index else "TUPLE1"]]))


def device_instructions(kind: bytes, index: bytes) -> bytes:
    """Write a `torch.device` afresh from the instructions of its arguments; nothing of it enters the memo."""
    close = bytes([CODES["TUPLE2" if index else "TUPLE1"], CODES["REDUCE"]])
    return bytes([CODES["GLOBAL"]]) + b"torch\ndevice\n" + kind + index + close


def text_edits(data: bytes, trace: Trace, wanted: Mapping[int, str]) -> list[Edit]:
    """Return the edits that make each push of a text leave what its user wants.

    Args:
        wanted: What some of the pushes are to leave, by where they start; all others leave what they did.
    """
    edits = []
    left: dict[int, str] = {}  # what each push leaves once edited
    for start, push in trace.texts.items():
        text = left[start] = wanted.get(start, push.value)
        given = push.value if push.base is None else left[push.base]
        if text != given:
            edits.append(Edit(start, push.end, literal_of(data, trace, push, text)))
    return edits


def mend_frames(data: bytes, frames: list[int], edits: list[Edit]) -> list[Edit]:
    """Return the edits that keep each FRAME as long as the instructions it holds."""
    edits = sorted(edits)
    places = [edit.start for edit in edits]
    growths = [0, *accumulate(len(edit.data) - (edit.end - edit.start) for edit in edits)]
    mended = []
    for start in frames:
        first = start + _FRAME_NBYTES
        (nbytes,) = U8.unpack_from(data, start + 1)
        growth = growths[bisect_left(places, first + nbytes)] - growths[bisect_left(places, first)]
        if growth:
            mended.append(Edit(start + 1, first, U8.pack(nbytes + growth)))
    return mended


def apply_edits(data: bytes, edits: list[Edit]) -> bytes:
    """Return the bytes with all edits made; edits must not overlap."""
    parts = []
    pos = 0
    for edit in sorted(edits):
        parts += [data[pos : edit.start], edit.data]
        pos = edit.end
    return b"".join([*parts, data[pos:]])


# ------------------------------------------------------------------------------------------------------------
# A pickle brought to a given length by instructions that change nothing, for files where nothing may move.
#
# Only what `weights_only` knows is used (`torch/_weights_only_unpickler.py`): PROTO may stand anywhere and
# says the same again in 2 bytes, and a small integer may be written with one byte more. Together they make
# every length.

_PROTO = bytes([CODES["PROTO"]])
_PROTO_NBYTES = 2
_NARROW, _WIDE = CODES["BININT1"], CODES["BININT2"]
_PAIR = bytes([CODES["NONE"], CODES["POP"]])
_TRIPLE = bytes([CODES["BININT1"], 0, CODES["POP"]])


def fit_pickle(data: bytes, nbytes: int) -> bytes | None:
    """Return a pickle of this length that says the same; None where it is too long or takes no filling.

    Filling that an earlier call has put in is taken out first, so a file can be changed more than once, and
    back again.
    """
    if data[:1] != _PROTO:
        return data if len(data) == nbytes else None
    data = _with_first_number(_without_filling(data), _NARROW)
    if (nbytes - len(data)) % 2:
        data = _with_first_number(data, _WIDE)
    missing = nbytes - len(data)
    head = data[:_PROTO_NBYTES]
    return head * (missing // _PROTO_NBYTES) + data if missing >= 0 and missing % 2 == 0 else None


def fitted_pickle(data: bytes, nbytes: int) -> bytes:
    """Return a pickle of this length that says the same where that can be, else without any filling."""
    fitted = fit_pickle(data, nbytes)
    if fitted is not None:
        return fitted
    plain = _without_filling(data)
    return data if plain == data else _with_first_number(plain, _NARROW)


def _without_filling(data: bytes) -> bytes:
    head = data[:_PROTO_NBYTES]
    filled = 0
    while data[:1] == _PROTO and data.startswith(head, filled + _PROTO_NBYTES):
        filled += _PROTO_NBYTES
    return data[filled:]


def pad_pickle(data: bytes, nbytes: int) -> bytes | None:
    """Return a pickle of this length that says the same, for files that `weights_only` never reads.

    None and small numbers are pushed and dropped again behind PROTO. Nothing is one byte long, so a pickle
    that lacks one cannot be padded; `unpad_pickle` takes out what this put in.
    """
    missing = nbytes - len(data)
    if missing < 0 or missing == 1 or data[:1] != _PROTO:
        return data if missing == 0 else None
    padding = _PAIR * (missing // len(_PAIR))
    if missing % len(_PAIR):
        padding = _TRIPLE + padding[: missing - len(_TRIPLE)]
    return data[:_PROTO_NBYTES] + padding + data[_PROTO_NBYTES:]


def unpad_pickle(data: bytes) -> bytes:
    """Return a pickle as it was before `pad_pickle`."""
    if data[:1] != _PROTO:
        return data
    pos = _PROTO_NBYTES
    if data.startswith(_TRIPLE, pos):
        pos += len(_TRIPLE)
    while data.startswith(_PAIR, pos):
        pos += len(_PAIR)
    return data[:_PROTO_NBYTES] + data[pos:]


def _with_first_number(data: bytes, code: int) -> bytes:
    """Write the first integer below 256 in one byte or in two; the same bytes where there is none."""
    frames: list[int] = []
    for start, end in iter_instructions(data, 0, len(data)):
        if data[start] == CODES["FRAME"]:
            frames.append(start)
        elif data[start] == _NARROW or (data[start] == _WIDE and not data[start + 2]):
            low = bytes([code, data[start + 1]])
            edit = Edit(start, end, low if code == _NARROW else low + b"\0")
            return apply_edits(data, [edit, *mend_frames(data, frames, [edit])])
    return data


# ------------------------------------------------------------------------------------------------------------
# A pickle with other devices in it, and not one other instruction changed.
#
# A location tag is a text on the stack, and equal texts share a memo slot: the `"cpu"` of a persistent id may
# be the very object that a user's dictionary has as a key. So every *use* is changed, not the definition: a
# literal takes its new text where it stands, and wherever the memo would now give the wrong text a literal is
# written in its place. PUT and MEMOIZE stay where they are, since MEMOIZE counts. The same holds for the
# `torch.device` objects that wrapper tensors are made on.

_LOCATION = 3  # its place in a storage's persistent id


def rewrite_pickle(stream: Stream, plan: Plan, *, progress: Progress | None = None) -> bytes:
    """Return the stream's bytes with the devices of a plan; the same if it changes nothing."""
    progress = progress or Progress()
    data = stream.data[: stream.end]
    if not plan.rules:
        return data
    texts = plan.texts.union(_locations(stream), DEVICE_TYPES)
    texts |= {text.partition(":")[0] for text in texts}  # torch.device is called with its type's text
    trace = trace_pickle(data, texts=texts, names=REBUILDS, device="torch.device", progress=progress)
    rewrite = _Rewrite(data, trace, plan)
    rewrite.send_storages()
    if trace.calls or plan.hidden:
        found = walk(trace.root, DEFAULT_LIMITS, progress)
        rewrite.send_own_devices(found.sources)
        rewrite.send_hidden(found.hidden_sources)
        rewrite.send_embedded(found, progress)
    return rewrite.made()


def _locations(stream: Stream) -> set[str]:
    """Return every location tag as it is written; rows show them fit for a screen."""
    storages = map(parse_storage_id, stream.persistent_ids)
    return {storage.location for storage in storages if storage is not None}


class _Rewrite:
    def __init__(self, data: bytes, trace: Trace, plan: Plan) -> None:
        self._data = data
        self._trace = trace
        self._plan = plan
        self._texts: dict[int, str] = {}  # what each push of a text must leave, by where it starts
        self._devices: dict[int, str] = {}  # the same for pushes of a torch.device
        self._spelled: dict[int, tuple[int, str | None]] = {}  # by a device's arguments: its place, its text
        self._owned: set[int | None] = set()  # the pushes that are a tensor's own device
        self._edits: list[Edit] = []

    # --- which uses change ----------------------------------------------------------------------------------

    def send_storages(self) -> None:
        """Want the planned location in every persistent id of a storage that moves."""
        parsed = [(pid, parse_storage_id(PersistentId(pid))) for _, pid in self._trace.pids]
        storages = [(pid, storage) for pid, storage in parsed if storage is not None]
        to = destinations((storage for _, storage in storages), self._plan)
        for pid, storage in storages:
            location = to[storage.key]
            if location is not None and isinstance(pid, tuple):
                self._want_text(pid, _LOCATION, location)

    def _destination(self, storage: StorageId) -> str:
        return self._plan.storages.get(storage.viewed().key, storage.location)

    def send_own_devices(self, sources: Sequence[Value]) -> None:
        planned: dict[int, tuple[OwnDevice, str | None]] = {}
        for own, to in planned_own_devices(sources, self._plan):
            if planned.setdefault(id(own.args), (own, to))[1] != to:
                raise PlanError(
                    "one tensor is sent to different devices by its several paths", remedy=TOGETHER
                )
        for call in self._trace.calls:
            found = find_own_device(call.call)
            if found is not None:
                self._send_own_device(call, found, planned)

    def _send_own_device(
        self, call: TracedCall, own: OwnDevice, planned: dict[int, tuple[OwnDevice, str | None]]
    ) -> None:
        device = own.args[own.place]
        old = device_text(device)
        self._owned.add(self._trace.place_of(own.args, own.place))
        # What no row shows, inside objects of unknown classes, follows the rules by device as storages do.
        to = planned[id(own.args)][1] if id(own.args) in planned else self._plan.by_device(old or "meta")
        if old is None:
            if to is not None:
                raise unchangeable(device)
            return
        if own.has_parts:
            self._refuse_torn(call, old, to or old)
        if to is not None and isinstance(device, str):
            self._want_text(own.args, own.place, to)
        elif to is not None:
            self._want_device(own.args, own.place, to)

    def _refuse_torn(self, call: TracedCall, old: str, to: str) -> None:
        """Refuse to send a wrapper elsewhere than the storages on its device that it is made of."""
        pids = self._trace.pids
        for number in range(bisect_left(pids, call.start, key=itemgetter(0)), len(pids)):
            place, pid = pids[number]
            if place >= call.end:
                return
            storage = parse_storage_id(PersistentId(pid))
            if storage is None or not is_same_device(storage.location, old):
                continue
            if storage.viewed().key in self._plan.held:
                continue
            if not is_same_device(self._destination(storage), to):
                raise PlanError(
                    f"a tensor on {old} and the storages it is made of are sent to different devices",
                    where=f"storage {storage.key}",
                    remedy=TOGETHER,
                )

    def send_hidden(self, sources: Sequence[Value]) -> None:
        """Want the planned device for those outside of tensors, wherever one object of them stands."""
        wanted: dict[int, tuple[Value, str | None]] = {}
        for index, source in enumerate(sources):
            to = self._plan.hidden.get(index)
            if wanted.setdefault(id(source), (source, to))[1] != to:
                raise PlanError(
                    f"{device_text(source) or 'one device'} is one object in several places, which are sent "
                    "to different devices",
                    remedy=TOGETHER,
                )
        uses: dict[int, list[int]] = defaultdict(list)
        for start, push in self._trace.devices.items():
            if start not in self._owned:
                uses[id(push.value)].append(start)
        for source, to in wanted.values():
            if to is not None and isinstance(source, Call):
                self._send_hidden(source, to, uses[id(source)])

    def send_embedded(self, found: Found, progress: Progress) -> None:
        """Write the files of torch anew that are bytes here, where devices in them are to be others."""
        first = len(found.hidden_sources)
        moves = {index - first: to for index, to in self._plan.hidden.items() if index >= first}
        if not moves:
            return
        from inspector.model.inside import devices_inside  # noqa: PLC0415 - few files hold others
        from inspector.remap.relabel import embedded_edits  # noqa: PLC0415 - as above

        inside = list(devices_inside(found, self._data, DEFAULT_LIMITS, progress))
        self._edits += embedded_edits(self._data, inside, moves, progress)

    def _send_hidden(self, source: Call, to: str, uses: list[int]) -> None:
        if class_of(source) == GENERATOR and isinstance(source.args, tuple):
            self._want_device(source.args, 0, to)
        elif uses:
            self._devices |= dict.fromkeys(uses, to)
        else:
            found = (self._trace.items.get(id(pair)) for pair in attribute_pairs(source.state, MESH_TYPE))
            item = next(filter(None, found), None)
            if item is None:
                raise unchangeable(source)
            self._texts[item.start] = to

    def _want_text(self, owner: tuple[Value, ...], index: int, new: str) -> None:
        place = self._trace.place_of(owner, index)
        if place not in self._trace.texts:
            raise unchangeable(owner[index])
        self._texts[place] = new

    def _want_device(self, owner: tuple[Value, ...], index: int, new: str) -> None:
        place = self._trace.place_of(owner, index)
        if place not in self._trace.devices:
            raise unchangeable(owner[index])
        self._devices[place] = new

    # --- how the bytes change -------------------------------------------------------------------------------

    def made(self) -> bytes:
        self._edit_devices()
        self._edits += text_edits(self._data, self._trace, self._texts)
        return apply_edits(self._data, self._edits + mend_frames(self._data, self._trace.frames, self._edits))

    def _edit_devices(self) -> None:
        left: dict[int, str | None] = {}
        for start, push in self._trace.devices.items():
            text = left[start] = self._devices.get(start, device_text(push.value))
            if push.base is None:
                self._spell(push, text)
            elif text is not None and text != left[push.base]:
                self._edits.append(Edit(start, push.end, self._device_afresh(push.value, text)))

    def _spell(self, push: Push[Call], text: str | None) -> None:
        """Make the arguments of a device say this; two calls may have one tuple of arguments."""
        known = self._spelled.setdefault(id(push.value.args), (push.start, text))
        if known[1] != text:
            raise PlanError(
                "one torch.device is used by tensors that are sent to different devices",
                where=f"byte {push.start:,}",
            )
        if known[0] == push.start and text is not None and text != device_text(push.value):
            self._respell(push.value, text)

    def _respell(self, call: Call, text: str) -> None:
        """Change the arguments of a `torch.device` where they stand: its type's text, and its number."""
        built = self._built(call)
        kind, index = _spelling(text)
        self._want_text(built.made, 0, kind)
        self._edits.append(index_edit(self._data, built, index))

    def _device_afresh(self, call: Call, text: str) -> bytes:
        """Write a device with the kind of text that the device was written with that stood here."""
        built = self._built(call)
        if text == device_text(call):
            kind, index = str(built.made[0]), index_of(self._data, built)
        else:
            kind, index = _spelling(text)
        push = self._trace.texts[built.starts[0]]
        return device_instructions(literal_of(self._data, self._trace, push, kind), index)

    def _built(self, call: Call) -> Built:
        built = self._trace.tuples.get(id(call.args))
        if built is None or built.starts[0] not in self._trace.texts:
            raise unchangeable(call)
        return built


def planned_own_devices(sources: Sequence[Value], plan: Plan) -> Iterator[tuple[OwnDevice, str | None]]:
    """Yield each listed tensor's own device with where the plan sends it; None where it stays."""
    for index, value in enumerate(sources):
        own = find_own_device(value)
        if own is not None:
            yield own, plan.tensors.get(index)


def _spelling(text: str) -> tuple[str, bytes]:
    kind, _, index = text.partition(":")
    return kind, index_instruction(int(index)) if index else b""


def unchangeable(device: Value) -> PlanError:
    """Return the error for a device whose text or number is not written as a literal."""
    what = device_text(device) or "of a tensor"
    return PlanError(f"the device {what} is written in a way that cannot be changed")

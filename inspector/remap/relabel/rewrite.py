"""A pickle with other devices in it, and not one other instruction changed.

A location tag is a text on the stack, and equal texts share a memo slot: the `"cpu"` of a persistent id may
be the very object that a user's dictionary has as a key. So every *use* is changed, not the definition: a
literal takes its new text where it stands, and wherever the memo would now give the wrong text a literal is
written in its place. PUT and MEMOIZE stay where they are, since MEMOIZE counts. The same holds for the
`torch.device` objects that wrapper tensors are made on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter

from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.errors import PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.found import Found
from inspector.model.roles.device_types import DEVICE_TYPES
from inspector.model.roles.hidden import GENERATOR, MESH_TYPE
from inspector.model.tensors.own_devices import REBUILDS, OwnDevice, find_own_device
from inspector.model.tensors.rebuild import device_text
from inspector.model.values.children import attribute_pairs
from inspector.model.values.text import class_of
from inspector.model.walk import walk
from inspector.pickles.machine import Stream
from inspector.pickles.trace import Built, Push, Trace, TracedCall, trace_pickle
from inspector.pickles.values import Call, PersistentId, Value
from inspector.progress import Progress
from inspector.remap.plan import TOGETHER, Plan, destinations
from inspector.remap.relabel.edits import (
    Edit,
    apply_edits,
    device_instructions,
    index_edit,
    index_instruction,
    index_of,
    literal_of,
    mend_frames,
    text_edits,
)
from inspector.remap.rules import is_same_device

_LOCATION = 3  # its place in a storage's persistent id


def rewrite_pickle(
    stream: Stream, plan: Plan, *, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
) -> bytes:
    """Return the stream's bytes with the devices of a plan; the same if it changes nothing."""
    progress = progress or Progress()
    data = stream.data[: stream.end]
    if not plan.rules:
        return data
    texts = plan.texts.union(_locations(stream), DEVICE_TYPES)
    texts |= {text.partition(":")[0] for text in texts}  # torch.device is called with its type's text
    trace = trace_pickle(
        data, texts=texts, names=REBUILDS, device="torch.device", limits=limits, progress=progress
    )
    rewrite = _Rewrite(data, trace, plan)
    rewrite.send_storages()
    if trace.calls or plan.hidden:
        found = walk(trace.root, limits, progress)
        rewrite.send_own_devices(found.sources)
        rewrite.send_hidden(found.hidden_sources)
        rewrite.send_embedded(found, limits, progress)
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
        """Want the planned device for each tensor that names its own."""
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

    def send_embedded(self, found: Found, limits: Limits, progress: Progress) -> None:
        """Write the files of torch anew that are bytes here, where devices in them are to be others."""
        first = len(found.hidden_sources)
        moves = {index - first: to for index, to in self._plan.hidden.items() if index >= first}
        if not moves:
            return
        from inspector.model.inside import devices_inside  # noqa: PLC0415 - few files hold others
        from inspector.remap.embedded import embedded_edits  # noqa: PLC0415 - as above

        inside = list(devices_inside(found, self._data, limits, progress))

        def rewritten(stream: Stream, plan: Plan) -> bytes:
            return rewrite_pickle(stream, plan, limits=limits, progress=progress)

        self._edits += embedded_edits(self._data, inside, moves, rewritten, progress)

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
        """Note what an element of a tuple, a str, is to be."""
        place = self._trace.place_of(owner, index)
        if place not in self._trace.texts:
            raise unchangeable(owner[index])
        self._texts[place] = new

    def _want_device(self, owner: tuple[Value, ...], index: int, new: str) -> None:
        """Note what an element of a tuple, a `torch.device`, is to be."""
        place = self._trace.place_of(owner, index)
        if place not in self._trace.devices:
            raise unchangeable(owner[index])
        self._devices[place] = new

    # --- how the bytes change -------------------------------------------------------------------------------

    def made(self) -> bytes:
        """Return the new bytes."""
        self._edit_devices()
        self._edits += text_edits(self._data, self._trace, self._texts)
        return apply_edits(self._data, self._edits + mend_frames(self._data, self._trace.frames, self._edits))

    def _edit_devices(self) -> None:
        """Make each push of a `torch.device` leave what its user wants."""
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
    """Split a device into its type and the instruction that pushes its number."""
    kind, _, index = text.partition(":")
    return kind, index_instruction(int(index)) if index else b""


def unchangeable(device: Value) -> PlanError:
    """Return the error for a device whose text or number is not written as a literal."""
    what = device_text(device) or "of a tensor"
    return PlanError(f"the device {what} is written in a way that cannot be changed")

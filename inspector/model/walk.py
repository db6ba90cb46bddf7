"""From values to rows: everything that can be reached from the root, in file order, each container once.

Walks with a stack of its own, so that no depth of nesting can exhaust Python's; below `Limits.depth` values
are counted and no longer entered. Names are bounded as well: a name of a megabyte on the way to a million
tensors is a terabyte of paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import cast

from inspector.errors import ModelError
from inspector.limits import Limits, Work, written_chars
from inspector.model.arguments import UNHASHABLE_KINDS, is_plain, kind_of, listed_name
from inspector.model.checkpoint import HiddenDevice, HiddenPlace, Key, KeyFault, Role, Tensor, ValueRow
from inspector.model.found import Found, Frame
from inspector.model.optimizer.state_dict import OptimizerReader, looks_like_optimizer
from inspector.model.programs.uses import note_fault, note_use
from inspector.model.roles.hidden import (
    DEVICE_CLASS,
    GENERATOR,
    SOURCE_DEVICE,
    hidden_devices,
    is_of_generator,
)
from inspector.model.roles.roles import (
    NONE_PINNED,
    Context,
    ModelDraft,
    enter,
    holds_averages,
    holds_data,
    is_averaged_parameter,
    is_metadata_on_cpu,
    is_module,
    looks_like_model,
    pinned_keys,
    role_of_tensor,
)
from inspector.model.tensors.rebuild import describe_tensor, device_text
from inspector.model.tensors.views import NOTHING_KNOWN, Known, TensorFacts
from inspector.model.values.children import (
    Children,
    Inside,
    attributes_of,
    breadth_of,
    children_of,
    told_apart,
)
from inspector.model.values.embedded import MOST_CANDIDATES, may_hold_checkpoint
from inspector.model.values.text import (
    MOST_CHARS,
    MOST_STEP_CHARS,
    class_of,
    path_key,
    step_text,
    text_of,
    type_of,
)
from inspector.pickles.values import (
    Blob,
    ByteArray,
    ByteString,
    Call,
    Dict,
    Global,
    PersistentId,
    Set,
    StoredTensor,
    Value,
)
from inspector.progress import Progress
from inspector.units import cut_text

# Keys of dictionaries that torch chokes on: an unpickler hashes every key, and this program none.
#
# A list has no hash, so that loading raises. The hash of a tuple is that of its items: one that is nested a
# million deep exhausts the stack of the process, one whose halves are the same tuple again and again takes
# for ever. Nothing here recurses, and each tuple is looked through once, however often it is a key.

_MODULUS = 2**61 - 1  # Python's hash of a larger integer is what is left when it is divided by this
_MOST_ALIKE = 5000

_SHORT_BITS = 60  # smaller integers hash to themselves
_SHORT_BITS_SHIFT = 9  # how much of a longer one is a part's worth of work
_MOST_DEPTH = 1000
_MOST_HASHES = 10_000_000
_KEY_SHORT = 8
_LOOKED_INTO = frozenset({list, tuple, Dict, Set, Call, ByteArray})


class KeyFaults:
    """Looks for bad keys in the dictionaries of one checkpoint, whose values stay alive meanwhile."""

    def __init__(self, look: Callable[[int], None] = lambda _: None) -> None:
        """Begin; `look` counts the parts looked at."""
        self._look = look
        self.odd: list[Value] = []  # keys of the last dictionary that are no plain values
        # For each tuple that is done, how deep it is and how many hashes it takes, by its `id`.
        self._done: dict[int, tuple[int, int]] = {}

    def find(self, pairs: Iterable[tuple[Value, Value]]) -> KeyFault | None:
        """Return what the first bad key of a dictionary does to torch; None where all are good."""
        hashes = []
        self.odd = []
        for key, _ in pairs:
            kind = type(key)
            if kind in _LOOKED_INTO:
                self.odd.append(key)
                fault = self._fault_of(key)
                if fault is not None:
                    return fault
            elif kind is int and cast("int", key).bit_length() > _SHORT_BITS:
                self._look(1 + (cast("int", key).bit_length() >> _SHORT_BITS_SHIFT))
                hashes.append(cast("int", key) % _MODULUS)
        return KeyFault.ALIKE if _most_alike(hashes) > _MOST_ALIKE else None

    def _fault_of(self, key: Value) -> KeyFault | None:
        if not isinstance(key, tuple):
            return KeyFault.UNHASHABLE if _is_unhashable(key) else None
        if len(key) <= _KEY_SHORT and not any(type(item) in _LOOKED_INTO for item in key):
            return None  # a pair of numbers, as nearly all are; of millions nothing is kept
        fault = self._measure(key)
        if fault is not None:
            return fault
        return KeyFault.ENDLESS if self._done[id(key)][1] > _MOST_HASHES else None

    def _measure(self, key: tuple[Value, ...]) -> KeyFault | None:
        """Count the hashes of a tuple and of all below it; give what makes that impossible, or None."""
        done = self._done
        stack = [(key, 1)]
        while stack:
            items, level = stack[-1]
            self._look(1 + len(items))
            if id(items) in done:
                stack.pop()
                continue
            inside = {id(item): item for item in items if isinstance(item, tuple)}
            missing = [(item, level + 1) for number, item in inside.items() if number not in done]
            depth = 1 + max((done[number][0] for number in inside if number in done), default=0)
            if max(depth, level) > _MOST_DEPTH:
                return KeyFault.DEEP
            if missing:
                stack.extend(missing)
                continue
            if any(_is_unhashable(item) for item in items):
                return KeyFault.UNHASHABLE
            hashes = len(items) + sum(done[id(item)][1] for item in items if isinstance(item, tuple))
            done[id(items)] = depth, min(hashes, _MOST_HASHES + 1)
        return None


def _most_alike(hashes: list[int]) -> int:
    """Count how often the most frequent of them occurs, without hashing any."""
    if len(hashes) <= _MOST_ALIKE:
        return 0
    hashes.sort()
    return max(len(list(same)) for _, same in groupby(hashes))


def _is_unhashable(value: Value) -> bool:
    if isinstance(value, Call):
        return kind_of(value) in UNHASHABLE_KINDS
    return isinstance(value, list | Dict | ByteArray) or (isinstance(value, Set) and not value.frozen)


# What listing a tensor costs: its names and sizes, which a file can refer to again and again.

_FEW_DIMENSIONS = 4
_DIMENSION_CHARS = 20


def cost_of_row(facts: TensorFacts, storage_key: str | None, slot: str | None) -> tuple[int, int]:
    """Return how many sizes and strides there are to look at, 0 for few, and how many characters to write."""
    chars = 0 if storage_key is None else len(storage_key)
    if slot is not None:
        chars += len(slot)
    if not facts.device.isascii():
        chars += written_chars(facts.device)
    dimensions = len(facts.shape) + len(facts.stride or ())
    if dimensions <= 2 * _FEW_DIMENSIONS:
        return 0, chars
    return dimensions, chars + dimensions * _DIMENSION_CHARS


def weight_of_step(key: Key) -> int:
    """Return what one step on the way costs each row below it, beyond its text in the path."""
    if not isinstance(key, str) or (len(key) <= MOST_STEP_CHARS and key.isascii()):
        return 8
    return 8 + len(key) + max(written_chars(key[:MOST_STEP_CHARS]), written_chars(key[-MOST_STEP_CHARS:]))


def excess_of(key: Key) -> int:
    """Return what a key weighs beyond its text in a path, which is cut."""
    return len(key) if isinstance(key, str) and len(key) > MOST_STEP_CHARS else 0


# Devices that are keys of dictionaries, or stand in a tuple that is one.

_MOST_IN_KEY = 8


def devices_in_key(key: Value) -> Iterator[Call]:
    """Yield the devices that a key of a dictionary is, or that a tuple as a key holds."""
    for part in key[:_MOST_IN_KEY] if isinstance(key, tuple) else (key,):
        if isinstance(part, Call) and class_of(part) == DEVICE_CLASS:
            yield part


def keyed_devices(keys: Iterable[Value], path: str, work: Work) -> Iterator[tuple[HiddenDevice, Call]]:
    """Yield the devices in keys of a dictionary, each with what makes it."""
    for key in keys:
        work.look(_MOST_IN_KEY)
        for call in devices_in_key(key):
            step = step_text(path_key(key))
            work.write(len(path) + written_chars(step))
            where = f"{path}/{step}" if path else step
            yield HiddenDevice(path=where, device=device_text(call) or "?", what=HiddenPlace.KEY), call


_SHORT = 8
_DESCRIBED = 8  # fields that a row begins with behind its path, the same as those of what describes it
_MOST_LEAF_CHARS = 600
_MOST_WHERE = MOST_CHARS - 20
_MOST_PLACED = 50_000  # calls whose row is remembered; of each name only the first are asked for
_TENSORS = frozenset({Call, PersistentId, StoredTensor})
_BYTES = frozenset({bytes, ByteArray, Blob, Call})
_SCALARS = frozenset({type(None), bool, int, float, str, ByteString, bytes, ByteArray, Blob, Global})


def walk(
    root: Value,
    limits: Limits,
    progress: Progress,
    known: Known = NOTHING_KNOWN,
    declared: Mapping[int, Role] | None = None,
) -> Found:
    """Collect the rows of everything below `root`; `declared` says what values are for, by their `id`."""
    return _Walk(known, limits, progress, declared).run(root)


class _Walk:
    def __init__(
        self, known: Known, limits: Limits, progress: Progress, declared: Mapping[int, Role] | None
    ) -> None:
        self._declared = declared
        self._limits = limits
        self._work = limits.counted(progress.advance)
        self._known = known._replace(look=self._work.look)
        self._found = Found()
        self._entered = self._found.places
        self._stack: list[Frame] = []
        # Values that were found to be leaves, by their `id`; a text that is asked for again is remembered.
        self._closed: dict[int, tuple[str, str] | None] = {}
        self._devices: dict[int, list[tuple[str, HiddenPlace]]] = {}
        self._optimizers = OptimizerReader(self._work)
        self._keys = KeyFaults(self._work.look)

    def run(self, root: Value) -> Found:
        stack, known, look = self._stack, self._known, self._work.look
        stack.append(Frame(iter([(None, root)])))
        while stack:
            frame = stack[-1]
            for key, value in frame.children:
                look()
                kind = type(value)
                facts = describe_tensor(value, known) if kind in _TENSORS else None
                if facts is not None:
                    self._add_tensor(frame, key, value, facts)
                elif kind in _SCALARS:
                    self._add_leaf(frame, key, value)
                else:
                    self._enter(frame, key, value)
                if stack[-1] is not frame:
                    break
            else:
                stack.pop()
        self._work.breathe()
        return self._found

    def _check_rows(self) -> None:
        if len(self._found.tensors) + len(self._entered) > self._limits.rows:
            raise ModelError(
                f"the checkpoint holds more than {self._limits.rows:,} tensors and containers",
                remedy="save its parts in files of their own, such as the optimizer's state",
            )

    def _place(self, frame: Frame, key: Key | None) -> tuple[tuple[Key, ...], str, str]:
        """Return the way to a child, the same as text, and its last step."""
        if key is None:
            return (), "", ""
        step = step_text(key)
        path = frame.prefix + step
        chars = len(path) + frame.weight
        if len(step) >= MOST_STEP_CHARS or not path.isascii():
            chars += excess_of(key) + written_chars(step)
        self._work.write(chars)
        return (*frame.keys, key), path, step

    # --- leaves -----------------------------------------------------------------------------------------

    def _add_leaf(self, frame: Frame, key: Key | None, value: Value, text: str | None = None) -> str | None:
        """List a value that is no tensor; returns its path, or None where there are too many to list."""
        values = self._found.values
        if len(values) >= self._limits.listed or not self._has_room(frame, key):
            self._found.unlisted += 1
            return None
        keys, path, _ = self._place(frame, key)
        kind, shown = self._shown(value) if text is None else (type_of(value), text)
        if not shown.isascii():
            self._work.write(written_chars(shown))
        values.append(ValueRow(keys, path, kind, shown, len(self._found.tensors)))
        self._found.leaf_values.append(value)
        if type(value) in _BYTES and may_hold_checkpoint(value):
            self._found.embedded += [(path, value)] if len(self._found.embedded) < MOST_CANDIDATES else []
        return path

    def _has_room(self, frame: Frame, key: Key | None) -> bool:
        """Return whether the names on the way to a leaf leave enough room for those of tensors."""
        chars = len(frame.prefix) + frame.weight + (len(key) if isinstance(key, str) else 0)
        return self._work.has_room(chars + _MOST_LEAF_CHARS)

    def _shown(self, value: Value) -> tuple[str, str]:
        """Return type and text of a leaf; one that stands in many places is described once."""
        shown = self._closed.get(id(value))
        if shown is None:
            shown = type_of(value), text_of(value)
            if id(value) in self._closed:
                self._closed[id(value)] = shown
        return shown

    # --- tensors ----------------------------------------------------------------------------------------

    def _add_tensor(self, frame: Frame, key: Key | None, value: Value, facts: TensorFacts) -> None:
        keys, path, step = self._place(frame, key)
        found, context, part_of = self._found, frame.context, frame.part_of
        if part_of is None and context.optimizer is None and self._declared is None:
            role = role_of_tensor(context, keys, facts)
            slot, on_cpu = None, role == "rng" or key in frame.pinned
            if context.model is not None:
                self._add_weight(context.model, context, keys, role, facts)
        else:
            role, slot, on_cpu = self._told(frame, keys, step, value, facts)
        storage = facts.storage
        storage_key = None
        if storage is not None:
            storage_key = storage.key
            found.views.add(storage_key, facts.span)
        self._pay(facts, storage_key, slot)
        row = (keys, path, *facts[:_DESCRIBED], storage_key, role, None, slot, part_of, on_cpu, facts.problem)
        found.tensors.append(tuple.__new__(Tensor, row))  # Tensor(...) would take four times as long
        found.sources.append(value)
        if type(value) is Call and not is_plain(value, facts.dtype):
            note_fault(found.uses, listed_name(value.func), value, self._work.look)
        if facts.parts or facts.state is not None or facts.encoding is not None:
            self._enter_tensor(frame, keys, path, value, facts)

    def _add_weight(
        self, model: ModelDraft, context: Context, keys: tuple[Key, ...], role: Role, facts: TensorFacts
    ) -> None:
        if role == "parameter" or (role == "ema" and is_averaged_parameter(context, keys[-1], facts)):
            model.rows.append(len(self._found.tensors))

    def _told(
        self, frame: Frame, keys: tuple[Key, ...], step: str, value: Value, facts: TensorFacts
    ) -> tuple[Role, str | None, bool]:
        """Return role, slot and place by design of a tensor for which more than its name tells them."""
        context, part_of = frame.context, frame.part_of
        if part_of is not None:
            return self._part(frame, self._found.tensors[part_of], keys, step)
        if self._declared is None:
            role = role_of_tensor(context, keys, facts)
        else:  # what the file does not call a weight is none
            role = self._declared.get(id(value), "other")
        if context.owner is not None and context.optimizer is not None:
            slot = context.slot + step
            return role, slot, self._add_slot(context.optimizer, context.owner, slot, facts)
        if context.model is not None:
            self._add_weight(context.model, context, keys, role, facts)
        return role, None, role == "rng" or bool(keys and keys[-1] in frame.pinned)

    def _pay(self, facts: TensorFacts, storage_key: str | None, slot: str | None) -> None:
        """Count what a row holds besides its path: a file can refer to a wide shape again and again."""
        dimensions, chars = cost_of_row(facts, storage_key, slot)
        if dimensions:
            self._work.look(dimensions)
        self._work.write(chars)
        self._check_rows()

    def _add_slot(self, number: int, owner: Key, slot: str, facts: TensorFacts) -> bool:
        """Note a slot of an optimizer's state; return whether it is on the CPU by design."""
        found = self._found
        found.slots.append((len(found.tensors), number, owner))
        return found.optimizers[number].is_kept_on_cpu(owner, slot, facts.shape)

    @staticmethod
    def _part(frame: Frame, whole: Tensor, keys: tuple[Key, ...], step: str) -> tuple[Role, str | None, bool]:
        """Return role, slot and place by design of a tensor that belongs to another."""
        slot = frame.context.slot + step if whole.slot is not None else None
        on_cpu = whole.on_cpu_by_design or is_metadata_on_cpu(whole, keys) or keys[-1] in frame.pinned
        return whole.role, slot, on_cpu

    def _enter_tensor(
        self, frame: Frame, keys: tuple[Key, ...], path: str, value: Value, facts: TensorFacts
    ) -> None:
        """List what a tensor is made of right below it, and its attributes; note how it is encoded."""
        if facts.encoding is not None:
            self._found.encodings.append((len(self._found.tensors) - 1, facts.encoding))
        if len(keys) >= self._limits.depth:
            self._found.too_deep += 1
            return
        self._work.look(len(facts.parts))
        children: Children = list(facts.parts)
        if id(value) not in self._entered:
            self._work.look(breadth_of(facts.state))
            children += attributes_of(facts.state)
        elif any(id(part) in self._entered for _, part in facts.parts):
            return  # composites within composites would double with each level
        self._entered[id(value)] = path
        index, inside = len(self._found.tensors) - 1, told_apart(children)
        weight = frame.weight + (weight_of_step(keys[-1]) if keys else 0)
        prefix = f"{path}/" if keys else ""
        self._stack.append(Frame(iter(inside), keys, prefix, frame.context, index, NONE_PINNED, weight))

    # --- containers -------------------------------------------------------------------------------------

    def _enter(self, frame: Frame, key: Key | None, value: Value) -> None:
        where = self._entered.get(id(value))
        if where is not None:
            same = cut_text(where, _MOST_WHERE) or "the root"
            self._add_leaf(frame, key, value, f"the same object as {same}")
            return
        if id(value) in self._closed:
            self._add_closed(frame, key, value)
            return
        self._work.look(breadth_of(value))
        children = children_of(value)
        if not children or len(frame.keys) + 1 >= self._limits.depth:
            self._found.too_deep += bool(children)
            self._close(frame, key, value, takes_long=bool(children))
            return
        keys, path, step = self._place(frame, key)
        self._note(value, path)
        self._entered[id(value)] = path
        self._found.holders.append(value)
        self._check_rows()
        context = frame.context if key is None else enter(frame.context, key, step)
        context = self._context(context, keys, path, value, children)
        pinned, weight = pinned_keys(value, key), frame.weight + (0 if key is None else weight_of_step(key))
        prefix = "" if key is None else f"{path}/"
        inside = Frame(iter(children), keys, prefix, context, frame.part_of, pinned, weight)
        self._stack.append(inside)

    def _close(self, frame: Frame, key: Key | None, value: Value, *, takes_long: bool) -> None:
        """List a value that is one leaf, and remember that it is where finding that out took long."""
        if takes_long or _takes_long(value):
            self._closed[id(value)] = None
        path = self._add_leaf(frame, key, value)
        if type(value) is not Call:
            return
        if path is None:
            path = frame.prefix + ("" if key is None else step_text(key))
        if len(self._found.leaves) < _MOST_PLACED:
            self._found.leaves[id(value)] = path
        self._note(value, path)

    def _add_closed(self, frame: Frame, key: Key | None, value: Value) -> None:
        """List a leaf in one more place; what it does was noted at the first."""
        path = self._add_leaf(frame, key, value)
        if path is not None:
            self._add_devices(value, path)

    def _context(
        self,
        context: Context,
        keys: tuple[Key, ...],
        path: str,
        value: Value,
        children: Inside,
    ) -> Context:
        """Return the context inside a container: an optimizer's state, a model, or nothing new."""
        found = self._found
        if context.optimizer is not None:
            return context
        if looks_like_optimizer(value):
            found.optimizers.append(self._optimizers.read(keys, path, value))
            return Context(optimizer=len(found.optimizers) - 1)
        if context.model is not None or context.role not in {None, "ema"}:
            return context
        if isinstance(value, Call) and class_of(value) == GENERATOR:
            return Context(role="rng")
        return self._model_context(context, keys, path, value, children)

    def _model_context(
        self,
        context: Context,
        keys: tuple[Key, ...],
        path: str,
        value: Value,
        children: Inside,
    ) -> Context:
        """Return the context inside a model or data; the same as outside for all else."""
        if holds_data(value, children):
            return Context(role="other")
        kind: Role | None = "other" if is_module(value, children) else None
        if kind is None and not looks_like_model(keys, value, children, self._known):
            return context
        role: Role | None = "ema" if holds_averages(value, children) else context.role
        model = ModelDraft(keys, path, is_average=role is not None)
        self._found.models.append(model)
        return Context(role=role, model=model, kind=kind)

    def _note(self, value: Value, path: str) -> None:
        """Note what a value does besides holding others: names, devices that no map reaches, bad keys."""
        if isinstance(value, Dict | Call) and value.pairs:
            self._found.faults.update(filter(None, [self._keys.find(value.pairs)]))
            for device, source in keyed_devices(self._keys.odd, path, self._work):
                self._found.hidden_devices.append(device)
                self._found.hidden_sources.append(source)
        if isinstance(value, Call):
            note_use(self._found.uses, value)
            devices = hidden_devices(value)
            if devices:
                self._devices[id(value)] = devices
                self._add_devices(value, path)

    def _add_devices(self, value: Value, path: str) -> None:
        found = self._found
        for device, kind in self._devices.get(id(value), ()):
            what = HiddenPlace.DATA_PARALLEL if path.rpartition("/")[2] == SOURCE_DEVICE else kind
            if found.hidden_devices and is_of_generator(path, found.hidden_devices[-1]):
                continue
            found.hidden_devices.append(HiddenDevice(path=path, device=device, what=what))
            found.hidden_sources.append(value)


def _takes_long(value: Value) -> bool:
    """Return whether it is worth remembering that a value is a leaf; of a crowd of empty ones it is not."""
    items = value.items if isinstance(value, Set) else value
    return isinstance(value, Call) or (isinstance(items, list | tuple) and len(items) > _SHORT)

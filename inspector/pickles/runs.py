"""Runs of instructions that come thousands of times, carried out together: tensors, as torch writes them.

A state dict of a hundred thousand tensors is three million instructions, and nearly all are the same thirty
with other operands (`_rebuild_tensor_v2`, written by the C pickler in protocol 2). One expression reads those
from behind one BINPERSID up to the next, also from the last slot of one parameter to the first of the next
in the state of an optimizer. Whatever it does not know to the last byte is left to the handlers, and what it
does to the state is just what they would have done.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress, islice, repeat, takewhile
from operator import attrgetter, rshift
from typing import cast

from inspector.pickles.instructions import CODES
from inspector.pickles.state import WEIGHT_SHIFT, Handler, Later, PausedError, State
from inspector.pickles.values import Call, Dict, Global, Packed, PersistentId, Value
from inspector.tuples import NamedTuple

FEWEST = 128
"""So many persistent ids must a stream have before it is worth looking for runs."""
MOST_AT_ONCE = 512
_FIRST_TRY = 8
_MOST_KNOWN = 4096
_MOST_SIZES = 16
_MOST_NAME = 300

_INT = rb"(?:K.|M..|J....)"
_GET = rb"(?:h.|j....)"
_PUT = rb"r(....)"
_SIZES = rb"(?:\)|\(?%b{1,%d}[t\x85-\x87])" % (_INT, _MOST_SIZES)
_RUN = re.compile(
    # Of one tensor: offset and sizes, strides, whether it requires gradients, OrderedDict and its call.
    rb"(%b%b)(?:%b)?(%b)(?:%b)?([\x88\x89]%b)\)R%b" % (_INT, _SIZES, _PUT, _SIZES, _PUT, _GET, _PUT)
    # The tuple of all these, and the call.
    + rb"t%bR%b" % (_PUT, _PUT)
    # The end of a dict, and the next with its number: the slots of an optimizer for one parameter.
    + rb"(?:u(%b)\}%b\()?" % (_INT, _PUT)
    # Of the next: name, function, "storage", class, key, location and count; their tuple and persistent id.
    + rb"(?:X(..)\0\0([ -~]{1,%d})%b|(%b))(%b\(\(%b%b)" % (_MOST_NAME, _PUT, _GET, _GET, _GET, _GET)
    + rb"X(.)\0\0\0([0-9]{1,20})%b(?:X(.)\0\0\0([a-z]{1,12}(?::[0-9]{1,4})?)%b|(%b))" % (_PUT, _PUT, _GET)
    # Else nothing: so a search tries one place and goes no further, as long as each match follows the last.
    + rb"(%b)t%bQ|" % (_INT, _PUT),
    re.DOTALL,
)
_LAST_GROUP = attrgetter("lastindex")  # None of a match that is nothing
_INTS = {CODES["BININT1"]: 1, CODES["BININT2"]: 2, CODES["BININT"]: 4}
_TUPLES = {CODES["EMPTY_TUPLE"]: 0, CODES["TUPLE1"]: 1, CODES["TUPLE2"]: 2, CODES["TUPLE3"]: 3}
_GETS = {CODES["BINGET"]: 1, CODES["LONG_BINGET"]: 4}
_FLAGS = {CODES["NEWTRUE"]: True, CODES["NEWFALSE"]: False}
_MARK, _TUPLE, _BINPERSID = CODES["MARK"], CODES["TUPLE"], CODES["BINPERSID"]
# Opcodes that every run has. A stream must have used them, since the first use of each is remembered.
_ALWAYS = frozenset(
    CODES[name]
    for name in ("REDUCE", "TUPLE", "MARK", "BINUNICODE", "LONG_BINPUT", "EMPTY_TUPLE", "BINPERSID")
)
_LATER = (Later.SIZES, Later.STRIDES, Later.HOOKS, Later.ARGS)
_ROWS = tuple(range(MOST_AT_ONCE))
_EMPTY_TUPLE, _WIDE = CODES["EMPTY_TUPLE"], 4
_STEPS, _CREATED = 16, 3  # of each run, beyond those of its numbers and slots, and of what is made later
_SPARED = 3  # a tensor in a run takes 0.8 KB with its name and storage, others 0.2 KB for each value
_LONG_SHIFT = 6  # and a name takes little more than its length
_STEPS_BETWEEN, _CREATED_BETWEEN = 3, 2  # of each step from dict to dict, beyond its number, pairs and slot
_OWNER = 8  # which group of the expression is the number behind such a step
_BETWEEN = frozenset((CODES["SETITEMS"], CODES["EMPTY_DICT"]))


class _Numbers(NamedTuple):
    """Numbers as a run holds them, and what reading them costs.

    Attributes:
        first: The one that stands before the sizes, or alone; 0 where none does.
        sizes: The sizes.
        literals: As `State` counts them.
        created: The same.
        steps: How many instructions they are.
    """

    first: int
    sizes: tuple[int, ...]
    literals: int
    created: int
    steps: int


def speed_up(state: State) -> None:
    """Have runs carried out in one go from here on, if this may be a stream of them."""
    plain = state.table[_BINPERSID]
    if (
        len(state.persistent_ids) >= FEWEST
        and state.firsts.keys() >= _ALWAYS
        and state.resolve is None
        and state.short_nbytes >= _MOST_NAME
        and not isinstance(getattr(plain, "__self__", None), Runs)
    ):
        state.table[_BINPERSID] = Runs(plain).read


class _Columns(NamedTuple):
    """The operands of several runs, each kind by itself; empty where a run has none of a kind."""

    place: tuple[bytes, ...]
    put_sizes: tuple[bytes, ...]
    strides: tuple[bytes, ...]
    put_strides: tuple[bytes, ...]
    flags: tuple[bytes, ...]
    put_hooks: tuple[bytes, ...]
    put_args: tuple[bytes, ...]
    put_tensor: tuple[bytes, ...]
    owner: tuple[bytes, ...]
    put_slots: tuple[bytes, ...]
    name_nbytes: tuple[bytes, ...]
    name: tuple[bytes, ...]
    put_name: tuple[bytes, ...]
    name_slot: tuple[bytes, ...]
    head: tuple[bytes, ...]
    key_nbytes: tuple[bytes, ...]
    key: tuple[bytes, ...]
    put_key: tuple[bytes, ...]
    tag_nbytes: tuple[bytes, ...]
    tag: tuple[bytes, ...]
    put_tag: tuple[bytes, ...]
    tag_slot: tuple[bytes, ...]
    numel: tuple[bytes, ...]
    put_pid: tuple[bytes, ...]

    def puts(self) -> list[bytes]:
        """Return the slots of the memo that are filled, in order; empty where one is not."""
        made = (self.put_sizes, self.put_strides, self.put_hooks, self.put_args, self.put_tensor)
        rows = zip(
            *made, self.put_slots, self.put_name, self.put_key, self.put_tag, self.put_pid, strict=True
        )
        return list(chain.from_iterable(rows))


class Runs:
    """Stands in the table for BINPERSID."""

    def __init__(self, plain: Handler) -> None:
        """Prepare to go on where `plain`, the handler, has made a persistent id."""
        self._plain = plain
        self._most = _FIRST_TRY
        self._left = MOST_AT_ONCE
        self._places: dict[bytes, _Numbers] = {}
        self._sizes: dict[bytes, _Numbers] = {}
        self._values: dict[bytes, tuple[Value, ...]] = {}

    def read(self, state: State, data: bytes, pos: int) -> int:
        """Carry out BINPERSID, and the runs behind it.

        Raises:
            PausedError: There were many: it is time to look at the budgets.
        """
        pos = self._plain(state, data, pos)
        self._values.clear()  # what is in the slots of the memo may have changed
        while state.frame_end <= pos and (end := self._read_some(state, data, pos)):
            pos = end
            if self._left <= 0:
                self._left = MOST_AT_ONCE
                raise PausedError(pos)
        return pos

    def _read_some(self, state: State, data: bytes, pos: int) -> int:
        """Carry out the next runs and return where they end; 0 where nothing is as in nearly all."""
        memo = state.memo
        if type(memo) is not list or len(state.stack) != 1 or not any(state.marked[-1:]):
            return 0
        found = takewhile(_LAST_GROUP, _RUN.finditer(data, pos))
        matches = list(islice(found, self._most))
        if not matches:
            return 0
        rows = [one.groups(b"") for one in matches]
        columns = _Columns(*zip(*rows, strict=True))
        count = self._known(state, columns)
        if not count:
            return 0
        if count < len(rows):
            columns = _Columns(*zip(*rows[:count], strict=True))
        puts = columns.puts()
        if not _is_true(columns, b"".join(puts), len(memo)):
            self._most = _FIRST_TRY  # many that are looked at again and again in vain would take long
            return 0
        self._most = MOST_AT_ONCE
        self._left -= count
        made = self._carry_out(state, columns)
        memo += compress(chain.from_iterable(made), puts)
        state.skipped += _STEPS * count + sum(map(bool, puts))
        return matches[count - 1].end()

    def _known(self, state: State, columns: _Columns) -> int:
        """Learn what operands mean; return in how many rows from the first on that is known of all."""
        count = len(columns.put_pid) if _may_step(state) else _before_step(columns.owner)
        if len(self._places) + len(self._sizes) > _MOST_KNOWN:
            self._places.clear()
            self._sizes.clear()
        for column, numbers, before in (
            (columns.place, self._places, 1),
            (columns.numel, self._places, 1),
            (columns.strides, self._sizes, 0),
            (columns.owner, self._places, 1),
        ):
            for raw in set(column).difference(numbers, (b"",)):
                found = _numbers_of(raw, before, state.firsts)
                if found is None:
                    count = min(count, column.index(raw))
                else:
                    numbers[raw] = found
        for column in (columns.flags, columns.head, columns.name_slot, columns.tag_slot):
            for raw in set(column).difference(self._values):
                values = _values_of(raw, state)
                if values is None:
                    count = min(count, column.index(raw))
                else:
                    self._values[raw] = values
        return count

    def _carry_out(self, state: State, columns: _Columns) -> Iterable[Sequence[Value | Later]]:
        """Do to the state what the instructions would do; return what each of them puts into the memo."""
        values, below = self._values, state.marked[-1]
        places = [self._places[raw] for raw in columns.place]
        counts = [self._places[raw].first for raw in columns.numel]
        steps = [self._sizes[raw] for raw in columns.strides]
        funcs, kinds, storages = zip(*[values[raw] for raw in columns.head], strict=True)
        flags = [values[raw] for raw in columns.flags]
        names, tags = (
            _texts(texts) if all(texts) else self._texts_or_slots(texts, slots)
            for texts, slots in ((columns.name, columns.name_slot), (columns.tag, columns.tag_slot))
        )
        keys = _texts(columns.key)
        pids = list(zip(kinds, storages, keys, tags, counts, strict=True))
        nodes = [PersistentId(pid) for pid in pids]
        funcs = (below.pop(), *funcs)
        packed = Packed([cast("PersistentId", state.stack[0]), *nodes[:-1]], places, steps, flags, state.room)
        make = Call.of_run
        tensors = [make(func, packed, row) for func, row in zip(funcs, _ROWS[: len(nodes)], strict=False)]
        owners = [self._places[raw].first if raw else None for raw in columns.owner]
        dicts = _fill(state, tensors, owners, names)
        state.marked[-1].append(funcs[-1])
        state.stack = [nodes[-1]]
        state.persistent_ids += nodes
        called = [funcs[0], *(values[raw][0] for raw in set(columns.head))]
        if not all(map(_is_common, (*called, *(values[raw][1] for raw in set(columns.flags))))):
            _note_calls(state, tensors)
        self._count(state, columns)
        return zip(*map(repeat, _LATER), tensors, dicts, names, keys, tags, pids, strict=False)

    def _texts_or_slots(self, texts: tuple[bytes, ...], slots: tuple[bytes, ...]) -> list[Value]:
        """Return texts, each as it stands there or out of a slot of the memo."""
        values = self._values
        return [text.decode() if text else values[slot][0] for text, slot in zip(texts, slots, strict=True)]

    def _count(self, state: State, columns: _Columns) -> None:
        """Count what was made, as the handlers do."""
        literals, created = 0, _CREATED * len(columns.key)
        for texts in (columns.name, columns.key, columns.tag):
            literals += len(texts) - texts.count(b"")
            literals += sum(map(rshift, map(len, texts), repeat(WEIGHT_SHIFT)))
        for column, numbers in (
            (columns.place, self._places),
            (columns.numel, self._places),
            (columns.strides, self._sizes),
            (columns.owner, self._places),
        ):
            for raw, times in Counter(column).items():
                if raw:
                    one = numbers[raw]
                    literals += times * one.literals
                    state.skipped += times * one.steps
        state.literals += literals
        state.created += created
        if len(state.persistent_ids) <= state.limits.alike:
            chars = list(map(len, columns.name))
            counted, taken = (sum(map(rshift, chars, repeat(by))) for by in (WEIGHT_SHIFT, _LONG_SHIFT))
            state.spared += _SPARED * len(chars) + (counted - taken) // 2


def _may_step(state: State) -> bool:
    """Return whether a dict is being filled that can end behind a tensor: whole pairs, and a dict below them.

    Above the last mark there are keys and values, and the function that is called next.
    """
    around = state.marked[-2] if len(state.marked) > 1 else []
    is_filled = len(state.marked[-1]) % 2 == 0 and bool(around) and type(around[-1]) is Dict
    return is_filled and state.firsts.keys() >= _BETWEEN


def _before_step(owners: tuple[bytes, ...]) -> int:
    """Return how many runs there are before the first that ends a dict."""
    return (
        next((count for count, owner in enumerate(owners) if owner), len(owners))
        if any(owners)
        else len(owners)
    )


def _fill(
    state: State, tensors: list[Call], owners: list[int | None], names: Sequence[Value]
) -> list[Dict | None]:
    """Put tensors and names above the mark, and fill dicts that end there; return the dicts that begin."""
    below = state.marked[-1]
    if owners.count(None) == len(owners):
        below += chain.from_iterable(zip(tensors, names, strict=True))
        return [None] * len(tensors)
    dicts: list[Dict | None] = []
    around = state.marked[-2]
    filled = cast("Dict", around[-1])  # see `_may_step`
    for tensor, owner, name in zip(tensors, owners, names, strict=True):
        below.append(tensor)
        begun = None
        if owner is not None:
            item = iter(below)
            filled.pairs.extend(zip(item, item, strict=True))
            state.created += len(below) // 2 + _CREATED_BETWEEN
            state.skipped += _STEPS_BETWEEN
            begun = filled = Dict([])
            around += owner, begun
            below = state.marked[-1] = []
        dicts.append(begun)
        below.append(name)
    return dicts


def _texts(texts: tuple[bytes, ...]) -> list[str]:
    """Decode texts that have no zero byte, all at once."""
    return b"\0".join(texts).decode().split("\0")


def _note_calls(state: State, tensors: list[Call]) -> None:
    """List calls as REDUCE does: those of names that every checkpoint calls are left out."""
    for tensor in tensors:
        hooks = cast("tuple[Value, ...]", tensor.args)[Later.HOOKS.value]
        state.calls += [node for node in (cast("Call", hooks), tensor) if not _is_common(node.func)]


def _is_common(func: Value) -> bool:
    return type(func) is Global and func.common


def _is_true(columns: _Columns, slots: bytes, start: int) -> bool:
    """Return whether texts are as long as said, and slots are filled in order from this one on."""
    names = [len(name) for name in columns.name if name]
    count = len(slots) // 4
    return (
        slots == struct.pack(f"<{count}I", *range(start, start + count))
        and b"".join(columns.name_nbytes) == struct.pack(f"<{len(names)}H", *names)
        and b"".join(columns.key_nbytes) == bytes(map(len, columns.key))
        and b"".join(columns.tag_nbytes) == bytes(len(tag) for tag in columns.tag if tag)
    )


def _numbers_of(raw: bytes, before: int, used: Mapping[int, object]) -> _Numbers | None:
    """Read numbers, of which so many stand before the sizes; None where they are no such numbers."""
    numbers: list[int] = []
    marks: list[int] = []
    pos = literals = steps = created = 0
    sizes: tuple[int, ...] = ()
    while pos < len(raw):
        code = raw[pos]
        if code not in used:
            return None
        end = pos + 1 + _INTS.get(code, 0)
        steps += 1
        if code in _INTS:
            numbers.append(int.from_bytes(raw[pos + 1 : end], "little", signed=_INTS[code] == _WIDE))
            literals += _INTS[code] > 1
        elif code == _MARK:
            marks.append(len(numbers))
        else:
            taken = _TUPLES.get(code, len(numbers) - before)
            if len(numbers) - taken != before or marks != [before] * (code == _TUPLE):
                return None
            sizes, created = tuple(numbers[before:]), int(code != _EMPTY_TUPLE)
        pos = end
    return _Numbers(numbers[0] if before else 0, sizes, literals, created, steps)


def _values_of(raw: bytes, state: State) -> tuple[Value, ...] | None:
    """Return what some instructions push, marks left out; None where one is new or its slot is empty."""
    values: list[Value] = []
    pos, memo = 0, state.memo
    while pos < len(raw):
        code = raw[pos]
        end = pos + 1 + _GETS.get(code, 0)
        slot = int.from_bytes(raw[pos + 1 : end], "little")
        if code not in state.firsts or (code in _GETS and slot >= len(memo)):
            return None
        if code in _GETS:
            values.append(state.recall(slot))
        elif code in _FLAGS:
            values.append(_FLAGS[code])
        pos = end
    return tuple(values)

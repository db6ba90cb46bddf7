"""What the programs of a file do, as facts that a verdict can be made of: names, uses, calls and oddities."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.programs import Program, count_globals
from inspector.containers.rebuilds import JUDGED, REBUILDS
from inspector.errors import CheckpointError
from inspector.model.arguments import UNKNOWN, kind_of, kind_of_name, listed_name
from inspector.model.checkpoint import (
    CallUse,
    Checkpoint,
    Fault,
    GlobalUse,
    KeyFault,
    Safety,
    UnusualOpcode,
    Verb,
)
from inspector.model.programs.uses import PERSISTENT_ID, Uses, note_attributes, note_fault, note_use
from inspector.model.values.children import breadth_of
from inspector.model.values.text import cut_name, format_call
from inspector.pickles.instructions import OPCODES
from inspector.pickles.machine import Stream
from inspector.pickles.oddities import Oddity, StreamFault
from inspector.pickles.values import Call, Dict, Global, Set, Value
from inspector.records import replace

# What loading would call besides the functions that make plain tensors, as text that does nothing.
#
# The machine remembers every such call, also of those whose results are dropped or hidden where no row is.
# Of each name the first few are described: a thousand calls of one function are one piece of news.

MOST_OF_ONE_NAME = 4
"""How many calls of one name are described."""
_MOST_NAMES = 10_000
_MOST_HANDED = 24


def list_calls(calls: Iterable[Call], places: dict[int, str]) -> tuple[CallUse, ...]:
    """Describe calls in the order in which they would be made.

    Args:
        places: Paths of the values that have a row, by their `id`.
    """
    counts: dict[int, int] = {}
    rows: list[CallUse] = []
    for call in calls:
        # What is called without having a name is one kind: it comes out of another call.
        number = id(call.func) if isinstance(call.func, Global) else 0
        count = counts[number] = counts.get(number, 0) + 1
        if count <= MOST_OF_ONE_NAME and len(counts) <= _MOST_NAMES:
            name = call.func.dotted if isinstance(call.func, Global) else ""
            rows.append(CallUse(name, format_call(call), _handed(call.args), places.get(id(call))))
    return tuple(rows)


def _handed(args: Value) -> tuple[str, ...]:
    items = args[:_MOST_HANDED] if isinstance(args, tuple) else (args,)
    return tuple(item.dotted for item in items if isinstance(item, Global))


def note_calls(uses: Uses, calls: Iterable[Call], look: Callable[[int], None]) -> None:
    """Note what is done in calls: of each name and verb once, and every call whose arguments are not taken.

    That a function makes a tensor is no news, unless it cannot.
    """
    known: set[tuple[object, ...]] = set()
    names: dict[int, str] = {}
    for call in calls:
        look(1)
        number = _number(call.func)
        name = names.get(number)
        if name is None:
            name = names[number] = listed_name(call.func)
        if name in JUDGED:
            note_fault(uses, name, call, look)
        if name in JUDGED or is_rebuild(call.func):
            continue
        kind = (number, call.items is None, call.pairs is None, call.state is None)
        if kind not in known or (isinstance(call.func, Global) and call.func.package == "numpy"):
            known.add(kind)
            look(breadth_of(call))
            note_use(uses, call)
        elif kind_of_name(name) != UNKNOWN:
            note_fault(uses, name, call, look)


def is_rebuild(func: Value) -> bool:
    """Return whether a value is one of torch's functions that make tensors, of whatever release."""
    return isinstance(func, Global) and func.package == "torch" and func.name.startswith("_rebuild")


def _number(func: Value) -> int:
    return id(func) if isinstance(func, Global) else 0


# Which imported names a pickle merely makes objects of, and which it calls or hands on to be called.
#
# torch's list of names makes no difference between the two: a name on it may be called by REDUCE with any
# arguments. NEWOBJ is `cls.__new__(cls, *args)`, which fails for everything but a class, and the state that
# BUILD sets from a plain dictionary becomes the object's attributes. So a name that is used in no other way
# is a class, of which the file only brings the attributes. REDUCE proves nothing: a function is called the
# same way.

# torch takes nothing but a class at this place of their arguments (`torch/_tensor.py`, `torch/_utils.py`).
_CLASS_AT = {one.dotted: one.class_at for one in REBUILDS if one.class_at >= 0}
_MOST_ARGS = 16
_PAIR = 2


def split_by_use(
    calls: Iterable[Call], look: Callable[[int], None] = lambda _: None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that are only constructed, and those that are called or may be by what is handed them.

    A name that is in neither is imported and left alone. Each container is looked into once, however many
    calls share it. `look` counts the work.
    """
    made: dict[str, None] = {}
    called: dict[str, None] = {}
    seen: set[int] = set()
    for call in calls:
        look(2)
        func = call.func
        if isinstance(func, Global):
            (made if _constructs(call) else called)[func.dotted] = None
        _note_handed(_arguments(call, made), called, seen)
    return tuple(name for name in made if name not in called), tuple(called)


def _constructs(call: Call) -> bool:
    return call.kind == "newobj" and call.kwargs is None and _is_plain_state(call.state)


def _is_plain_state(state: Value) -> bool:
    """Return whether a state is one that becomes attributes; with slots, it is a pair of such."""
    if isinstance(state, tuple) and len(state) == _PAIR:
        return all(part is None or isinstance(part, Dict) for part in state)
    return state is None or isinstance(state, Dict)


def _arguments(call: Call, made: dict[str, None]) -> list[Value]:
    args, func = call.args, call.func
    place = _CLASS_AT.get(func.dotted) if isinstance(func, Global) else None
    if place is None or not isinstance(args, tuple) or not place < len(args) <= _MOST_ARGS:
        return [args, call.kwargs]
    cls = args[place]
    if not isinstance(cls, Global):
        return [args]
    made[cls.dotted] = None
    return [*args[:place], *args[place + 1 :]]


def _note_handed(values: list[Value], called: dict[str, None], seen: set[int]) -> None:
    while values:
        value = values.pop()
        if isinstance(value, Global):
            called[value.dotted] = None
        elif isinstance(value, list | tuple | Dict | Set) and id(value) not in seen:
            seen.add(id(value))
            values.extend(_inside(value))


def _inside(value: list[Value] | tuple[Value, ...] | Dict | Set) -> Iterable[Value]:
    if isinstance(value, Dict):
        return [part for pair in value.pairs for part in pair]
    return value.items if isinstance(value, Set) else value


UNREAD = "unread"
"""The format of what stands for a file that cannot be read."""
KNOWN_OPCODES = frozenset(
    {
        *("APPEND", "APPENDS", "BINGET", "BININT", "BININT1", "BININT2", "BINPERSID", "BINPUT"),
        *("BINUNICODE", "BUILD", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_SET", "EMPTY_TUPLE", "GLOBAL", "LONG1"),
        *("LONG_BINGET", "LONG_BINPUT", "MARK", "NEWFALSE", "NEWOBJ", "NEWTRUE", "NONE", "PROTO", "REDUCE"),
        *("SETITEM", "SETITEMS", "SHORT_BINSTRING", "STOP", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    }
)
"""What the restricted unpickler of every torch knows: no load stops there."""
_MAY_BE_TUPLES = frozenset({"tuple", "Size", UNKNOWN})
_MOST_SECONDS = 1.0


def own_programs(programs: Iterable[Program]) -> list[Program]:
    """Return those that the file's own loader runs."""
    return [one for one in programs if one.kind != "rival"]


def _count_nothing(_parts: int) -> None:
    """Count no work: of a file that cannot be read only the first calls of each name are looked at."""


def note_program_uses(
    uses: Uses,
    programs: Iterable[Program],
    look: Callable[[int], None],
    ends_s: float,
) -> None:
    """Add what the programs do with the names that they import, wherever the results end."""
    for program in own_programs(programs):
        stream = program.stream
        note_calls(uses, stream.calls, look)
        note_attributes(uses, stream, ends_s)
        if program.kind == "part" and stream.persistent_ids:
            uses.add((PERSISTENT_ID, Verb.MISREAD))


def list_globals(
    programs: Sequence[Program], stream: Stream | None = None, *, in_parts: bool = False
) -> tuple[GlobalUse, ...]:
    """Return the names that the programs import, in the order of the first use.

    Args:
        in_parts: Whether they are those of several files, by whose names theirs begin.
    """
    parts = _parts_by_name(programs) if in_parts else {}
    before = {} if stream is None else _storages_before(stream)
    own = count_globals(own_programs(programs))
    return tuple(
        GlobalUse(
            name=cut_name(name),
            count=count,
            storages_before=before.get(name, 0),
            part=parts.get(name, ""),
            elsewhere=name not in own,
        )
        for name, count in count_globals(programs).items()
    )


def _parts_by_name(programs: Sequence[Program]) -> dict[str, str]:
    found: dict[str, str] = {}
    for program in programs:
        part = program.name.partition(": ")[0]
        for node in program.stream.globals:
            found.setdefault(node.dotted, part)
    return found


def _storages_before(stream: Stream) -> dict[str, int]:
    loaded = _storages_loaded(stream, max((node.after for node in stream.globals), default=0))
    return {node.dotted: loaded[node.after] for node in stream.globals}


def _storages_loaded(stream: Stream, most: int) -> list[int]:
    """Return how many storages a stream has loaded after each of its first persistent ids, `most` at most."""
    keys: set[str] = set()
    loaded = [0]
    for node in stream.persistent_ids[:most]:  # nearly always a few: the names come with the first tensors
        storage_id = parse_storage_id(node)
        if storage_id is not None:
            keys.add(storage_id.key)
            keys.update(() if storage_id.view is None else storage_id.view[:1])
        loaded.append(len(keys))
    return loaded


def _find_unusual(streams: Sequence[Stream]) -> tuple[UnusualOpcode, ...]:
    """Return the opcodes that not every restricted unpickler knows, in the order of their first use."""
    found: dict[str, UnusualOpcode] = {}
    names: set[str] = set()
    for stream in streams:
        for code, (ids, asked) in stream.firsts.items():
            name = OPCODES[code].name
            if name not in KNOWN_OPCODES and name not in found:
                before = names.union(node.dotted for node in stream.globals[:asked])
                found[name] = UnusualOpcode(name, _storages_loaded(stream, ids)[-1], len(before))
        names.update(node.dotted for node in stream.globals)
    return tuple(found.values())


def describe_safety(  # noqa: PLR0913 - each is told by another reader of the file
    programs: Sequence[Program],
    uses: Uses,
    *,
    protocol: int,
    look: Callable[[int], None] = _count_nothing,
    oddities: Iterable[Oddity] = (),
    faults: AbstractSet[KeyFault] = frozenset(),
    places: Mapping[int, str] | None = None,
) -> Safety:
    """Return what loading needs, over all programs of a file.

    Args:
        uses: What they do with names, see `model.programs.uses`.
        places: Paths of the values that have a row, by their `id`.
    """
    streams = [program.stream for program in programs]
    own = [program.stream for program in own_programs(programs)]
    calls = tuple(call for stream in streams for call in stream.calls)
    constructed, called = split_by_use(calls, look)
    look(len(calls))
    odd = tuple(dict.fromkeys((*oddities, *(one for stream in streams for one in stream.oddities))))
    known: set[Fault] = {one.kind for one in odd}
    known.update(faults, *(one.faults for one in streams))
    if any(type(call.args) is not tuple and kind_of(call.args) not in _MAY_BE_TUPLES for call in calls):
        known.add(StreamFault.ARGUMENTS)
    return Safety(
        opcodes=tuple(dict.fromkeys(OPCODES[code].name for stream in own for code in stream.firsts)),
        unusual=_find_unusual(own),
        protocol=protocol,
        oddities=odd,
        uses=tuple(sorted((cut_name(name), verb) for name, verb in uses)),
        calls=list_calls(calls, dict(places or {})) if calls else (),
        calls_made=len(calls),
        constructed=tuple(map(cut_name, constructed)),
        called=tuple(map(cut_name, called)),
        faults=tuple(sorted(known)),
        unread=tuple(_unread(one) for one in programs if not one.is_known),
        rivals=tuple(
            cut_name(one.name)
            for one in programs
            if one.kind == "rival" and (one.stream.calls or one.stream.globals)
        ),
        unread_before_2_6=tuple(_unread(one) for one in programs if one.restricted),
    )


def _unread(program: Program) -> str:
    """Return what is not known and why, as a clause; the name may be the file's own text."""
    return f"{cut_name(program.name)} ({program.why or 'it cannot be read to its end'})"


def _first_calls(program: Program) -> Program:
    """Return a program with the first few calls of each name: time is short once an error was met."""
    counts: dict[int, int] = {}
    found = []
    for call in program.stream.calls:
        number = id(call.func) if isinstance(call.func, Global) else 0
        count = counts[number] = counts.get(number, 0) + 1
        if count <= MOST_OF_ONE_NAME:
            found.append(call)
    return program._replace(stream=replace(program.stream, calls=tuple(found)))


def unread_checkpoint(error: CheckpointError) -> Checkpoint | None:
    """Return what the programs of a file do that cannot be read, as of a checkpoint without a row.

    Returns:
        The checkpoint, or None where all that loading unpickles was seen, and imports nothing.
    """
    seen = [program for program in error.programs if isinstance(program, Program)]
    programs = [_first_calls(program) for program in seen]
    uses: Uses = set()
    note_program_uses(uses, programs, _count_nothing, time.thread_time() + _MOST_SECONDS)
    found = list_globals(programs)
    if not found and all(program.is_known for program in programs):
        return None
    return Checkpoint(
        path=error.where or "",
        format=UNREAD,
        file_nbytes=0,
        tensors=(),
        storages=(),
        values=(),
        globals=found,
        hidden_devices=(),
        optimizers=(),
        versions=(),
        root="value",
        module_class=None,
        safety=replace(
            describe_safety(
                programs, uses, protocol=max((one.stream.protocol for one in programs), default=0)
            ),
            calls_made=sum(len(program.stream.calls) for program in seen),
        ),
        notes=() if all(program.is_whole for program in programs) else (Note(NoteKind.BROKEN_OFF),),
    )

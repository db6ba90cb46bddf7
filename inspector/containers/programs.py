"""Every program of a file: the pickles that loading it runs, gathered in one place while they are read.

A pickle is a program, and `torch.load` runs more of them than the one that makes the saved object: five of a
legacy file, one for each storage and tensor of a tar file. Whatever reads a pickle that torch runs reads it
through `Programs`, so that none can be missing from the verdict, also where reading ends in an error. What a
loader would unpickle and no reader here can is noted there as well (`Programs.miss`): it is not known, and
never safe.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple

from inspector.containers.rebuilds import EXPECTED
from inspector.errors import (
    BrokenOffError,
    CheckpointError,
    ContainerError,
    InvalidPickleError,
    PickleError,
)
from inspector.limits import Limits
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.oddities import StreamFault
from inspector.pickles.values import Call, Global
from inspector.records import replace

ProgramKind = Literal["object", "part", "rival", "nested", "missed"]
"""`object`: it makes the saved object. `part`: torch runs it before or after that one. `rival`: other readers
run it in the place of the object's. `nested`: another program unpickles it. `missed`: a loader would unpickle
it, and nothing of it was read."""

_MOST_MISSED = 64
_MOST_OPCODES = 2_000_000
_MOST_VALUES = 500_000
_MOST_NBYTES = 32 << 20
_MORE_SECONDS = 2.0


class Program(NamedTuple):
    """One pickle, or several that stand one behind the other and belong together."""

    name: str  # what it is, such as `system information`
    kind: ProgramKind
    stream: Stream
    # whether it was read to its end. Of one that was not, the stream holds what was seen.
    is_whole: bool = True
    # whether nothing of what it runs is left: it is whole, or breaks off for every unpickler
    is_known: bool = True
    why: str = ""  # why nothing of it was read, as a clause; empty for the others
    restricted: bool = False  # whether torch unpickles it by its list alone since 2.6


_NOTHING = Stream(
    root=None,
    data=b"",
    end=0,
    globals=(),
    persistent_ids=(),
    calls=(),
    faults=frozenset(),
    opcodes=frozenset(),
    firsts={},
    protocol=0,
    oddities=(),
)


class Programs:
    """The programs of one file, in the order in which they were read."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ProgramKind], list[Stream]] = {}
        self._broken: set[tuple[str, ProgramKind]] = set()
        self._unknown: set[tuple[str, ProgramKind]] = set()
        self._missed: dict[tuple[str, bool], str] = {}
        self.opened: list[Call] = []  # calls whose bytes were read already, with what they open

    def run(self, machine: Machine, name: str, kind: ProgramKind = "part") -> Stream:
        """Have a machine read a pickle, and remember what that does, also if it breaks off."""
        streams = self._found.setdefault((name, kind), [])
        machine.state.expected = EXPECTED
        try:
            stream = machine.run()
        except (PickleError, ContainerError) as error:
            self._broken.add((name, kind))
            if not isinstance(error, BrokenOffError | InvalidPickleError):
                self._unknown.add((name, kind))
            streams.append(machine.seen())
            raise
        streams.append(stream)
        return stream

    def let_go(self, name: str, harmless: AbstractSet[str]) -> None:
        """Let go of what a program made, and of calls of names that are known to make nothing but data.

        What describes a folder has a million of them, and nobody asks for any one.
        """
        for (known, _), streams in self._found.items():
            if known == name:
                streams[:] = [
                    replace(
                        stream,
                        root=None,
                        calls=tuple(
                            call
                            for call in stream.calls
                            if not isinstance(call.func, Global) or call.func.dotted not in harmless
                        ),
                    )
                    for stream in streams
                ]

    def streams(self) -> tuple[tuple[str, Stream], ...]:
        """Return every stream that was read, each with the name of its program."""
        return tuple((name, one) for (name, _), streams in self._found.items() for one in streams)

    def add(self, stream: Stream, name: str, kind: ProgramKind) -> None:
        """Add a program that was read elsewhere."""
        self._found.setdefault((name, kind), []).append(stream)

    def note_ended(self, name: str) -> None:
        """Note that all there is of a program was read: the rest is missing from the file."""
        self._broken = {key for key in self._broken if key[0] != name}
        self._unknown = {key for key in self._unknown if key[0] != name}

    def miss(self, name: str, why: str, *, restricted: bool = False) -> None:
        """Note what a loader would unpickle and was not read, with a clause that says why."""
        if len(self._missed) < _MOST_MISSED:  # one is enough for the verdict, a few for its reasons
            self._missed.setdefault((name, restricted), why)

    def note_unread(self, name: str) -> None:
        """Note that a program does more than could be read."""
        found = {key for key in self._found if key[0] == name}
        self._broken |= found
        self._unknown |= found

    def adopt(self, others: Programs, name: str, kind: ProgramKind = "nested") -> None:
        """Add the programs of what one of these unpickles, or of another format, under one name."""
        streams = [stream for _, stream in others.streams()]
        if streams:
            self._found.setdefault((name, kind), []).extend(streams)
        if others._broken:
            self._broken.add((name, kind))
        if others._unknown:
            self._unknown.add((name, kind))
        for (missed, restricted), why in others._missed.items():
            self.miss(f"{name}: {missed}", why, restricted=restricted)

    def absorb(self, others: Iterable[object], name: str) -> None:
        """Add the programs of one file among several, each under the file's name and its own."""
        for one in others:
            if isinstance(one, Program):
                key = f"{name}: {one.name}", one.kind
                if one.kind == "missed":
                    self.miss(key[0], one.why, restricted=one.restricted)
                    continue
                self._found.setdefault(key, []).append(one.stream)
                if not one.is_whole:
                    self._broken.add(key)
                if not one.is_known:
                    self._unknown.add(key)

    def absorb_failed(self, error: CheckpointError, name: str) -> None:
        """Add the programs of one file among several that could not be read, and what is not known of it."""
        self.absorb(error.programs, name)
        self.miss(name, error.what)

    def all(self) -> tuple[Program, ...]:
        """Return what was read so far, and behind it what was missed."""
        read = (
            Program(*key, _joined(streams), key not in self._broken, key not in self._unknown)
            for key, streams in self._found.items()
            if streams
        )
        missed = (
            Program(
                name, "missed", _NOTHING, is_whole=False, is_known=restricted, why=why, restricted=restricted
            )
            for (name, restricted), why in self._missed.items()
        )
        return (*read, *missed)


def _joined(streams: Sequence[Stream]) -> Stream:
    if len(streams) == 1:
        return streams[0]
    return replace(
        streams[0],
        root=[stream.root for stream in streams],
        globals=tuple(node for stream in streams for node in stream.globals),
        persistent_ids=tuple(node for stream in streams for node in stream.persistent_ids),
        calls=tuple(call for stream in streams for call in stream.calls),
        faults=frozenset[StreamFault]().union(*(stream.faults for stream in streams)),
        opcodes=frozenset[int]().union(*(stream.opcodes for stream in streams)),
        firsts={code: at for stream in reversed(streams) for code, at in stream.firsts.items()},
        oddities=tuple(oddity for stream in streams for oddity in stream.oddities),
    )


def within_bounds(limits: Limits) -> Limits:
    """Return what may be spent on programs that are read for the verdict alone."""
    return replace(
        limits,
        opcodes=min(limits.opcodes, _MOST_OPCODES),
        values=min(limits.values, _MOST_VALUES),
        pickle_nbytes=min(limits.pickle_nbytes, _MOST_NBYTES),
        ends_s=time.thread_time() + _MORE_SECONDS,
    )


def count_globals(programs: Iterable[Program]) -> dict[str, int]:
    """Return how often the programs import each name, in the order of the first use."""
    counts: dict[str, int] = {}
    for program in programs:
        for node in program.stream.globals:
            counts[node.dotted] = counts.get(node.dotted, 0) + node.count
    return counts

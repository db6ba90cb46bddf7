"""The calls of a program by the line that has to be changed: a loop over a hundred files is one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from inspector.records import dataclass
from inspector.rescue.calls import Call, Journal, Place, Way
from inspector.rescue.mending import Mending, mend


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A line that loads from devices which had to be mapped.

    Attributes:
        site: The line that calls what loads.
        own: The line of the user's own code that led there.
        way: How it loads.
        moves: From which device to which, with reason and size; the files are added up.
        files: The files, where they are known.
        mending: What mends it in the source; None where nothing was mapped.
    """

    site: Place | None
    own: Place | None
    way: Way
    moves: tuple[Call, ...]
    files: tuple[str, ...]
    mending: Mending | None


def find_needs(journal: Journal) -> tuple[Need, ...]:
    """Return the lines of a journal, in the order in which they were met."""
    groups: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    for call in journal.calls:
        groups[call.site, call.own, call.way].append(call)
    return tuple(_need(calls) for calls in groups.values())


def _need(calls: list[Call]) -> Need:
    first = calls[0]
    files = tuple(sorted({call.file for call in calls if call.file is not None}))
    moves = tuple(_added_up(calls))
    return Need(
        site=first.site,
        own=first.own,
        way=first.way,
        moves=moves,
        files=files,
        mending=mend(first, [(move.saved, move.to) for move in moves if move.to is not None], files),
    )


def _added_up(calls: Iterable[Call]) -> Iterator[Call]:
    """Yield the calls of one line by their devices."""
    groups: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.saved, call.to, call.why].append(call)
    for alike in groups.values():
        first = alike[0]
        yield Call(
            site=first.site,
            own=first.own,
            saved=first.saved,
            to=first.to,
            why=first.why,
            way=first.way,
            file=None,
            storages=sum(call.storages for call in alike),
            nbytes=sum(call.nbytes for call in alike),
        )

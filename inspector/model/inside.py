"""Files of torch that stand in bytes of another: what `torch.save` wrote into a buffer.

Loading the file around them leaves them closed, so no `map_location` of that call reaches their devices, and
nothing of theirs is run: the code that opens them does that. Devices on the CPU load everywhere and are not
listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from inspector.containers.opening import read_container
from inspector.containers.programs import Program, count_globals, within_bounds
from inspector.containers.source import BytesSource
from inspector.errors import CancelledError, CheckpointError
from inspector.limits import Limits
from inspector.model.checkpoint import HiddenDevice, HiddenPlace
from inspector.model.found import Found
from inspector.model.roles.devices import is_accelerator
from inspector.model.tensors.views import Known
from inspector.model.values.embedded import contents_of, is_checkpoint
from inspector.model.walk import walk
from inspector.pickles.values import Value
from inspector.progress import Progress

NOT_READ = ""
_MOST_FILES = 256
_MOST_NBYTES = 256 << 20
_MOST_DEVICES = 64
_MOST_NAMES = 10_000


def devices_inside(
    found: Found, data: bytes, limits: Limits, progress: Progress
) -> Iterator[tuple[HiddenDevice, Value]]:
    """Yield each device of each file within bytes, with the value that is the bytes."""
    for path, value, devices, _ in files_inside(found, data, limits, progress):
        for device in devices:
            yield HiddenDevice(path=path, device=device, what=HiddenPlace.NESTED), value


def files_inside(
    found: Found, data: bytes, limits: Limits, progress: Progress
) -> Iterator[tuple[str, Value, list[str], list[str]]]:
    """Yield the place of each file within bytes, these, its devices and the names that its pickles import.

    Those count too that files in its own bytes import. The empty name is what was not looked at.
    """
    bounds, room = within_bounds(limits), _Room(_MOST_FILES, _MOST_NBYTES)
    for path, value in found.embedded:
        looked_at: list[_File] = []
        waiting = room.take(value, data)
        while waiting:
            looked_at.append(_looked_at(waiting.pop(), path, bounds, progress, room))
            waiting += looked_at[-1].within
        names = dict.fromkeys(name for file in looked_at for name in file.names)
        if looked_at:
            yield path, value, looked_at[0].devices, list(names)


class _File(NamedTuple):
    devices: list[str]
    names: list[str]
    within: list[bytes | None]


class _Room:
    """What may still be looked at."""

    def __init__(self, files: int, nbytes: int) -> None:
        self._files, self._nbytes = files, nbytes

    def take(self, value: Value, data: bytes) -> list[bytes | None]:
        """Return bytes that are to be looked at, None where they are too many; nothing if there are none."""
        contents = contents_of(value, data)
        if not is_checkpoint(contents):
            return []
        self._files -= 1
        self._nbytes -= len(contents)
        return [contents if min(self._files, self._nbytes) >= 0 else None]


def _looked_at(contents: bytes | None, path: str, limits: Limits, progress: Progress, room: _Room) -> _File:
    if contents is None:
        return _File([], [NOT_READ], [])
    source, container, names = BytesSource(contents, path), None, []
    try:
        container = read_container(source, limits, progress)
        names = _names(container.programs)
        within = walk(container.root, limits, progress, Known(container.storage_ids)).embedded
    except CancelledError:
        raise
    except CheckpointError:  # which may have read what it runs
        return _File([], [*names, NOT_READ] if container else _names(source.programs.all()), [])
    places = dict.fromkeys(one.location for one in container.storage_ids.values())
    devices = [place for place in places if is_accelerator(place)][:_MOST_DEVICES]
    more = [one for _, value in within for one in room.take(value, container.object_data)]
    return _File(devices, names, more)


def _names(programs: Sequence[Program]) -> list[str]:
    names = list(islice(count_globals(programs), _MOST_NAMES + 1))
    is_all = len(names) <= _MOST_NAMES and all(program.is_known for program in programs)
    return names if is_all else [*names, NOT_READ]

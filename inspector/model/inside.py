"""Files of torch that stand in bytes of another: what `torch.save` wrote into a buffer.

Loading the file around them leaves them closed, so no `map_location` of that call reaches their devices, and
nothing of theirs is run: the code that opens them does that. Devices on the CPU load everywhere and are not
listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from inspector.containers.opening import read_container
from inspector.containers.programs import count_globals, within_bounds
from inspector.containers.source import BytesSource
from inspector.errors import CancelledError, CheckpointError
from inspector.limits import Limits
from inspector.model.checkpoint import HiddenDevice, HiddenPlace
from inspector.model.found import Found
from inspector.model.roles.devices import is_accelerator
from inspector.model.values.embedded import contents_of
from inspector.pickles.values import Value
from inspector.progress import Progress

_MOST_FILES = 64
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
    """Yield the place of each file within bytes, these, its devices and the names that its pickles import."""
    left = _MOST_NBYTES
    for path, value in found.embedded[:_MOST_FILES]:
        contents = contents_of(value, data)
        left -= len(contents)
        if not contents or left < 0:
            continue
        yield (path, value, *_looked_at(contents, path, limits, progress))


def _looked_at(contents: bytes, path: str, limits: Limits, progress: Progress) -> tuple[list[str], list[str]]:
    source = BytesSource(contents, path)
    try:
        container = read_container(source, within_bounds(limits), progress)
    except CancelledError:
        raise
    except CheckpointError:  # which may have read what it runs
        return [], list(islice(count_globals(source.programs.all()), _MOST_NAMES))
    places = dict.fromkeys(one.location for one in container.storage_ids.values())
    devices = [place for place in places if is_accelerator(place)][:_MOST_DEVICES]
    return devices, list(islice(count_globals(container.programs), _MOST_NAMES))

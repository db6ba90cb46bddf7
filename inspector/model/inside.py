"""Devices in files of torch that stand in bytes of another: what `torch.save` wrote into a buffer.

Loading the file around them leaves them closed, so no `map_location` of that call reaches them. Those on the
CPU load everywhere and are not listed.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.containers.opening import read_container
from inspector.containers.programs import within_bounds
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


def devices_inside(
    found: Found, data: bytes, limits: Limits, progress: Progress
) -> Iterator[tuple[HiddenDevice, Value]]:
    """Yield each device of each file within bytes, with the value that is the bytes."""
    left = _MOST_NBYTES
    for path, value in found.embedded[:_MOST_FILES]:
        contents = contents_of(value, data)
        left -= len(contents)
        if not contents or left < 0:
            continue
        for device in _devices(contents, path, limits, progress):
            yield HiddenDevice(path=path, device=device, what=HiddenPlace.NESTED), value


def _devices(contents: bytes, path: str, limits: Limits, progress: Progress) -> list[str]:
    try:
        container = read_container(BytesSource(contents, path), within_bounds(limits), progress)
    except CancelledError:
        raise
    except CheckpointError:
        return []
    places = dict.fromkeys(one.location for one in container.storage_ids.values())
    return [place for place in places if is_accelerator(place)][:_MOST_DEVICES]

"""Devices that are keys of dictionaries, or stand in a tuple that is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inspector.limits import Work, written_chars
from inspector.model.checkpoint import HiddenDevice, HiddenPlace
from inspector.model.roles.hidden import DEVICE_CLASS
from inspector.model.tensors.rebuild import device_text
from inspector.model.values.text import class_of, path_key, step_text
from inspector.pickles.values import Call, Value

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

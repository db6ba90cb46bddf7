"""What a format is called, and why there is nothing to map in a file of it."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.checkpoint import Checkpoint
from inspector.model.once import once
from inspector.units import format_count

_ARTICLES = ("a ", "an ")


def format_label(checkpoint: Checkpoint) -> str:
    """Return the name of a format as a label: without its article, and with the number of files."""
    what = format_of(checkpoint.format).what
    for article in _ARTICLES:
        what = what.removeprefix(article)
    parts = f", {format_count(len(checkpoint.parts), 'file')}" if checkpoint.parts else ""
    return f"{what}{parts}"


@once
def names_devices(checkpoint: Checkpoint) -> bool:
    """Return whether a file says of anything in it which device it was saved on; one without tensors may."""
    devices = {tensor.device for tensor in checkpoint.tensors} | {row.device for row in checkpoint.storages}
    return devices != {NO_DEVICE}


def nothing_to_map(checkpoint: Checkpoint) -> str:
    """Return why the devices of a file cannot be changed, in a sentence; empty where they can."""
    row = format_of(checkpoint.format)
    if not names_devices(checkpoint):
        return f"No devices are stored here: {row.device_from}."
    why = next((why.what for why in row.cannot if "remap" in why.steps), "")
    return f"{why[:1].upper()}{why[1:]}." if why and checkpoint.tensors else ""

"""How formats, machines, places and fixes are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inspector.containers.formats import format_of
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.model.once import once
from inspector.model.roles.devices import DEVICE_FINDINGS
from inspector.units import format_count, shown_path

if TYPE_CHECKING:
    from inspector.diagnose.errors.explanation import Explanation


# Where a row stands, as people read it.

ROOT = "(root)"


def shown_place(row: Tensor | ValueRow) -> str:
    """Return the path of a row as it is shown: an empty key is a place, and not the root."""
    return shown_path(row.path) or ('""' if row.keys else ROOT)


# Which errors are about the machine: what the GPU doctor says of it belongs into their answer.

ABOUT_MACHINE = frozenset({"bitsandbytes", "cuda-start", "driver-mismatch", "fp16-on-cpu", "no-kernel-image"})
"""Ids of explanations that go with no finding about a device, as no file has to do with them."""


def is_about_machine(explanation: Explanation | None) -> bool:
    """Return whether an error comes from what torch finds on the machine, or does not find there."""
    return explanation is not None and (
        explanation.finding in DEVICE_FINDINGS or explanation.id in ABOUT_MACHINE
    )


# What stands before a line that mends something, worded once for the window and the command line.

RemedyKind = Literal["load", "trusted", "code", "copy", "weights", "in-place", "recover"]
"""In the order in which they are offered: the shortest first, and the file itself is changed last."""

BEFORE: dict[RemedyKind, str] = {
    "load": "Load it with",
    "trusted": "Load it, if you trust that code, with",
    "code": "Print the code that loads it with",
    "copy": "Write a copy with",
    "weights": "Write its weights alone, which load anywhere, with",
    "in-place": "Change the file itself, for code that cannot be edited (remap --undo takes it back), with",
    "recover": "Fetch the file again, or save what is intact with",
}
"""What the line after it is for."""


def before(kind: RemedyKind, *, is_first: bool) -> str:
    """Return what stands before a line; all but the first are other ways to the same end."""
    words = BEFORE[kind]
    return f"{words}:" if is_first else f"Or {words[:1].lower()}{words[1:]}:"


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

"""Messages about devices that are not there, while `torch.load` restores storages.

The texts are those of `torch/serialization.py` from 1.0 to 2.13, of `torch/cuda/__init__.py`, and of
`c10::Device`'s parser; `target.restore` has the rules by which torch comes to them.
"""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, Tied, Told
from inspector.diagnose.errors.ties import devices_of, fix_for, paths_on
from inspector.diagnose.listing import listed, plain
from inspector.model.roles.devices import DEVICE_TYPES, is_accelerator
from inspector.units import format_count

findings_by_kind = {row.name: row.missing for row in DEVICE_TYPES.values()}
findings_index_by_kind = {row.name: row.out_of_range or row.missing for row in DEVICE_TYPES.values()}


_NOT_FROM_HERE = (
    "Look at the last lines of the traceback: which line asks for the device, and which file is loaded "
    "there? Take .cuda(), .to(...) or map_location out of that line, or open that file here. If the machine "
    "should have the device, checkpoint-inspector target explains why torch does not see it, and which "
    "build of torch to install."
)
_REASONS = (
    ("found no nvidia driver", "no NVIDIA driver is installed"),
    ("driver on your system is too old", "the NVIDIA driver is too old for this build of torch"),
    ("not compiled with cuda", "torch is a CPU-only build"),
    ("driver/library version mismatch", "the driver was updated and is not loaded yet: restart"),
    ("error 804", "the driver does not fit the CUDA libraries of the container"),
    ("cuda unknown error", "the driver does not answer, or CUDA_VISIBLE_DEVICES was set too late"),
    ("can't initialize nvml", "the NVIDIA driver does not answer"),
)


def why_unavailable(told: Told) -> dict[str, str]:
    """Find the reason for a missing device in the warnings above the error."""
    warned = " ".join(told.pasted.warnings).lower()
    reason = next((text for words, text in _REASONS if words in warned), "")
    return {"because": f" The warning above says why: {reason}." if reason else ""}


def tie_on_kind(context: Context) -> Tied:
    """Find the tensors that were saved on devices of the kind that the message names."""
    kind = context.groups["kind"].lower()
    devices = devices_of(context, kind)
    if not devices:
        return _none_on(context, kind)
    paths = paths_on(context, devices)
    here = f"{format_count(len(paths), 'tensor')} of this file were saved on {listed(devices)}."
    if context.target is not None and all(device.endswith("cpu") for device in context.target.devices):
        here += f" The target ({context.target.label}) has no such device."
    return Tied(fits="yes", here=here, paths=paths, fix=fix_for(context, devices))


def _none_on(context: Context, kind: str) -> Tied:
    """Acquit a file without such a device, unless something in it is not listed, or stays where it was."""
    hidden = next((context.findings[id_] for id_ in _UNLISTED if id_ in context.findings), None)
    if hidden is not None:
        here = f"No tensor that is listed is on a {plain(kind)} device. But: {hidden.title}."
        return Tied(fits="unknown", here=here)
    saved = sorted({tensor.device for tensor in context.checkpoint.tensors})
    where = f" (they are on {listed(saved)})" if saved else ""
    here = (
        f"No tensor of this file is on a {plain(kind)} device{where}: the error comes from another file, or "
        "from your own code, such as model.cuda() or map_location."
    )
    return Tied(fits="no", here=here, advice=_NOT_FROM_HERE)


_UNLISTED = ("hidden-device", "traced-device", "nested-pickle", "nested-checkpoint")


def tie_on_index(context: Context) -> Tied:
    """Find the tensors on the very device that the message counts."""
    kind, index = context.groups["kind"].lower(), context.groups["index"]
    device = f"{kind}:{index}"
    paths = paths_on(context, [device])
    others = [name for name in devices_of(context, kind) if name != device]
    if paths:
        here = f"{format_count(len(paths), 'tensor')} of this file were saved on {device}."
        if others:
            here += f" Others are on {listed(others)}: map all of them at once to avoid the next error."
        every = [device, *others]
        return Tied(fits="yes", here=here, paths=paths, fix=fix_for(context, sorted(every)))
    if others:
        here = (
            f"No tensor of this file is on {plain(device)}; they are on {listed(others)}. The error comes "
            "from another file, or map_location asked for that index."
        )
        return Tied(fits="no", here=here)
    return _none_on(context, kind)


_TOO_OLD = re.compile(
    r"driver on your system is too old(?: \(found version (?P<found>\d{4,6})\))?|CUDA driver version is "
    r"insufficient|cuda runtime error \(35\)",
    re.IGNORECASE,
)


def driver_age(told: Told) -> dict[str, str]:
    """Read how old a driver is that is too old."""
    old = _TOO_OLD.search(told.text)
    number = int(old["found"] or 0) if old is not None else 0
    knows = f" It supports CUDA {number // 1000}.{number % 1000 // 10} at most." if number else _MAYBE_NONE
    return {"old": "" if old is None else "yes", "knows": knows}


_MAYBE_NONE = " (With no driver loaded at all CUDA says the same: see what nvidia-smi shows.)"


def tie_without(context: Context) -> Tied:
    """Find the tensors on the device that this torch was built without."""
    kind = (context.groups["kind"] or "cuda").lower()
    return _asked_again(context, devices_of(context, kind), kind)


def _asked_again(context: Context, devices: list[str], kind: str) -> Tied:
    if not devices:
        return _none_on(context, kind)
    paths = paths_on(context, devices)
    here = f"This file was saved on {listed(devices)}, which torch.load asks for again."
    return Tied(fits="yes", here=here, paths=paths, fix=fix_for(context, devices))


def tie_with_tag(context: Context) -> Tied:
    """Find the tensors with the tag that torch does not know."""
    tag = context.groups["tag"].strip()
    if not tag:
        return tie_any_accelerator(context)
    paths = paths_on(context, [tag])
    if paths:
        return Tied(
            fits="yes",
            here=f"{format_count(len(paths), 'tensor')} of this file carry the tag {plain(tag)}.",
            paths=paths,
            fix=fix_for(context, [tag]),
        )
    here = f"No tensor of this file carries the tag {plain(tag)}: it was the argument map_location, or the"
    return Tied(fits="no", here=f"{here} error comes from another file.")


def tie_any_accelerator(context: Context) -> Tied:
    """Find all that is not on the CPU."""
    devices = sorted({row.device for row in context.checkpoint.storages if is_accelerator(row.device)})
    return _asked_again(context, devices, "cuda")

"""The rule about devices that no `map_location` reaches: what fails there on the target, and what to set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inspector.diagnose.case import Case
from inspector.diagnose.listing import plain
from inspector.model.checkpoint import HiddenDevice, HiddenPlace
from inspector.model.findings import Finding, finding
from inspector.model.roles.devices import is_accelerator, split_device
from inspector.model.roles.hidden import CHANGED_IN, DEVICE_NAMES, MOVABLE, devices_outside
from inspector.target.profile import Profile
from inspector.target.restore import generator_failure, restore_failure, send_failure

_MOST_NAMED = 8
_SET = "Set it after loading, such as {example}."
_HELPS: Mapping[str, str] = {
    HiddenPlace.DEVICE: _SET,
    HiddenPlace.KEY: "Build that dictionary anew with the devices of that machine.",
    HiddenPlace.NESTED: "Give the torch.load that opens it a map_location.",
    HiddenPlace.TEXT: _SET,
    HiddenPlace.TENSOR_TYPE: "Set it after loading, such as torch.FloatTensor.",
    HiddenPlace.GENERATOR: "Make a new generator on a device of that machine.",
    HiddenPlace.MESH: "Make a new mesh with init_device_mesh.",
    HiddenPlace.DATA_PARALLEL: "Take the model out of its wrapper: model = model.module.",
}
_SENT_TO = frozenset({HiddenPlace.DEVICE, HiddenPlace.TEXT, HiddenPlace.DATA_PARALLEL})


def find_hidden(case: Case) -> Iterator[Finding]:
    """Find devices that no map_location reaches, and what becomes of code that uses them on the target."""
    yield from _find_traced(case)
    hidden = [
        one
        for one in devices_outside(case.checkpoint)
        if is_accelerator(one.device) and one.what is not HiddenPlace.CODE
    ]
    if not hidden:
        return
    target = case.target
    missing = [] if target is None else [one for one in hidden if not _is_there(one, target)]
    named = ", ".join(sorted({f"{one.what} {plain(one.device)}" for one in missing or hidden})[:_MOST_NAMED])
    said = f"The file holds {named} outside of its tensors. torch.load returns that as it was saved"
    if target is None or not missing:
        detail = f"{said}; code that uses it will expect that device."
    else:
        detail = f"{said}. {_failing(missing[0], target)} {_helping(missing[0], target)}"
    if case.checkpoint.format in CHANGED_IN and any(one.what in MOVABLE for one in missing or hidden):
        detail += " In a copy, remap --hidden-devices changes it."
    yield finding(
        "hidden-device",
        "warning" if any(_is_used(one) for one in missing) else "note",
        "A device that map_location does not change",
        detail,
        [one.path for one in missing or hidden],
    )


def _find_traced(case: Case) -> Iterator[Finding]:
    """Find devices in the code of a program: what `map_location` moves meets what the code makes there."""
    traced = [one for one in case.checkpoint.hidden_devices if one.what is HiddenPlace.CODE]
    if not traced:
        return
    named = ", ".join(sorted({plain(one.device) for one in traced})[:_MOST_NAMED])
    target = case.target
    missing = target is not None and any(not _is_there(one, target) for one in traced)
    fails = "; on the target, which has no such device, it stops there" if missing else ""
    yield finding(
        "traced-device",
        "warning" if missing or any(is_accelerator(one.device) for one in traced) else "note",
        "A device is fixed in the code of the model",
        f"The code makes tensors on {named} when it runs, whatever map_location, .to() or a remapped copy "
        f"say{fails}. On another device than the weights' it ends with 'Expected all tensors to be on the "
        "same device'. Script or trace the model again on the device where it is to run, or have forward() "
        "take the device from its input, as in torch.zeros(2, device=x.device), and script it.",
        [one.path for one in traced],
    )


def _is_used(one: HiddenDevice) -> bool:
    """Return whether an object keeps it for its own use; a value in a dictionary may be a mere record."""
    return one.what == HiddenPlace.DATA_PARALLEL or one.path.rpartition("/")[2] in DEVICE_NAMES


def _is_there(one: HiddenDevice, target: Profile) -> bool:
    parts = split_device(one.device)
    return parts is not None and target.offers(*parts)


def _failing(one: HiddenDevice, target: Profile) -> str:
    """Return what torch says there where it is used; its words to a missing GPU vary by build."""
    if one.what == HiddenPlace.DATA_PARALLEL and not target.count("cuda"):
        return (
            "On the target, calling the model ends with: RuntimeError: module must have its parameters and "
            f"buffers on device {plain(one.device)} (device_ids[0])."
        )
    if one.what == HiddenPlace.KEY:
        return "On the target, code that looks its own device up there ends with a KeyError."
    is_made = one.what is HiddenPlace.GENERATOR  # while the file is loaded
    if is_made:
        failure = generator_failure(one.device, target)
    else:
        failure = send_failure(one.device, target) if one.what in _SENT_TO else None
        if one.what == HiddenPlace.NESTED:
            failure = restore_failure(one.device, target)
    said = "" if failure is None else f" with an error such as: {failure[1].removesuffix('.')}"
    what = "torch.load" if is_made and failure is not None else "code that uses it"
    return f"On the target, {what} ends{said or ' with an error'}."


def _helping(one: HiddenDevice, target: Profile) -> str:
    device = target.destination
    value = f'torch.device("{device}")' if one.what == HiddenPlace.DEVICE else f'"{device}"'
    at_root = one.path.startswith(".") and "/" not in one.path
    return _HELPS[one.what].format(example=f"model{one.path} = {value}" if at_root else value)

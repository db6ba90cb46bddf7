"""The rule about devices that no `map_location` reaches: what fails there on the target, and what to set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from inspector.diagnose.case import Case
from inspector.diagnose.listing import plain
from inspector.model.checkpoint import Checkpoint, HiddenPlace, ValueRow
from inspector.model.findings import Finding, finding
from inspector.model.roles.devices import is_accelerator, split_device
from inspector.target.machine.profile import Profile
from inspector.target.restore import generator_failure, send_failure

_MOST_NAMED = 8
_ATTRIBUTES = frozenset({".device", "._device"})
_TEXT = "the text"
_SET = "Set it after loading, such as {example}."
_HELPS: Mapping[str, str] = {
    HiddenPlace.DEVICE: _SET,
    _TEXT: _SET,
    HiddenPlace.GENERATOR: "Make a new generator on a device of that machine.",
    HiddenPlace.MESH: "Make a new mesh with init_device_mesh.",
    HiddenPlace.DATA_PARALLEL: "Take the model out of its wrapper: model = model.module.",
}


class _Hidden(NamedTuple):
    """One device: where it stands, its text, and the kind of place."""

    path: str
    device: str
    what: str


def find_hidden(case: Case) -> Iterator[Finding]:
    """Find devices that no map_location reaches, and what becomes of code that uses them on the target."""
    hidden = list(_hidden(case.checkpoint))
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
    yield finding(
        "hidden-device",
        "warning" if any(_is_used(one) for one in missing) else "note",
        "A device that map_location does not change",
        detail,
        [one.path for one in missing or hidden],
    )


def _hidden(checkpoint: Checkpoint) -> Iterator[_Hidden]:
    for item in checkpoint.hidden_devices:
        if is_accelerator(item.device):
            yield _Hidden(item.path, item.device, item.what)
    for value in checkpoint.values:
        if _is_device_text(value):
            yield _Hidden(value.path, value.text, _TEXT)


def _is_device_text(value: ValueRow) -> bool:
    """Return whether a module keeps a device as a text under the name that everybody gives it."""
    if value.type != "str" or not value.keys or value.keys[-1] not in _ATTRIBUTES:
        return False
    return split_device(value.text) is not None and is_accelerator(value.text)


def _is_used(one: _Hidden) -> bool:
    """Return whether an object keeps it for its own use; a value in a dictionary may be a mere record."""
    return one.what == HiddenPlace.DATA_PARALLEL or one.path.rpartition("/")[2] in _ATTRIBUTES


def _is_there(one: _Hidden, target: Profile) -> bool:
    parts = split_device(one.device)
    return parts is not None and target.offers(*parts)


def _failing(one: _Hidden, target: Profile) -> str:
    """Return what torch says there where it is used; its words to a missing GPU vary by build."""
    if one.what == HiddenPlace.DATA_PARALLEL and not target.count("cuda"):
        return (
            "On the target, calling the model ends with: RuntimeError: module must have its parameters and "
            f"buffers on device {plain(one.device)} (device_ids[0])."
        )
    if one.what == HiddenPlace.GENERATOR:
        failure = generator_failure(one.device, target)
    else:
        failure = None if one.what == HiddenPlace.MESH else send_failure(one.device, target)
    said = "" if failure is None else f" with an error such as: {failure[1].removesuffix('.')}"
    return f"On the target, code that uses it ends{said or ' with an error'}."


def _helping(one: _Hidden, target: Profile) -> str:
    device = target.destination
    value = f'torch.device("{device}")' if one.what == HiddenPlace.DEVICE else f'"{device}"'
    at_root = one.path.startswith(".") and "/" not in one.path
    return _HELPS[one.what].format(example=f"model{one.path} = {value}" if at_root else value)

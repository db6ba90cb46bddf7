"""The machines to load a file on, and what can be wanted of the chosen one."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from inspector.model.roles.devices import DEVICE_TYPES
from inspector.records import replace
from inspector.session.screen import Choice
from inspector.session.state import THIS, State
from inspector.target.profile import CPU_ONLY, ROCM, Profile, preset_of
from inspector.units import cut_text, escape_text

CUSTOM = "custom"
"""The choice that asks for a description of a machine."""
MOST_GPUS, MOST_GIGABYTES = 64, 4096
_MOST_DEVICES = 64
_MOST_NAME = 30


class Kind(NamedTuple):
    """What a machine computes on, as it is described by hand; `is_counted` where there may be several."""

    id: str
    label: str
    is_counted: bool


def kinds() -> tuple[Kind, ...]:
    """Return what a machine can be described as."""
    names = (*(row.name for row in DEVICE_TYPES.values() if row.presets), ROCM.id, CPU_ONLY.id)
    found = ((name, preset_of(name, 1)) for name in names)
    return tuple(
        Kind(name, machine.label.removeprefix("1 "), preset_of(name, 2) is not None)
        for name, machine in found
        if machine is not None
    )


def word_for(kind: str, count: int, gigabytes: int) -> str:
    """Return the word for a machine, as `--target` takes it; 0 for memory that is not known."""
    return f"{f'{count}x' if count > 1 else ''}{kind}{f'@{gigabytes}gb' if gigabytes else ''}"


def target_of(state: State) -> Profile:
    """Return the chosen machine, with the device that is wanted there if it has that."""
    used = next((profile for profile in state.machines if profile.id == state.target), None)
    machine = used or (None if state.target == THIS else _named(state.target)) or state.machine
    return replace(machine, wanted=state.wanted) if state.wanted in machine.devices else machine


def targets_of(state: State) -> tuple[Choice, ...]:
    """Return the machines to choose from: this one, those that were used before, and another one."""
    label = state.machine.label
    python = state.machine.python
    by = "" if python is None else f"As torch sees it in {escape_text(python.label)}"
    this = Choice(id=state.machine.id, label=label[:1].upper() + label[1:], tooltip=by)
    used = {profile.id: profile.label for profile in state.machines}
    used |= {text: _label(text) for text in state.profiles if text not in used}
    return (
        this,
        *(Choice(id=text, label=label) for text, label in used.items()),
        Choice(id=CUSTOM, label="Custom\u2026", tooltip="Describe another machine"),
    )


def _label(text: str) -> str:
    """Return what a machine of an earlier window is called, which a word or the file of a profile names."""
    machine = _named(text)
    return escape_text(cut_text(PurePath(text).stem, _MOST_NAME)) if machine is None else machine.label


def _named(text: str) -> Profile | None:
    from inspector.target.wish import named_machine  # noqa: PLC0415 - most windows stay on this machine

    return named_machine(text)


def devices_of(state: State) -> tuple[Choice, ...]:
    """Return what can be wanted of the chosen machine; nothing where it has no two devices of a kind."""
    machine = target_of(state)
    if all(count < 2 for _, count in machine.accelerators):
        return ()
    names = {gpu.device: gpu.name for gpu in machine.gpus}
    devices = (device for device in machine.devices[:_MOST_DEVICES] if device != "cpu")
    any_ = Choice(id="", label="any device")
    return (
        any_,
        *(Choice(id=device, label=_device_label(device, names.get(device, ""))) for device in devices),
    )


def _device_label(device: str, name: str) -> str:
    return f"{device} ({cut_text(name, _MOST_NAME)})" if name else device

"""The machines to load a file on, and what can be wanted of the chosen one."""

from __future__ import annotations

from inspector.records import replace
from inspector.session.screen import Choice
from inspector.session.state import State
from inspector.target.profile import Profile, offered, offered_machine
from inspector.units import cut_text, escape_text

_MOST_DEVICES = 64
_MOST_NAME = 30


def target_of(state: State) -> Profile:
    """Return the chosen machine, with the device that is wanted there if it has that."""
    probed = next((profile for profile in state.machines if profile.id == state.target), None)
    machine = probed or offered_machine(state.target) or state.machine
    return replace(machine, wanted=state.wanted) if state.wanted in machine.devices else machine


def targets_of(state: State) -> tuple[Choice, ...]:
    """Return the machines to choose from."""
    label = state.machine.label
    python = state.machine.python
    by = "" if python is None else f"As torch sees it in {escape_text(python.label)}"
    this = Choice(id=state.machine.id, label=label[:1].upper() + label[1:], tooltip=by)
    taken = {profile.id for profile in state.machines}
    probed = [Choice(id=profile.id, label=profile.label) for profile in state.machines]
    return (this, *probed, *(Choice(id=word, label=words) for word, words in offered() if word not in taken))


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

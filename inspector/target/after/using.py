"""What torch says when tensors are used that are not together: in a forward pass, a loss, a step.

Each function returns torch's complaint, or None where the use works. A model that is split on purpose, and
sends its activations from device to device in forward, is known to none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inspector.target.after.complaints import Complaint
from inspector.target.after.restoring import META, At

# _get_capturable_supported_devices and _get_foreach_kernels_supported_devices in torch/optim/optimizer.py and
# torch/utils/_foreach_utils.py
_CAPTURABLE = frozenset({"cuda", "xpu", "hpu", "privateuseone", "xla"})
_FOREACH = frozenset({"cuda", "xpu", "mtia", "privateuseone"})
_READ_AS_NUMBERS = frozenset({"step", "mu_product"})
_OF_COUNTERS = frozenset({"float32", "float64"})


def mixing_failure(places: Iterable[At]) -> Complaint | None:
    """Return what torch says when these tensors meet: in a layer, in a loss, in arithmetic.

    A tensor without dimensions on the CPU may meet those of any device, as a counter of `BatchNorm` does.
    """
    devices = {place.device for place in places if not (place.is_number and place.device == "cpu")}
    if len(devices) < 2:
        return None
    return Complaint.NOT_EXPECTED if META in devices else Complaint.SAME_DEVICE


def parallel_failure(places: Iterable[At], first: str) -> Complaint | None:
    """Return what `DataParallel.forward` says: every parameter and buffer must be on the first device."""
    return Complaint.FIRST_DEVICE if any(place.device != first for place in places) else None


def rng_failure(state: At) -> Complaint | None:
    """Return what `torch.set_rng_state` and its like say: they want bytes on the CPU, also for a GPU."""
    return None if state.device == "cpu" and state.dtype == "uint8" else Complaint.BYTE_TENSOR


def step_failure(
    parameter: At, slots: Mapping[str, At], *, capturable: bool = False, foreach: bool | None = None
) -> Complaint | None:
    """Return what `optimizer.step` says for one parameter and its slots.

    Args:
        parameter: Where the parameter is.
        slots: Where its slots are, by name.
        capturable: Whether its group is.
        foreach: The option of that name; None lets torch choose, which it does by the parameter's device.
    """
    kind = _kind(parameter.device)
    counter = slots.get("step")
    beside = counter is None or (takes_capturable(kind) and _kind(counter.device) == kind)
    if capturable and not beside:
        return Complaint.CAPTURABLE
    together = [place for name, place in slots.items() if name not in _READ_AS_NUMBERS]
    is_foreach = kind in _FOREACH if foreach is None else foreach
    if is_foreach and not all(_may_be_grouped(place, parameter) for place in slots.values()):
        return Complaint.FOREACH
    return mixing_failure([parameter, *together])


def _may_be_grouped(place: At, parameter: At) -> bool:
    """Return whether a slot passes when all tensors of an optimizer are sorted by device and dtype.

    `_group_tensors_by_first_tensors_device_and_dtype` in torch's `aten/src/ATen/native/ForeachUtils.h` lets
    pass whatever could be a counter by its dtype. Other slots on the CPU fail at the first operation.
    """
    return place.device == parameter.device or (place.device == "cpu" and place.dtype in _OF_COUNTERS)


def takes_capturable(device: str) -> bool:
    """Return whether an optimizer with `capturable=True` works on a device."""
    return _kind(device) in _CAPTURABLE


def _kind(device: str) -> str:
    return device.partition(":")[0]

"""What torch says when the parts of a checkpoint are used as `torch.load` returned them.

A state dict is copied to where the code's own tensors are, so that saved devices break nothing. Whole
modules, whole optimizers and loose tensors bring their devices along. The rules are those of torch 2.4 to
2.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from inspector.model.checkpoint import Checkpoint, HiddenPlace, Tensor
from inspector.model.optimizer.parameters import serves_all
from inspector.model.roles.roles import DICTIONARIES
from inspector.target.parts import Form, Part
from inspector.target.restore import landing_place

META = "meta"


class Complaint(StrEnum):
    """Part of an error of torch 2.13, as it stands there."""

    SAME_DEVICE = "Expected all tensors to be on the same device"
    """Tensors on different devices meet: in a layer, a loss, the step of an optimizer."""
    NOT_EXPECTED = "is not on the expected device"
    """The same, where one of them is on the meta device."""
    FOREACH = "Tensors of the same index must be on the same device"
    """An optimizer that updates all parameters at once finds one apart from its state."""
    CAPTURABLE = "If capturable=True, params"
    """An optimizer that is `capturable` finds its counters or parameters on the CPU."""
    FIRST_DEVICE = "must have its parameters and buffers on device"
    """`DataParallel.forward` finds a parameter or buffer that is not on its first device."""


class At(NamedTuple):
    """Where a tensor is.

    Attributes:
        is_number: Whether it has no dimensions: such a tensor on the CPU may meet those of any device.
    """

    device: str
    dtype: str = "float32"
    is_number: bool = False


def landed_places(checkpoint: Checkpoint, part: Part) -> tuple[At, ...]:
    """Return where `torch.load` puts the tensors of a part when nothing is mapped."""
    return tuple(
        At(landing_place(row.device, 0), row.dtype, not row.shape) for row in part.tensors(checkpoint)
    )


# ------------------------------------------------------------------------------------------------------------
# What torch says when tensors are used that are not together: in a forward pass, a loss, a step.
#
# Each function returns torch's complaint, or None where the use works. A model that is split on purpose, and
# sends its activations from device to device in forward, is known to none of them.

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


def _step_failure(
    parameter: At, slots: Mapping[str, At], *, capturable: bool, is_joint: bool
) -> Complaint | None:
    """Return what `optimizer.step` says for one parameter and its slots.

    Args:
        is_joint: Whether one state serves all parameters: LBFGS lays them end to end.
    """
    kind = _kind(parameter.device)
    counter = slots.get("step")
    beside = counter is None or (takes_capturable(kind) and _kind(counter.device) == kind)
    if capturable and not beside:
        return Complaint.CAPTURABLE
    together = [place for name, place in slots.items() if name not in _READ_AS_NUMBERS]
    if (
        kind in _FOREACH
        and not is_joint
        and not all(_may_be_grouped(place, parameter) for place in slots.values())
    ):
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


_COUNTERS = ("num_batches_tracked", "n_averaged")
_REGISTERED = DICTIONARIES - {"._modules"}


def meeting(checkpoint: Checkpoint, part: Part, places: Sequence[At]) -> Iterator[At]:
    """Yield the places of those tensors of a module that meet others: counters do not."""
    for row, place in zip(part.tensors(checkpoint), places, strict=True):
        if not str(row.keys[-1]).endswith(_COUNTERS):
            yield place


def is_registered(row: Tensor) -> bool:
    """Return whether `module.to(device)` moves a tensor: a parameter or buffer, not a plain attribute."""
    above = row.keys[-2] if len(row.keys) > 1 else ""
    is_inside = any(isinstance(key, str) and key.startswith(".") for key in row.keys)
    return not is_inside or above in _REGISTERED


def first_of_parallel(checkpoint: Checkpoint, part: Part) -> str:
    """Return the device on which a pickled `DataParallel` wants its whole model; empty if it is none."""
    found = (
        hidden.device
        for hidden in checkpoint.hidden_devices
        if hidden.what is HiddenPlace.DATA_PARALLEL and hidden.path == part.path
    )
    return next(found, "") if part.form is Form.OBJECT else ""


def whole_optimizer_failure(checkpoint: Checkpoint, part: Part) -> Complaint | None:
    """Return what `step` says of an optimizer that is used as it comes: it holds its parameters.

    Which state is whose is told by its shape alone. What is apart from all parameters that it could belong
    to is apart from its own.
    """
    rows = list(zip(part.tensors(checkpoint), landed_places(checkpoint, part), strict=True))
    capturable = _is_capturable(checkpoint, part)
    homes: dict[str, list[At]] = {}
    for row, place in rows:
        if is_own_parameter(row):
            homes.setdefault(_sizes(row), []).append(place)
    every = [place for own in homes.values() for place in own]
    owned: dict[str, list[tuple[Tensor, At]]] = {}
    for row, place in rows:
        if ".state" in row.keys:
            owner = "/".join(row.path.split("/", len(part.keys) + 2)[:-1])
            owned.setdefault(owner, []).append((row, place))
    for slots in owned.values():
        known = (homes[_sizes(row)] for row, _ in slots if _sizes(row) in homes)
        said = _step(next(known, every) or [At("cpu")], slots, capturable=capturable)
        if said is not None:
            return said
    return None


def _step(homes: Sequence[At], slots: Sequence[tuple[Tensor, At]], *, capturable: bool) -> Complaint | None:
    """Return what `step` says to slots that fit none of these places of their parameter."""
    named = {row.path.rpartition("/")[2]: place for row, place in slots}
    is_joint = serves_all(row.slot for row, _ in slots)
    said = [
        _step_failure(home, named, capturable=capturable, is_joint=is_joint) for home in dict.fromkeys(homes)
    ]
    return said[0] if all(said) else None


def is_own_parameter(row: Tensor) -> bool:
    """Return whether a tensor of a pickled optimizer is one of the parameters that it holds."""
    return ".param_groups" in row.keys and row.keys[-2] == "params"


def _sizes(row: Tensor) -> str:
    """Return a shape as a text: the hash of numbers could be foreseen by who made the file."""
    return str(row.shape)


def _is_capturable(checkpoint: Checkpoint, part: Part) -> bool:
    """Return whether a group of an optimizer is `capturable`: made for CUDA graphs, refused on the CPU."""
    start = f"{part.path}/" if part.path else ""
    starts = (f"{start}param_groups/", f"{start}.param_groups/")
    return any(path.startswith(starts) for path in groups_with(checkpoint, "capturable"))


def groups_with(checkpoint: Checkpoint, option: str) -> list[str]:
    """Return the paths of parameter groups of optimizers that have an option such as `capturable` set."""
    return [
        value.path.rpartition("/")[0]
        for value in checkpoint.values
        if value.text == "True" and value.path.endswith(f"/{option}") and "param_groups/" in value.path
    ]

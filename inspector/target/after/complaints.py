"""What torch says after `torch.load`, as far as it does not depend on operations, names and shapes."""

from __future__ import annotations

from enum import StrEnum


class Complaint(StrEnum):
    """Part of an error or a warning of torch 2.13, as it stands there."""

    SAME_DEVICE = "Expected all tensors to be on the same device"
    """Tensors on different devices meet: in a layer, a loss, the step of an optimizer."""
    NOT_EXPECTED = "is not on the expected device"
    """The same, where one of them is on the meta device."""
    FOREACH = "Tensors of the same index must be on the same device"
    """An optimizer that updates all parameters at once finds one apart from its state."""
    CAPTURABLE = "If capturable=True, params"
    """An optimizer that is `capturable` finds its counters or parameters on the CPU."""
    BYTE_TENSOR = "RNG state must be a torch.ByteTensor"
    """`torch.set_rng_state` and its like want bytes on the CPU."""
    FIRST_DEVICE = "must have its parameters and buffers on device"
    """`DataParallel.forward` finds a parameter or buffer that is not on its first device."""
    NO_DATA = "Cannot copy out of meta tensor; no data!"
    """A tensor without data is copied, or moved to a device that holds data."""
    NO_OP = "copying from a non-meta parameter in the checkpoint to a meta parameter"
    """A warning: `load_state_dict` changed nothing, since the model is on the meta device."""

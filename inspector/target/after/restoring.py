"""How code restores what `torch.load` returned, step by step: where each tensor is afterwards, and the error.

The rules are those of torch 2.4 to 2.13, read from `Module._load_from_state_dict` and `Module._apply` in
`torch/nn/modules/module.py` and from `_process_value_according_to_param_policy` in
`torch/optim/optimizer.py`. Places are devices and dtypes, nothing else: shapes and names are taken to match.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from inspector.target.after.complaints import Complaint

META = "meta"


class At(NamedTuple):
    """Where a tensor is.

    Attributes:
        device: Its device.
        dtype: Its dtype, torch's name without `torch.`.
        is_number: Whether it has no dimensions: such a tensor on the CPU may meet those of any device.
    """

    device: str
    dtype: str = "float32"
    is_number: bool = False


class Way(StrEnum):
    """How code restores a part."""

    COPY = "load_state_dict"
    """`load_state_dict` into what the code has made."""
    ASSIGN = "assign"
    """`load_state_dict(assign=True)`: the module takes the tensors of the file in the place of its own."""
    USE = "use"
    """What `torch.load` returned is used itself: a whole object, or tensors."""


class Restored(NamedTuple):
    """What a step comes to.

    Attributes:
        places: Where the tensors are then, in the order given.
        error: What torch says where the step fails, or None.
        warning: What it warns of: the step did nothing; or None.
    """

    places: tuple[At, ...]
    error: Complaint | None = None
    warning: Complaint | None = None


def load_module(own: Sequence[At], saved: Sequence[At], way: Way = Way.COPY) -> Restored:
    """Return where the parameters and buffers of a module are after `load_state_dict`.

    Copied values take the device and dtype of the module's own tensors, whatever those of the file are.
    With `assign=True` the module has the file's tensors; only `requires_grad` stays the module's.

    Args:
        own: Where the module's tensors are.
        saved: Where those of the state dict are, as `torch.load` returned them.
        way: `COPY` or `ASSIGN`.
    """
    if way is not Way.COPY:
        return Restored(tuple(saved))
    pairs = list(zip(own, saved, strict=True))
    if any(one.device != META and other.device == META for one, other in pairs):
        return Restored(tuple(own), error=Complaint.NO_DATA)
    is_lost = any(one.device == META and other.device != META for one, other in pairs)
    return Restored(tuple(own), warning=Complaint.NO_OP if is_lost else None)


def move_module(places: Sequence[At], device: str) -> Restored:
    """Return where the parameters and buffers of a module are after `module.to(device)`.

    What is a plain attribute of a module stays where it is, and so does the state of an optimizer.
    """
    if device != META and any(place.device == META for place in places):
        return Restored(tuple(places), error=Complaint.NO_DATA)
    return Restored(tuple(place._replace(device=device) for place in places))


def load_slot(name: str, saved: At, parameter: At, *, on_device: bool) -> At:
    """Return where an optimizer slot is after `optimizer.load_state_dict`.

    It goes to the device of its parameter and takes the dtype of one with floating-point numbers, whatever
    its own is. Only `step` is left where it is, with its dtype, unless the counters belong on the device.

    Args:
        name: The slot's name, such as `exp_avg`; of nested slots `state/exp_avg`.
        saved: Where `torch.load` put it.
        parameter: Where the parameter of the code's optimizer is while the state is loaded.
        on_device: Whether the parameter's group in the file is `capturable` or `fused`.
    """
    if name.rpartition("/")[2] == "step":
        return saved._replace(device=parameter.device, dtype="float32") if on_device else saved
    dtype = parameter.dtype if "float" in parameter.dtype else saved.dtype
    return saved._replace(device=parameter.device, dtype=dtype)

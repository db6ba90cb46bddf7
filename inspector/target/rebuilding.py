"""What torch cannot make on a device though its storage got there: the error comes from the rebuild function.

Found by loading such tensors with torch 2.13; the texts go on with what the build has registered.
"""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, HiddenPlace, Tensor
from inspector.target.landing import Landing
from inspector.target.map_location import BAD_MAP
from inspector.target.restore import Failure

_QUANTIZED = ("qint", "quint")


def rebuild_failure(checkpoint: Checkpoint, landing: Landing) -> tuple[Tensor, Failure] | None:
    """Return the first tensor that cannot be made where its data land, with (finding, message)."""
    states = {
        f"{hidden.path}/.state/2"
        for hidden in checkpoint.hidden_devices
        if hidden.what is HiddenPlace.GENERATOR
    }
    tags = {row.device for row in checkpoint.tensors}
    if not states and all(landing.of_tag(tag)[0] != "meta" for tag in tags):
        return None
    rows = checkpoint.tensors
    for index, row in enumerate(rows):
        landed = landing.of_tag(row.device)[0]
        if landed not in {"", "cpu"} and row.path in states:
            # `check_rng_state` of ATen wants bytes on the CPU, whatever device the generator is of.
            return row, (
                "rng-off-cpu",
                "SystemError: <built-in method __setstate__ of torch._C.Generator object",
            )
        if landed == "meta":
            message = _not_on_meta(row, rows[index + 1 : index + 2])
            if message is not None:
                return row, (BAD_MAP, message)
    return None


def _not_on_meta(row: Tensor, following: tuple[Tensor, ...]) -> str | None:
    """Return what torch says to a tensor on the meta device, or None if there can be one."""
    if row.layout == "nested":
        return (
            "NotImplementedError: aten::_nested_view_from_buffer: attempted to run this operator with Meta "
            "tensors, but there was no fake impl or Meta kernel registered."
        )
    if not row.dtype.startswith(_QUANTIZED) or row.stride is None:
        return None
    by_channel = any(part.keys[-1:] == ("scales",) for part in following)
    function = "_empty_per_channel_affine_quantized" if by_channel else "_empty_affine_quantized"
    return (
        f"NotImplementedError: Could not run 'aten::{function}' with arguments from the 'QuantizedMeta' "
        "backend."
    )

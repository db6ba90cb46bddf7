"""A call of `torch.load` together with what the restricted unpickler would say: the two are judged apart."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.pickles.instructions import CODES
from inspector.pickles.python2 import present_name
from inspector.safety.verdict import SafetyVerdict
from inspector.target.landing import is_sent
from inspector.target.load_call import LoadCall
from inspector.target.map_location import MapLocation
from inspector.target.refusal import Refusal

_UNNAMED = "numpy.dtypes."
_FINDINGS = {"needs-allow-list": "needs-allow-list", "dangerous": "dangerous-global"}


def load_call(
    checkpoint: Checkpoint,
    safety: SafetyVerdict,
    map_location: MapLocation = None,
    *,
    weights_only: bool | None = None,
    mmap: bool = False,
) -> LoadCall:
    """Make a call of `torch.load` for a file, ready to be simulated."""
    return LoadCall(
        map_location=map_location,
        weights_only=weights_only,
        mmap=mmap,
        refusal=refusal_of(checkpoint, safety),
    )


def refusal_of(checkpoint: Checkpoint, safety: SafetyVerdict) -> Refusal | None:
    """Return why and where `weights_only=True` stops, or None if it does not.

    Where in the file a name is asked for is not known, but of a value of that class it is: the name stands
    shortly before it, at the same number of tensors. Without such a value the name is taken for the first.
    """
    if safety.weights_only or safety.is_unsure:
        return None
    finding = _FINDINGS.get(safety.verdict, "runs-code")
    opcode = safety.answer.opcode
    if opcode:
        before = int(opcode == "INT" and not _begins_with_truth(checkpoint))
        return Refusal(finding=finding, opcode=CODES[opcode], tensors_before=before)
    # The types of NumPy's elements are asked for without being named: what is named comes before them.
    places = {name: len(checkpoint.tensors) for name in safety.answer.names if name.startswith(_UNNAMED)}
    places |= _places(checkpoint)
    first = min(safety.answer.names, key=lambda name: places.get(name, 0), default="")
    return Refusal(finding=finding, name=first, tensors_before=places.get(first, 0))


def _begins_with_truth(checkpoint: Checkpoint) -> bool:
    """Return whether True or False stands before the first tensor.

    Old protocols spell them with INT, which the restricted unpickler does not know; and every tensor ends
    with one, whether it requires a gradient, when its storage is there already.
    """
    return any(value.type == "bool" and not value.after for value in checkpoint.values)


def _places(checkpoint: Checkpoint) -> dict[str, int]:
    """Give, by name, how many tensors stand before the first value that is known to ask for it."""
    places = {value.type: value.after for value in reversed(checkpoint.values)}
    arrays = (index for index, row in enumerate(checkpoint.tensors) if is_sent(row) and row.storage is None)
    first = next(arrays, None)
    if first is not None:  # such a tensor is made of a NumPy array
        for use in checkpoint.globals:
            if use.name.startswith("numpy."):
                places.setdefault(present_name(use.name), first)
    return places

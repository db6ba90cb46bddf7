"""A call of `torch.load` together with what the restricted unpickler would say: the two are judged apart."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import pickle_obstacle
from inspector.pickles.instructions import CODES
from inspector.pickles.python2 import present_name
from inspector.safety.verdict import SafetyVerdict
from inspector.target.load_call import LoadCall
from inspector.target.map_location import MapLocation
from inspector.target.refusal import Refusal

_BYTES = frozenset({"BINBYTES", "SHORT_BINBYTES", "BINBYTES8"})
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

    A name stops it where the file asks for it first.
    """
    if safety.weights_only or safety.is_unsure or safety.archive is not None:
        return None
    finding = _FINDINGS.get(safety.verdict, "runs-code")
    opcode = safety.answer.opcode
    # The bytes of tensors and arrays in a plain pickle are handed to a name, which stands before them.
    is_after_name = bool(safety.loader and safety.answer.names) and opcode in _BYTES
    if opcode and not is_after_name:
        before = int(opcode == "INT" and not _begins_with_truth(checkpoint))
        return Refusal(finding=finding, opcode=CODES[opcode], storages_before=before)
    # Where a name is asked for that the file does not hold is not known: the type of a NumPy element.
    places = {present_name(use.name): use.storages_before for use in reversed(checkpoint.globals)}
    first = next(iter(safety.answer.names), "")
    before = places.get(first, len(checkpoint.storages))
    is_read = format_of(checkpoint.format).loads_restricted  # else that is said before any instruction
    raised = None if first or not is_read else pickle_obstacle(checkpoint, restricted=True)
    error = "" if raised is None else raised.message
    return Refusal(finding=finding, name=first, error=error, storages_before=before)


def _begins_with_truth(checkpoint: Checkpoint) -> bool:
    """Return whether True or False stands before the first tensor.

    Old protocols spell them with INT, which the restricted unpickler does not know; and every tensor ends
    with one, whether it requires a gradient, when its storage is there already.
    """
    return any(value.type == "bool" and not value.after for value in checkpoint.values)

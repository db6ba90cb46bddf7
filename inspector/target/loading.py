"""A call of `torch.load` together with what the restricted unpickler would say: the two are judged apart."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint, UnusualOpcode
from inspector.model.obstacles import pickle_obstacle
from inspector.pickles.instructions import CODES
from inspector.pickles.values import present_name
from inspector.safety.verdict import SafetyVerdict
from inspector.target.load_call import LoadCall
from inspector.target.map_location import MapLocation
from inspector.target.refusal import Refusal

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
    if checkpoint.needs.rivals and safety.answer.kind == "accepts":
        return None  # what others would run is not what torch runs
    finding = _FINDINGS.get(safety.verdict, "runs-code")
    opcode = safety.answer.opcode
    first = next(iter(safety.answer.names), "")
    names = [present_name(use.name) for use in checkpoint.globals]
    place = next((one for one in checkpoint.needs.unusual if one.name == opcode), UnusualOpcode(opcode, 0, 0))
    if opcode and first not in names[: place.names_before]:
        return Refusal(finding=finding, opcode=CODES[opcode], storages_before=place.storages_before)
    # Where a name is asked for that the file does not hold is not known: the type of a NumPy element.
    places = {present_name(use.name): use.storages_before for use in reversed(checkpoint.globals)}
    before = places.get(first, len(checkpoint.storages))
    is_read = format_of(checkpoint.format).loads_restricted  # else that is said before any instruction
    raised = None if first or not is_read else pickle_obstacle(checkpoint, restricted=True)
    error = "" if raised is None else raised.message
    return Refusal(finding=finding, name=first, error=error, storages_before=before)

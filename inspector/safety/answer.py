"""What `torch.load(weights_only=True)` will do with a file, in one of seven answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import ObstacleKind, find_obstacle, is_ambiguous
from inspector.records import dataclass
from inspector.safety.allowlist import AllowList
from inspector.safety.names import judge_global, listed
from inspector.safety.offers import offers_for, withheld_reason
from inspector.safety.weights_only import names_to_allow, refusals, unknown_opcode

AnswerKind = Literal["accepts", "allow", "code", "opcode", "errors", "never", "ambiguous"]
"""`accepts`: it loads. `allow`: it refuses until just these names are on its list. `code`: the same, but
among them are functions, or what may be one: nobody should put those on a list. `opcode`: it refuses an
instruction, and the file must be saved again. `errors`: it stops for a reason that no list mends. `never`: it
refuses names that nobody should put on a list. `ambiguous`: programs read different things from the file."""

AMBIGUOUS = "Programs read different things from this file, and torch may read a different pickle."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer, and what it rests on.

    Attributes:
        names: The names that are missing from torch's list, whatever else there is.
        opcode: The first instruction that it does not know, by pickletools' name; empty where it knows all.
        reason: Why, in one sentence; empty where the names or the opcode say it all.
        can_allow: Whether that torch has a list that names can be put on.
    """

    kind: AnswerKind
    names: tuple[str, ...] = ()
    opcode: str = ""
    reason: str = ""
    torch_version: str = ""
    can_allow: bool = True

    @property
    def sentence(self) -> str:
        """The answer in plain words."""
        how = "with weights_only=True"
        return {
            "accepts": f"torch {self.torch_version} loads it {how}.",
            "allow": f"torch {self.torch_version} refuses it {how}{self._until}",
            "code": f"torch {self.torch_version} refuses it {how}. {self.reason}",
            "opcode": (
                f"torch {self.torch_version} refuses it {how}: it does not know the opcode {self.opcode}. "
                "Allowing names does not help: save the file again with pickle protocol 2."
            ),
            "errors": f"torch {self.torch_version} does not load it {how}. {self.reason}",
            "never": f"torch {self.torch_version} refuses it {how}, for good reason. {self.reason}",
            "ambiguous": f"What torch {self.torch_version} does {how} cannot be predicted. {self.reason}",
        }[self.kind]

    @property
    def _until(self) -> str:
        names = listed(self.names)
        if self.can_allow:
            return f" until exactly these names are allowed: {names}."
        return f": it imports {names}. Names can be allowed only since torch 2.4."


def answer_for(checkpoint: Checkpoint, allowed: AllowList) -> Answer:
    """Return what `weights_only=True` of one torch does, on a machine with all devices of the file."""
    names = names_to_allow(checkpoint, allowed)
    opcode = unknown_opcode(checkpoint, allowed)
    kind, reason = _kind(checkpoint, allowed, names, opcode)
    return Answer(
        kind=kind,
        names=names,
        opcode=opcode,
        reason=reason,
        torch_version=allowed.torch_version,
        can_allow=allowed.takes_names,
    )


def _kind(
    checkpoint: Checkpoint, allowed: AllowList, names: Sequence[str], opcode: str
) -> tuple[AnswerKind, str]:
    if is_ambiguous(checkpoint):
        return "ambiguous", AMBIGUOUS
    dangerous = [name for name in names if judge_global(name) == "dangerous"]
    if dangerous:
        return "never", f"It imports {listed(dangerous)}: allowing that would allow anything."
    if opcode:
        return "opcode", ""
    reasons = list(refusals(checkpoint, allowed)) or _obstacles(checkpoint)
    if reasons:
        return "errors", reasons[0]
    withheld = offers_for(checkpoint, names).withheld
    if withheld:
        return "code", withheld_reason(checkpoint, withheld)
    return ("allow", "") if names else ("accepts", "")


def _obstacles(checkpoint: Checkpoint) -> list[str]:
    """Return what stops torch outside of the pickle, and tensors that cannot be."""
    obstacle = find_obstacle(checkpoint)
    if obstacle is None:
        return []
    row = next((row for row in checkpoint.tensors if row.problem is not None), None)
    if obstacle.kind is ObstacleKind.TENSOR and row is not None:
        return [f"{row.path or 'The tensor'} cannot be built: {row.problem}."]
    return [f"It says: {obstacle.message}"]

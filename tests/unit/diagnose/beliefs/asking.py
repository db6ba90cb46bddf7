"""Beliefs asked of checkpoints made of rows."""

from __future__ import annotations

from inspector.diagnose.beliefs.belief import Belief
from inspector.diagnose.beliefs.table import answer_beliefs
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.target.default_load import judge_load
from inspector.target.machine.profile import Profile
from inspector.target.machine.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor

CPU = parse_target("cpu")


def ask(made: Checkpoint, target: Profile = CPU) -> dict[str, Belief]:
    """Return all answers by id."""
    return {belief.id: belief for belief in answer_beliefs(made, judge_load(made, target), target)}


def weights(*names: str, device: str = "cpu", **fields: object) -> Checkpoint:
    """Return a state dict of 16 bytes each."""
    rows = [tensor(name, device=device, storage=name) for name in names]
    return checkpoint(*rows, *(storage(name, device) for name in names), **fields)


def module(**fields: object) -> Checkpoint:
    """Return a whole module of one parameter."""
    keys = ("._modules", "l", "._parameters", "weight")
    return checkpoint(
        tensor(*keys, storage="0", requires_grad=True),
        storage("0"),
        **{
            "root": "module",
            "module_class": "nets.Net",
            "globals": (GlobalUse(name="nets.Net", count=1),),
            **fields,
        },
    )


def wrong(rows: list[tuple[str, Belief, str, str, str]]) -> list[str]:
    """Return which answers are not as they should be: (name, answer, truth, part of it, part of its code)."""
    return [
        f"{name}: {belief.truth}: {belief.here} => {belief.code}"
        for name, belief, truth, here, code in rows
        if belief.truth != truth or here not in belief.here or code not in belief.code
    ]

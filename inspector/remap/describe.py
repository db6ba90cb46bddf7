"""A plan in plain words before anything is written: what changes, what stays where it is, and why."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

from inspector.model.checkpoint import Checkpoint, Role, Tensor
from inspector.records import dataclass
from inspector.remap.forms import KEPT
from inspector.remap.plan import Plan, could_move, hidden_stay
from inspector.remap.rules import format_rule
from inspector.units import escape_text, format_count, format_nbytes

What = Literal["moves", "kept", "stays"]
"""`moves`: gets another device. `kept`: stays though a rule names it. `stays`: no rule sends it elsewhere."""

_MOST_EXAMPLES, _MOST_HIDDEN = 3, 64
_FITS = " The state of a generator fits no other type of device."
_ASKED = " It changes only with --hidden-devices."
_ORDER: dict[What, int] = {"moves": 0, "kept": 1, "stays": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """Tensors of one role that share their way."""

    what: What
    device: str
    to: str
    role: Role
    tensors: int
    nbytes: int
    why: str
    examples: tuple[str, ...]


class _Group(NamedTuple):
    what: What
    device: str
    to: str
    role: Role


def describe_plan(checkpoint: Checkpoint, plan: Plan, fates: bytes = b"") -> tuple[PlanRow, ...]:
    """Return what a plan does to every tensor, in groups: those that move first, then those that stay.

    Args:
        fates: What becomes of each tensor in another form, see `FormPreview`: the others are left out.
    """
    kept = frozenset(plan.kept)
    groups: dict[_Group, list[Tensor]] = {}
    for index, row in enumerate(checkpoint.tensors):
        if fates and fates[index] != KEPT:
            continue
        to = plan.tensors.get(index)
        what: What = "moves" if to is not None else "kept" if index in kept else "stays"
        groups.setdefault(_Group(what, row.device, to or row.device, row.role), []).append(row)
    rows = (_row(group, tensors, plan) for group, tensors in groups.items())
    return tuple(sorted(rows, key=lambda row: (_ORDER[row.what], row.device, row.to)))


def format_plan(rows: tuple[PlanRow, ...]) -> str:
    """Return the rows of a plan as text, a line each."""
    return "".join(f"{_line(row)}\n" for row in rows)


def format_hidden(checkpoint: Checkpoint, plan: Plan) -> str:
    """Return what a plan makes of the devices outside of tensors as text, a line for each kind of change."""
    rows = checkpoint.hidden_devices
    found: Counter[tuple[str, str]] = Counter(
        (f"{rows[index].what} {escape_text(rows[index].device)} -> {escape_text(to)}", "")
        for index, to in plan.hidden.items()
    )
    found.update(
        (f"{row.what} {escape_text(row.device)} stays", _FITS) for row in hidden_stay(checkpoint, plan)
    )
    found.update(
        (f"{row.what} {escape_text(row.device)} stays", _ASKED) for row in could_move(checkpoint, plan)
    )
    lines = found.most_common(_MOST_HIDDEN)
    return "".join(
        f"{way}: {format_count(count, 'place')} outside of tensors.{why}\n" for (way, why), count in lines
    )


def _line(row: PlanRow) -> str:
    device, to = escape_text(row.device), escape_text(row.to)
    way = f"{device} -> {to}" if row.what == "moves" else f"{device} stays"
    size = f"{format_count(row.tensors, 'tensor')}, {format_nbytes(row.nbytes)}"
    return f"{way}: {row.role}, {size}. {row.why}"


def _row(group: _Group, tensors: list[Tensor], plan: Plan) -> PlanRow:
    return PlanRow(
        what=group.what,
        device=group.device,
        to=group.to,
        role=group.role,
        tensors=len(tensors),
        nbytes=sum(row.nbytes for row in tensors),
        why=_why(group, tensors[0], plan),
        examples=tuple(escape_text(row.path) for row in tensors[:_MOST_EXAMPLES]),
    )


def _why(group: _Group, first: Tensor, plan: Plan) -> str:
    if group.what == "kept":
        if group.role == "rng":
            return "torch requires the state of random number generators to be on the CPU."
        if group.role == "optimizer":
            return "torch keeps such counters on the CPU unless the optimizer is capturable or fused."
        return "torch keeps this on the CPU wherever the rest is."
    if group.what == "stays":
        return "It has no data." if group.device == "meta" else "No rule sends it elsewhere."
    rule = plan.rules.find_first(first.device, (first.path,), role=first.role, dtypes=(first.dtype,))
    if rule is None:
        return "It belongs to a tensor that moves."
    return f"By the rule {escape_text(format_rule(rule))}."

"""Nothing is recommended that this program refuses, or that torch does not take: each fix is tried out first.

A rule is planned as `remap` plans it, and an argument is given to a load that is only simulated.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.fitting import has_room
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Fix
from inspector.model.obstacles import is_damaged
from inspector.records import replace
from inspector.remap.plan import plan_remap
from inspector.remap.rules import format_rule, parse_rule
from inspector.target.call import LoadCall
from inspector.target.opening import can_map
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import first_failure
from inspector.target.versions import release_of

_TO_CPU = Fix(option=("map_location", "'cpu'"))


def with_accepted_fix(found: Finding, checkpoint: Checkpoint, target: Profile | None) -> Finding:
    """Return a finding with a fix that can be carried out, or with none."""
    fix = accepted_fix(found.fix, checkpoint, target)
    return found if fix == found.fix else replace(found, fix=fix)


def accepted_fix(fix: Fix | None, checkpoint: Checkpoint, target: Profile | None) -> Fix | None:
    """Return a fix if it can be carried out, else what comes next to it and can, or None.

    What no Apple GPU can hold goes to the CPU, and what no copy can say, `map_location` can.
    """
    tried = () if fix is None else _next_to(fix)
    taken = (one for one in tried if _is_accepted(one, checkpoint, target))
    return next((one for one in taken if target is None or _has_room(one, checkpoint, target)), None)


def _next_to(fix: Fix) -> Iterator[Fix]:
    yield fix
    if fix.kind == "rule":
        rule = replace(parse_rule(fix.rule), to="cpu")
        yield Fix(rule=format_rule(rule))
        if rule.device is not None:
            yield _TO_CPU
    elif fix.style:
        yield _TO_CPU if fix.style == "distributed" else Fix(style="plain")


def _is_accepted(fix: Fix, checkpoint: Checkpoint, target: Profile | None) -> bool:
    if fix.kind == "rule":
        return _is_plannable(fix.rule, checkpoint)
    if fix.option is not None:
        return _is_taken(fix.option, checkpoint, target or CPU_ONLY)
    if fix.recovers:
        return is_damaged(checkpoint)
    from inspector.snippet.styles.table import styles  # noqa: PLC0415 - many files have no such finding

    return any(style.id == fix.style for style in styles(checkpoint))


def _is_plannable(text: str, checkpoint: Checkpoint) -> bool:
    """Return whether `remap` takes a rule, and something changes."""
    rule = parse_rule(text)
    try:
        return not plan_remap(checkpoint, (rule,)).is_empty
    except PlanError:
        return False


def _has_room(fix: Fix, checkpoint: Checkpoint, target: Profile) -> bool:
    """Return whether a map of devices is not known to put more on one of them than it holds."""
    rule = parse_rule(fix.rule) if fix.kind == "rule" else None
    if rule is None or rule.device is None:
        return True
    tags = {row.device for row in checkpoint.storages}
    moves = tuple((tag, rule.to) for tag in sorted(tags) if rule.matches(tag, ()))
    return not moves or has_room(checkpoint, target, moves)


def _is_taken(option: tuple[str, str], checkpoint: Checkpoint, target: Profile) -> bool:
    name, value = option
    if name == "mmap":
        return value == "False" or can_map(checkpoint, release_of(target.torch_version))
    place = value.strip("'\"")
    return first_failure(checkpoint, target, LoadCall(map_location=place, weights_only=None)) is None

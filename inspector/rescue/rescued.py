"""A command run with its loads mapped: from its words and rules to its exit code and its journal."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.errors import PlanError
from inspector.remap.rules import Rule, format_rule
from inspector.rescue.calls import Journal
from inspector.rescue.command import check_python, find_command
from inspector.rescue.hook import hooked
from inspector.rescue.journal import read_journal
from inspector.rescue.running import run_command
from inspector.target.machine.wish import Wish

_COPY = "write a copy with checkpoint-inspector remap"


def run_rescued(
    words: Sequence[str], rules: Sequence[Rule], target: Wish, *, maps_missing: bool
) -> tuple[int, Journal]:
    """Run a command, and return its exit code (or the negative number of a signal) and what was mapped.

    Args:
        words: The command.
        rules: Where devices go, in their order.
        target: The machine whose devices count as being there.
        maps_missing: Whether devices that no rule covers are mapped where they are missing.
    """
    followed = [_followed(rule) for rule in rules]
    program = find_command(words)
    with hooked(followed, target, maps_missing=maps_missing) as hook:
        check_python(program, hook)
        code = run_command(program.command, hook.environment)
        return code, read_journal(hook.journal)


def _followed(rule: Rule) -> tuple[str, str]:
    """Return a rule as the hook follows it: it sees the device of a storage, and nothing else."""
    if rule.device is None:
        raise PlanError(
            f"run cannot follow {format_rule(rule)!r}: only devices are known while a program loads",
            remedy=f"map devices, as in 'cuda:1=cuda:0', or {_COPY}",
        )
    if rule.device == "cpu":
        raise PlanError(
            "run leaves on the CPU what was saved there: it cannot tell weights from Adam's steps",
            remedy=f"move what is loaded in the program, or {_COPY}",
        )
    return rule.device, rule.to

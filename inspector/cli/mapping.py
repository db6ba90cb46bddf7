"""The options `--map` and `--target`, and the plan that they make of a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from inspector.cli.machines import add_target_options, profile_of

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.plan import Machine, Plan
    from inspector.remap.rules import Rule
    from inspector.target.wish import Wish


def add_map_options(parser: argparse._ActionsContainer) -> None:
    """Declare `--map`, `--target` and `--python`."""
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FROM=TO",
        help="where storages go: '*=cpu', 'cuda:1=cuda:0'; repeatable, the first match counts",
    )
    add_target_options(parser)


def add_plan_options(parser: argparse._ActionsContainer) -> None:
    """Declare the options that say what else moves."""
    parser.add_argument("--move-all", action="store_true", help="also move state that torch keeps on the CPU")
    parser.add_argument(
        "--hidden-devices",
        action="store_true",
        help="also change devices outside of tensors: torch.device values, device meshes, generators",
    )


def parse_map(options: argparse.Namespace) -> tuple[tuple[Rule, ...], Wish]:
    """Read --map and --target, before any file so that wrong usage comes first."""
    from inspector.remap.rules import parse_rule
    from inspector.target.wish import THIS, parse_wish

    rules = tuple(parse_rule(text) for text in options.map)
    return rules, parse_wish(options.target or THIS)


def plan_of(
    checkpoint: Checkpoint, options: argparse.Namespace, said: tuple[Rule, ...], target: Wish
) -> Plan:
    """Return the plan of the rules for a file."""
    from inspector.remap.plan import plan_for

    machine = _machine(options, target)
    return plan_for(checkpoint, said, machine, move_all=options.move_all, hidden=options.hidden_devices)


def rules_of(
    checkpoint: Checkpoint, options: argparse.Namespace, said: tuple[Rule, ...], target: Wish
) -> tuple[Rule, ...]:
    """Return the rules of --map, then those that --target still needs; with neither, all goes to the CPU."""
    from inspector.remap.plan import rules_for

    return rules_for(checkpoint, said, _machine(options, target), hidden=options.hidden_devices)


def _machine(options: argparse.Namespace, target: Wish) -> Machine | None:
    return None if options.target is None else lambda: profile_of(target, options)

"""The options `--map`, `--target` and `--python`, and the machine and the plan that they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.plan import Machine, Plan
    from inspector.remap.rules import Rule
    from inspector.target.profile import Profile
    from inspector.target.wish import Wish


TARGETS = (
    "this, cpu, mps, xpu, rocm, cuda (one GPU), 2xcuda (two), cuda:1 (that GPU is wanted), 4xcuda:1 (both), "
    "or a profile that the probe script wrote; add @24gb for the memory of each GPU"
)
"""The help of every `--target`."""
PYTHONS = (
    "the Python that loads your files on this machine: its path, or the folder of its environment; by "
    "default that of the active environment, else python3 or python on PATH"
)


def add_target_options(parser: argparse._ActionsContainer, default: str | None = None) -> None:
    parser.add_argument(
        "--target",
        metavar="T",
        default=default,
        help=f"{TARGETS}; default: {default}" if default else TARGETS,
    )
    add_python_option(parser)


def add_python_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--python", metavar="PATH", help=PYTHONS)


def profile_of(wish: Wish, options: argparse.Namespace) -> Profile:
    """Return the machine that is wished for; this one is probed in the Python that `--python` names.

    That takes a second, so it is done once for all files of a command line.
    """
    from inspector.target.profile_file import probe_this_machine

    known: dict[str, Profile] = vars(options).setdefault("machines", {})
    if not known:
        known["this"] = wish.profile(lambda: probe_this_machine(options.display.progress(), options.python))
    return known["this"]


def add_map_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FROM=TO",
        help="where storages go: '*=cpu', 'cuda:1=cuda:0'; repeatable, the first match counts",
    )
    add_target_options(parser)


def add_plan_options(parser: argparse._ActionsContainer) -> None:
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

"""The command `run`: a Python program as it is, but for where its loads put what they read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from inspector.cli.common import PROGRAM, tell
from inspector.cli.mapping import TARGETS
from inspector.errors import PlanError

if TYPE_CHECKING:
    from inspector.rescue.journal import Journal

SUMMARY = "Run a Python program with its loads mapped, and report which line needed it."
EXAMPLES = ("run -- python train.py --epochs 3", "run --map 'cuda:*=cpu' -- torchrun train.py")
NOTES = (
    "Every load of the program, and of the Pythons that it starts, puts storages whose "
    "device is not here on the best device that is: torch.load wherever it is called, torch.jit.load, and "
    "tensors in pickle.load, np.load and joblib.load. What was saved on the CPU stays there. What a load may "
    "run is not changed: weights_only is as the program has it. Nothing is installed. The exit code is the "
    "program's, and the report goes to stderr."
)
IS_PLAIN = True


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FROM=TO",
        help="'*=cpu', 'cuda:1=cuda:0'; repeatable; then only what a rule covers is mapped",
    )
    parser.add_argument("--target", metavar="T", help=f"map what is not on T as well: {TARGETS}")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def run(options: argparse.Namespace) -> int:
    from inspector.remap.rules import parse_rule
    from inspector.rescue.running import end_alike, run_rescued
    from inspector.target.wish import THIS, parse_wish

    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not words:
        raise PlanError("run was given no command", remedy=f"{PROGRAM} {EXAMPLES[0]}")
    rules = [parse_rule(text) for text in options.map]
    target = parse_wish(options.target or THIS)
    code, journal = run_rescued(words, rules, target, maps_missing=not rules or options.target is not None)
    if journal.failures or not options.display.is_quiet:
        _report(journal, code)
    return end_alike(code)


def _report(journal: Journal, code: int) -> None:
    from inspector.report.words.results import format_journal
    from inspector.rescue.mending import find_needs

    tell(f"{PROGRAM}: {format_journal(journal, find_needs(journal), code)}")

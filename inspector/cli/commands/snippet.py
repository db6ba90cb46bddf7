"""The command `snippet`: Python code that loads a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, remark, remark_runs, say
from inspector.cli.mapping import add_map_options, parse_map
from inspector.errors import ContainerError

if TYPE_CHECKING:
    from inspector.target.machine.profile import Profile

SUMMARY = "Print Python code that loads the file."
EXAMPLES = (
    "snippet best.pth",
    "snippet best.pth --target cuda --style resume",
)
_STYLES = (
    "plain, resume, module, lightning, transformers, peft, data, distributed, fsdp, accelerate, "
    "deepspeed, ...; those that fit the file, the best of them if none is named"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `snippet`."""
    parser.add_argument("file", metavar="FILE", help="the checkpoint")
    add_map_options(parser)
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--style", metavar="NAME", help=_STYLES)
    saves = "print code that saves the next checkpoint, so that it loads anywhere"
    style.add_argument("--save", dest="style", action="store_const", const="save", help=saves)


def run(options: argparse.Namespace) -> int:
    """Print the code."""
    from inspector.model.build import open_checkpoint
    from inspector.remap.asking import device_map, refuse_other_than_devices
    from inspector.snippet.styles.table import render
    from inspector.target.machine.profile import CPU_ONLY, Profile

    rules, wish = parse_map(options)
    refuse_other_than_devices(rules)
    target = wish.profile(lambda: Profile(id="this", label="this machine"))
    try:
        checkpoint = open_checkpoint(options.file, progress=options.display.progress())
    except ContainerError as error:
        to_cpu = bool(rules) and all(rule.to == "cpu" for rule in rules)
        return _unopened(options, CPU_ONLY if to_cpu else target, error)
    mapping = device_map(checkpoint, rules)
    code = render(
        checkpoint,
        style=options.style,
        target=target,
        mapping=mapping,
        path=options.file,
        is_exact=bool(mapping),
    )
    say(code)
    return DONE


def _unopened(options: argparse.Namespace, target: Profile, error: ContainerError) -> int:
    """Print the code for a file that is not read, if its format is all that it takes."""
    from inspector.snippet.unopened import code_for_refused

    code = code_for_refused(options.file, error, target, style=options.style or "plain")
    if not code:
        raise error
    say(code)
    remark(f"the file itself was not read: {error.what}")
    remark_runs(error)
    return DONE

"""The options of each command."""

from __future__ import annotations

import argparse
from typing import NoReturn

from inspector import __version__
from inspector.cli import checking, commands, recovering, remapping, showing, targets, verifying
from inspector.cli.forms import add_form_options
from inspector.cli.messages import PROGRAM, USAGE, complain
from inspector.errors import PlanError
from inspector.overriding import override

_PLANNED = frozenset({"diff", "stats"})
_STYLES = "plain, resume, module, lightning, transformers, distributed; what fits the file"
_SMALLEST, _LARGEST = 200, 8000
"""Pixels along an edge of a picture."""
_TARGETS = "this, cpu, cuda, cuda:N (N GPUs), mps, xpu, rocm, or a profile that the probe script wrote"


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, as every other error is said; takes options by their whole name only.

    An abbreviation would change its meaning, or lose it, with the next option.
    """

    def __init__(self, name: str, description: str, epilog: str = "") -> None:
        super().__init__(prog=name, description=description, epilog=epilog, allow_abbrev=False)

    @override
    def error(self, message: str) -> NoReturn:
        complain(message)
        raise SystemExit(USAGE)


def parse(given: list[str]) -> argparse.Namespace:
    """Read a command line; without a command it means the window.

    Raises:
        PlanError: The command belongs to a later version.
        SystemExit: The command line is wrong (2), or asked for help (0).
    """
    if given and given[0] in _PLANNED:
        raise PlanError(f"this version has no command {given[0]}", remedy=f"see {PROGRAM} --help")
    parsers = _parsers()
    if given and given[0] in parsers:
        return parsers[given[0]].parse_args(given[1:])
    return _window_parser(parsers).parse_args(given)


def _window_parser(parsers: dict[str, argparse.ArgumentParser]) -> argparse.ArgumentParser:
    names = ", ".join(parsers)
    parser = _Parser(
        PROGRAM,
        "Open PyTorch checkpoints without executing them, and fix the devices they name.",
        f"Commands: {names}. Ask each with --help. Without a command, files open in the window.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="checkpoints to open in the window")
    parser.add_argument("--demo", action="store_true", help="open the demo checkpoint")
    parser.add_argument("--fresh", action="store_true", help="ignore remembered settings")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.set_defaults(run=commands.open_window)
    return parser


def _parsers() -> dict[str, argparse.ArgumentParser]:
    return {
        "show": _show_parser(),
        "check": _check_parser(),
        "remap": _remap_parser(),
        "verify": _verify_parser(),
        "recover": _recover_parser(),
        "snippet": _snippet_parser(),
        "screenshot": _screenshot_parser(),
        "desktop": _desktop_parser(),
        "target": _target_parser(),
    }


def _show_parser() -> argparse.ArgumentParser:
    parser = _Parser(f"{PROGRAM} show", "Show what checkpoints hold; nothing in them runs.")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON document for each file, one a line")
    parser.add_argument(
        "--filter", metavar="QUERY", default="", help="words, device:, dtype:, role:, size>10MB"
    )
    parser.add_argument("--depth", type=_depth, metavar="N", help="levels of the tree to show")
    parser.set_defaults(run=showing.show)
    return parser


def _check_parser() -> argparse.ArgumentParser:
    parser = _Parser(f"{PROGRAM} check", "Say whether torch.load works on a machine, and why not.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--target", metavar="T", default="this", help=_TARGETS)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    error = parser.add_mutually_exclusive_group()
    error.add_argument("--error-text", metavar="TEXT", help="explain this error message or traceback")
    error.add_argument("--error-file", metavar="F", help="the same from a file; - reads standard input")
    parser.set_defaults(run=checking.check)
    return parser


def _remap_parser() -> argparse.ArgumentParser:
    parser = _Parser(f"{PROGRAM} remap", "Write a copy with other devices; weights stay.")
    parser.add_argument("file", metavar="FILE")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="OUT")
    where.add_argument("--in-place", action="store_true", help="change FILE itself; keeps an undo record")
    where.add_argument("--undo", action="store_true", help="take --in-place back, bit for bit")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and write nothing")
    _add_map_options(parser)
    add_form_options(parser)
    parser.add_argument("--move-all", action="store_true", help="move state that torch keeps on the CPU, too")
    parser.add_argument("--force", action="store_true", help="replace OUT; change a protected FILE")
    parser.add_argument("--receipt", metavar="FILE", help="write down what was done and checked, as JSON")
    parser.add_argument("--keep-times", action="store_true", help="give OUT the times of FILE")
    parser.add_argument(
        "--verify",
        choices=("quick", "full", "torch"),
        default="quick",
        help="compare samples, every byte, or have torch load the copy, too",
    )
    parser.add_argument("--no-verify", action="store_true", help="do not open and compare what was written")
    parser.set_defaults(run=remapping.remap)
    return parser


def _verify_parser() -> argparse.ArgumentParser:
    parser = _Parser(f"{PROGRAM} verify", "Compare a copy with the file it was made from, byte by byte.")
    parser.add_argument("file", metavar="OUT")
    parser.add_argument("--against", required=True, metavar="FILE")
    _add_map_options(parser)
    parser.add_argument("--move-all", action="store_true", help="as it was for remap")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.set_defaults(run=verifying.verify)
    return parser


def _recover_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        f"{PROGRAM} recover", "Save what is whole in a damaged file as a new one, and list the rest."
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("-o", "--output", required=True, metavar="OUT")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.set_defaults(run=recovering.recover)
    return parser


def _snippet_parser() -> argparse.ArgumentParser:
    parser = _Parser(f"{PROGRAM} snippet", "Print Python code that loads the file.")
    parser.add_argument("file", metavar="FILE")
    _add_map_options(parser)
    parser.add_argument("--style", default="plain", help=_STYLES)
    parser.set_defaults(run=commands.snippet)
    return parser


def _add_map_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FROM=TO",
        help="'*=cpu', 'cuda:1=cuda:0'; repeatable",
    )
    parser.add_argument("--target", metavar="T", help=_TARGETS)


def _screenshot_parser() -> argparse.ArgumentParser:
    parser = _Parser(f"{PROGRAM} screenshot", "Render the window on a file to a PNG.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("output", metavar="OUT.png")
    parser.add_argument("--size", default="1280x800", metavar="WxH", type=_size)
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--page", choices=("memory", "tensor", "findings", "code", "file"), default="memory")
    parser.add_argument("--force", action="store_true", help="replace OUT even if it is no picture")
    parser.set_defaults(run=commands.screenshot)
    return parser


def _size(text: str) -> tuple[int, int]:
    width, _, height = (_number(part) for part in text.partition("x"))
    if not (_SMALLEST <= width <= _LARGEST and _SMALLEST <= height <= _LARGEST):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 1280x800")
    return width, height


def _depth(text: str) -> int:
    if _number(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of levels")
    return _number(text)


def _number(text: str) -> int:
    """Read a number of up to six plain digits; -1 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else -1


def _target_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        f"{PROGRAM} target",
        "Describe this machine and say why torch can or cannot use its GPUs.",
        f"For another machine: {PROGRAM} target --probe-script | ssh HOST python3 - > host.json",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--target", metavar="T", default="this", help=_TARGETS)
    parser.add_argument("--probe-script", action="store_true", help="print the script that probes a machine")
    parser.set_defaults(run=targets.target)
    return parser


def _desktop_parser() -> argparse.ArgumentParser:
    parser = _Parser(f"{PROGRAM} desktop", "Register for this user: double-click, Open With.")
    parser.add_argument("action", choices=("install", "remove"))
    parser.set_defaults(run=commands.desktop)
    return parser

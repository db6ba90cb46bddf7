"""The options `--target` and `--python`, and the machine that they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """Declare both options."""
    parser.add_argument(
        "--target",
        metavar="T",
        default=default,
        help=f"{TARGETS}; default: {default}" if default else TARGETS,
    )
    add_python_option(parser)


def add_python_option(parser: argparse._ActionsContainer) -> None:
    """Declare the option that names the Python whose torch is asked."""
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

"""The command `desktop`: double-click, icon and Open With for this user."""

from __future__ import annotations

import argparse
import os

from inspector.cli.common import DONE, say

SUMMARY = "Register for this user: double-click, Open With."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `desktop`."""
    parser.add_argument("action", choices=("install", "remove"))


def run(options: argparse.Namespace) -> int:
    """Register the program for this user, or remove the registration; print the files that changed."""
    from inspector.desktop.registration import install, remove
    from inspector.units import escape_text

    paths = install() if options.action == "install" else remove()
    say("".join(f"{escape_text(os.fspath(path))}\n" for path in paths))
    return DONE

"""The command `desktop`: double-click, icon and Open With for this user."""

from __future__ import annotations

import argparse
import os

from inspector.cli.common import DONE, say
from inspector.cli.screen import require_packages

SUMMARY = "Register for this user: double-click, Open With."
EXAMPLES = (
    "desktop install",
    "desktop remove",
)
NOTES = (
    "Linux and the BSDs: file types, launcher, icon, thumbnails, and the default for checkpoints.\n"
    "Windows: names and icons of files, Open With, an entry in the settings of default apps.\n"
    "macOS: the file types of the application bundle.\n"
    "Windows and macOS are untested on real hardware."
)
IS_PLAIN = True


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=("install", "remove"), help="register, or take the registration back"
    )


def run(options: argparse.Namespace) -> int:
    from inspector.desktop.registration import find_registration, find_running_command
    from inspector.units import escape_text

    registration = find_registration()
    is_new = options.action == "install"
    if is_new:
        require_packages()
    paths = registration.install(find_running_command()) if is_new else registration.remove()
    say("".join(f"{escape_text(os.fspath(path))}\n" for path in paths))
    return DONE

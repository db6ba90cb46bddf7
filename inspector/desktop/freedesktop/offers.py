"""Formats of others that are read here: the program is offered under Open With, and is nobody's default.

An association of one's own makes a program the default wherever no other is chosen: the user's folder is
looked at first. So the program that opens such a file today is written down before ours, and taken out again
with it. Where that program is not known, nothing is offered.
https://specifications.freedesktop.org/mime-apps-spec/latest/
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from inspector.child import SAFE_FOLDER, find_program
from inspector.desktop.freedesktop.caches import outside_environment

OFFERED: Mapping[str, str] = {
    "application/x-npy": "",
    "application/x-python-pickle": "",
    "application/x-npz": "application/zip",
    "application/zip": "application/zip",
    "application/x-checkpoint-index+json": "application/json",
}
"""The types, and by which other type is found what opens a file of it today; empty where nothing does."""

_TIMEOUT_S = 10.0
_SUFFIX = ".desktop"


def plan_offers(entry: str) -> dict[str, tuple[str, ...]]:
    """Return for each type that is offered the programs for it in their order, with `entry` the last."""
    found = {parent: _find_default(parent, entry) for parent in dict.fromkeys(OFFERED.values()) if parent}
    planned: dict[str, tuple[str, ...]] = {}
    for name, parent in OFFERED.items():
        if not parent:
            planned[name] = (entry,)
        elif default := found[parent]:
            planned[name] = (default, entry)
    return planned


def format_kept(pairs: Mapping[str, str]) -> str:
    """Write which program was added before ours for each type."""
    return "".join(f"{name}:{program};" for name, program in pairs.items())


def parse_kept(text: str) -> dict[str, str]:
    """Read what `format_kept` wrote."""
    rows = (row.partition(":") for row in text.split(";"))
    return {name: program for name, colon, program in rows if colon and program}


def _find_default(name: str, entry: str) -> str:
    """Ask the desktop's own library what opens a file of a type; empty where it is not known, or is ours."""
    tool = find_program("gio")
    if tool is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed tool of the desktop
            [tool, "mime", name],
            check=False,
            capture_output=True,
            cwd=SAFE_FOLDER,
            env=outside_environment() | {"LC_ALL": "C"},
            errors="replace",
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    program = next(iter(done.stdout.splitlines()), "").rpartition(": ")[2].strip()
    return program if program.endswith(_SUFFIX) and program != entry and ";" not in program else ""

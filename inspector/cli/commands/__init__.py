"""The commands, one module each: its options, and what it runs.

A module here has `SUMMARY` (one sentence), `add_options(parser)`, `run(options)`, which returns the exit
code, and perhaps `EXAMPLES`, lines without the program's name, and `NOTES`, for the end of its help.
It is imported when its command is called, so that `show` pays for nothing that `remap`
needs. To add a command is to add its module and its row.
"""

from __future__ import annotations

COMMANDS = {
    name: f"{__name__}.{name}"
    for name in (
        "show",
        "check",
        "remap",
        "run",
        "verify",
        "diff",
        "stats",
        "recover",
        "snippet",
        "screenshot",
        "desktop",
        "target",
        "schema",
    )
} | {"help": "inspector.cli.helping"}
"""The module of each command, in the order of `--help`."""

WINDOW = f"{__name__}.window"
"""What is run without a command."""

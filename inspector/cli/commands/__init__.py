"""The commands, one module each: its options, and what it runs.

A module here has `SUMMARY` (one sentence), `add_options(parser)`, `run(options)`, which returns the exit
code, and perhaps `EXAMPLES`, lines without the program's name, `NOTES`, for the end of its help, and
`IS_PLAIN`, where nothing is laid out on a terminal.
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
        "export",
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
        "completion",
    )
} | {"help": "inspector.cli.helping"}
"""The module of each command, in the order of `--help`."""

WINDOW = f"{__name__}.window"
"""What is run without a command."""

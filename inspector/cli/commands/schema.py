"""The command `schema`: what the documents of `--json` look like."""

from __future__ import annotations

import argparse

from inspector.cli.common import DONE, say

SUMMARY = "Print the JSON Schema of what a command writes with --json."
EXAMPLES = (
    "schema",
    "schema show > show.schema.json",
)
NOTES = "Without a command, it lists those that have one. The schemas are of JSON Schema 2020-12."
IS_PLAIN = True


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="show, check, remap, diff, stats, ...")


def run(options: argparse.Namespace) -> int:
    from inspector.report.schemas import schema_names, schema_text

    if options.command is None:
        say("".join(f"{name}\n" for name in schema_names()))
    else:
        say(schema_text(options.command))
    return DONE

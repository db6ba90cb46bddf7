"""The command `target`: a machine as torch sees it, why its GPUs cannot be used, the probe for others."""

from __future__ import annotations

import argparse

from inspector.cli.common import DONE, PROGRAM, say, say_json
from inspector.cli.mapping import add_target_options, profile_of

SUMMARY = "Describe this machine and say why torch can or cannot use its GPUs."
EXAMPLES = (
    "target",
    "target --python ~/venv",
    "target --probe-script > probe.py",
)
NOTES = f"For another machine: {PROGRAM} target --probe-script | ssh HOST python3 - > host.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")
    add_target_options(parser, "this")
    parser.add_argument("--probe-script", action="store_true", help="print the script that probes a machine")


def run(options: argparse.Namespace) -> int:
    if options.probe_script:
        from inspector.resources import PROBE, resource_path

        say(resource_path(PROBE).read_text(encoding="utf-8"))
        return DONE
    from inspector.doctor.examine import examine
    from inspector.report.machine import machine_document, machine_page
    from inspector.target.wish import parse_wish

    profile = profile_of(parse_wish(options.target), options)
    diagnoses = examine(profile)
    if options.json:
        say_json(machine_document(profile, diagnoses))
    else:
        options.display.show(machine_page(profile, diagnoses))
    return DONE

"""The command `target`: a machine as torch finds it, what keeps its GPUs away, the probe for others."""

from __future__ import annotations

import argparse

from inspector.cli.messages import DONE, say


def target(options: argparse.Namespace) -> int:
    """Describe a machine, or print the script that describes any other one."""
    if options.probe_script:
        from inspector.resources import PROBE, resource_path

        say(resource_path(PROBE).read_text(encoding="utf-8"))
        return DONE
    from inspector.doctor.examine import examine
    from inspector.progress import Progress
    from inspector.report.machine import format_machine, machine_document
    from inspector.target.machine.profile import parse_target
    from inspector.target.machine.this_machine import probe_this_machine

    profile = probe_this_machine(Progress()) if options.target == "this" else parse_target(options.target)
    diagnoses = examine(profile)
    if options.json:
        import json

        say(json.dumps(machine_document(profile, diagnoses)) + "\n")
    else:
        say(format_machine(profile, diagnoses))
    return DONE

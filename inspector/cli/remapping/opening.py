"""The file that `remap` is about and its plan; what must not be written is refused before."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.common import remark
from inspector.cli.machines import profile_of
from inspector.cli.mapping import parse_map, plan_of
from inspector.cli.remapping.answer import file_name

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.plan import Plan


def open_planned(options: argparse.Namespace) -> tuple[Checkpoint, Plan]:
    """Read the file, refuse an output that must not be written, and make the plan."""
    from inspector.model.build import open_checkpoint
    from inspector.remap.export import refuse_receipt
    from inspector.remap.files import refuse_destination

    said, target = parse_map(options)
    checkpoint = open_checkpoint(options.file, progress=options.display.progress())
    if options.output is not None and not options.dry_run:
        refuse_destination(options.file, Path(options.output), overwrite=options.force)
        if options.receipt is not None:
            refuse_receipt(Path(options.receipt), options.file, Path(options.output))
            refuse_destination(options.file, Path(options.receipt), overwrite=options.force)
    return checkpoint, plan_of(checkpoint, options, said, target)


def remark_on_room(options: argparse.Namespace, checkpoint: Checkpoint, plan: Plan) -> None:
    """Write to stderr what of the copy does not fit on the machine of --target, as far as that is known."""
    if options.target is None:
        return
    from inspector.diagnose.fitting import overflow_of, overflow_text
    from inspector.report.charts.bars import flows_of
    from inspector.report.charts.rooms import landed

    flows = flows_of(checkpoint, plan.storages)
    going: dict[str, set[str]] = {}
    for device, to in flows:
        going.setdefault(device, set()).add(to)
    whole = ((device, *tos) for device, tos in going.items() if len(tos) == 1)
    moves = tuple((device, to) for device, to in whole if device != to)
    stored = tuple((device, sum(tags.values())) for device, tags in landed(flows).items())
    target = profile_of(parse_map(options)[1], options)
    overflow = overflow_of(checkpoint, target, moves, stored=stored)
    if overflow is not None:
        remark(f"{file_name(options)}: {overflow_text(overflow)}")

"""The file that `remap` is about and its plan; what must not be written is refused before."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.mapping import parse_map, plan_of

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.plan import Plan


def open_planned(options: argparse.Namespace) -> tuple[Checkpoint, Plan]:
    """Read the file, refuse an output that must not be written, and make the plan.

    Raises:
        CheckpointError: One of these fails.
    """
    from inspector.model.build import open_checkpoint
    from inspector.remap.compare.receipt import refuse_receipt
    from inspector.remap.files.destination import refuse_destination

    said, target = parse_map(options)
    checkpoint = open_checkpoint(options.file, progress=options.display.progress())
    if options.output is not None and not options.dry_run:
        refuse_destination(options.file, Path(options.output), overwrite=options.force)
        if options.receipt is not None:
            refuse_receipt(Path(options.receipt), Path(options.output))
            refuse_destination(options.file, Path(options.receipt), overwrite=options.force)
    return checkpoint, plan_of(checkpoint, options, said, target)

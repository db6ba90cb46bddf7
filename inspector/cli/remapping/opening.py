"""The file that `remap` is about and its plan; what must not be written is refused before."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.cli.common import DONE, complain_of, exit_code, reader_may_leave, remark, say_json, tell
from inspector.cli.machines import profile_of
from inspector.cli.mapping import parse_map, plan_of
from inspector.cli.streams import is_stream
from inspector.errors import CheckpointError
from inspector.records import dataclass
from inspector.report.page import Page, plain_text

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.plan import Plan


# What `remap` has to say about one file, and where it says it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, for people and as JSON.

    Attributes:
        document: Returns the same as JSON; what makes it is imported where it is asked for.
        failure: What could not be done although the file was written; it decides the exit code.
    """

    page: Page
    document: Callable[[], dict[str, Any]]
    code: int = DONE
    failure: CheckpointError | None = None


def file_name(options: argparse.Namespace) -> str:
    """Return what the file is called in the answer, wherever it is read."""
    name: str = getattr(options, "file_name", options.file)
    return name


def output_name(options: argparse.Namespace) -> str:
    """Return what the output is called in the answer."""
    stream: str | None = getattr(options, "output_name", None)
    name: str = options.output if stream is None else "standard output"
    return name


def give(answer: Answer, options: argparse.Namespace) -> int:
    """Write an answer, to stderr where stdout takes the file itself; return the exit code."""
    with reader_may_leave():
        if options.json:
            say_json(answer.document())
        elif is_stream(getattr(options, "output_name", None)):
            tell(plain_text(answer.page))
        else:
            options.display.show(answer.page, apart=options.dry_run)
    if answer.failure is None:
        return answer.code
    complain_of(answer.failure)
    return exit_code(answer.failure)


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
    from inspector.report.charts.forecast import landed

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

"""The command `recover`: what is whole in a damaged file, as a checkpoint that loads."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.messages import DONE, remark, say

if TYPE_CHECKING:
    from inspector.remap.recover.recover import Recovery
    from inspector.remap.recover.values import Lost


def recover(options: argparse.Namespace) -> int:
    """Save what is whole, and list the rest."""
    from inspector.cli.remapping import ended_by_signals
    from inspector.progress import Progress
    from inspector.remap.recover.recover import recover as save

    progress = Progress()
    with ended_by_signals(progress):
        done = save(options.file, Path(options.output), overwrite=options.force, progress=progress)
    say(_report(options.output, done))
    if done.verdict != "weights-only":
        remark(f"{options.output}: {_safety(done)}")
    return DONE


def _report(output: str, done: Recovery) -> str:
    from inspector.units import escape_text, format_count, format_nbytes

    every = done.tensors + len(done.lost)
    saved = f"{done.tensors:,} of {format_count(every, 'tensor')} saved"
    size = format_nbytes(done.storage_nbytes)
    lines = [
        f"{escape_text(output)}: {saved}, {size}, opened again, its tensors compared",
        _how_sure(done),
        *([f"the new file: {_safety(done)}"] if done.verdict != "weights-only" else []),
    ]
    if done.lost:
        lost = f"{format_count(len(done.lost), 'tensor')} lost, {format_nbytes(done.lost_nbytes)}"
        lines.append(f"{lost}; left out of dictionaries, None in lists and tuples:")
        lines += map(_lost_line, done.lost)
    else:
        lines.append("no tensor is lost")
    return "\n".join(lines) + "\n"


def _safety(done: Recovery) -> str:
    from inspector.report.words.verdicts import SAFETY

    return SAFETY[done.verdict]


def _how_sure(done: Recovery) -> str:
    if not done.unchecked:
        return "every byte of a tensor saved has the checksum that the file tells"
    if done.unchecked == done.storages:
        return "the file tells no checksums, so changed bytes amid a tensor could not be seen"
    return f"{done.unchecked:,} of {done.storages:,} storages have no checksum to compare"


def _lost_line(row: Lost) -> str:
    from inspector.units import format_nbytes, format_shape

    return f"  {row.path}  {format_shape(row.shape)} {row.dtype}, {format_nbytes(row.nbytes)}: {row.why}"

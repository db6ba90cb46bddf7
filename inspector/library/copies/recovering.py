"""`inspector.recover`: what is intact in a damaged file, as a checkpoint that loads."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from inspector.library import answers
from inspector.library.opened import telling_what_runs
from inspector.library.sources import CheckpointLike, Path, path_of
from inspector.library.telling import Told, told
from inspector.records import dataclass
from inspector.remap import recover as saving
from inspector.report.documents import recover_document
from inspector.report.words.results import as_lines, lost, lost_row, recovered, recovered_safety
from inspector.safety.verdict import FileVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was saved of a damaged file.

    Attributes:
        output: The new file.
        tensors: How many tensors were saved; one that stands in two places counts twice.
        lost: The paths of those that are not whole, in the order of the file.
        verdict: What loading the new file runs, as `Checkpoint.verdict`.
    """

    output: pathlib.Path
    tensors: int
    lost: tuple[str, ...]
    verdict: FileVerdict
    _document: dict[str, Any]
    _text: str

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


def recover(source: CheckpointLike, output: Path, *, force: bool = False, progress: Told = None) -> Recovered:
    """Save what is intact in a damaged file as a new one; the file itself is only read.

    Args:
        source: The damaged file, or an open checkpoint, whose file is read again.
        output: The new file.
        force: Whether a file that stands there may be replaced.
        progress: Called with each `Step` of the work. What it raises ends it, and nothing is left behind.

    Raises:
        PlanError: The new file is named as one of another format.
        ExportError: It cannot be written. Nothing is left behind.
        CheckpointError: Nothing in the file can be saved.
    """
    path = path_of(source)
    with told(progress) as steps, telling_what_runs():
        done = saving.recover(path, pathlib.Path(os.fsdecode(output)), overwrite=force, progress=steps)
    safety = recovered_safety(done)
    words = [*recovered(done), *([f"the new file: {safety}"] if safety else []), lost(done)]
    return Recovered(
        output=done.destination,
        tensors=done.tensors,
        lost=tuple(row.path for row in done.lost),
        verdict=done.verdict,
        _document=recover_document(path, str(done.destination), done),
        _text="\n".join([*as_lines(words), *(f"  {lost_row(row)}" for row in done.lost)]),
    )

"""A copy of a folder with other devices: each file of torch's with its part of the plan, others as they are.

The new folder appears under its name once all of it is written, or not at all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from inspector.containers.formats import refuse_step
from inspector.containers.source import FileSource
from inspector.diff.same_bytes import SAMPLE_NBYTES, find_difference, sample_spans, total_nbytes, whole_spans
from inspector.errors import ExportError, PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.progress import Progress
from inspector.remap.files.outfile import explained
from inspector.remap.plan import Plan, plan_moves, without_nowhere
from inspector.remap.relabel.export import Export, Verify, export_copy
from inspector.remap.relabel.formats import RELABELINGS

_MOST_NAME = 40


def can_relabel(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint is a folder of files whose devices can be changed one by one."""
    return any(part.format in RELABELINGS for part in checkpoint.parts)


def export_folder(
    checkpoint: Checkpoint,
    destination: Path,
    plan: Plan,
    *,
    verify: Verify = "quick",
    progress: Progress | None = None,
) -> Export:
    """Write a copy of a folder with the devices of a plan.

    Args:
        checkpoint: The folder, opened by its path or by a file that stands for it.
        destination: The new folder.
        plan: What changes, made from this checkpoint.
        verify: How each file is checked, see `export_copy`.
        progress: Told of the stages and bytes, asked for cancellation.
    """
    progress = progress or Progress()
    root = _root_of(checkpoint.path)
    if not can_relabel(checkpoint):
        raise PlanError(
            "no file of this folder names a device, so there is none to change",
            where=checkpoint.path,
            remedy="the call that loads it decides; for torch.load write one file: remap -o model.pth",
        )
    refuse_step(checkpoint.format, "remap", checkpoint.path)
    plan = without_nowhere(checkpoint, plan)
    _refuse(root, destination)
    made = destination.with_name(f".{destination.name[:_MOST_NAME]}.{os.urandom(4).hex()}.part")
    try:
        with explained(destination):
            made.mkdir()
        done = list(_write(checkpoint, plan, made, verify=verify, progress=progress))
        others = _compare_others(checkpoint, made, verify, progress)
        with explained(destination):
            made.rename(destination)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    files = [file for file in destination.rglob("*") if file.is_file()]
    return Export(
        destination=destination,
        nbytes=sum(file.stat().st_size for file in files),
        moved_tensors=len(plan.tensors),
        moved_hidden=sum(one.moved_hidden for one in done),
        kept_tensors=len(plan.kept),
        in_one_piece=all(one.in_one_piece for one in done),
        verified=all(one.verified for one in done),
        compared_nbytes=others[0] + sum(one.compared_nbytes for one in done),
        copied_nbytes=others[1] + sum(one.copied_nbytes for one in done),
    )


def _refuse(root: Path, destination: Path) -> None:
    with explained(destination):
        if os.path.lexists(destination):
            raise ExportError("this exists already", where=str(destination), remedy="name a new folder")
        if not destination.parent.is_dir():
            raise ExportError("no such folder", where=str(destination.parent))
        if root.resolve() in (destination.parent.resolve(), *destination.parent.resolve().parents):
            raise ExportError(
                "the copy would stand in the folder itself",
                where=str(destination),
                remedy="name another place",
            )


def _write(
    checkpoint: Checkpoint, plan: Plan, made: Path, *, verify: Verify, progress: Progress
) -> Iterator[Export]:
    """Write every file, and yield what became of those of torch's."""
    parts = {
        os.path.realpath(part.path): part.path for part in checkpoint.parts if part.format in RELABELINGS
    }
    root = _root_of(checkpoint.path)
    for folder, folders, names in os.walk(root):
        target = made / Path(folder).relative_to(root)
        with explained(target):
            target.mkdir(exist_ok=True)
        for name in [*names, *(one for one in folders if (Path(folder) / one).is_symlink())]:
            progress.advance(0)
            file = Path(folder) / name
            part = parts.get(os.path.realpath(file))
            if not file.is_file():
                raise ExportError(
                    "only regular files are copied", where=str(file), remedy="take it out first"
                )
            if part is None:
                with explained(target / name):
                    shutil.copyfile(file, target / name)
                continue
            own = open_checkpoint(part, progress=progress)
            yield export_copy(
                part, target / name, _own_plan(checkpoint, plan, own), verify=verify, progress=progress
            )


def _compare_others(
    checkpoint: Checkpoint, made: Path, verify: Verify, progress: Progress
) -> tuple[int, int]:
    """Compare the files that were copied as they are; return how many bytes, and of how many."""
    root = _root_of(checkpoint.path)
    rewritten = {os.path.realpath(part.path) for part in checkpoint.parts if part.format in RELABELINGS}
    compared = copied = 0
    for copy in made.rglob("*"):
        file = root / copy.relative_to(made)
        if not copy.is_file() or os.path.realpath(file) in rewritten:
            continue
        with FileSource(str(file)) as source, FileSource(str(copy)) as other:
            spans = whole_spans(source, other, progress)
            copied += total_nbytes(spans)
            if verify == "none":
                continue
            spans = spans if verify == "full" else sample_spans(spans, SAMPLE_NBYTES)
            compared += total_nbytes(spans)
            if find_difference(source.read, other.read, spans, progress) is not None:
                raise ExportError("the bytes of a copied file differ from the original's", where=str(file))
    return compared, copied


def _own_plan(checkpoint: Checkpoint, plan: Plan, own: Checkpoint) -> Plan:
    """Return the part of a plan that is about one file."""
    places = {row.path: index for index, row in enumerate(checkpoint.tensors)}
    prefix = _prefix(checkpoint, own, places)
    kept = set(plan.kept)
    moves: dict[int, str] = {}
    stays: list[int] = []
    for index, row in enumerate(own.tensors):
        place = places.get(_below(prefix, row))
        if place in plan.tensors:
            moves[index] = plan.tensors[place]
        elif place in kept:
            stays.append(index)
    return plan_moves(own, list(plan.rules), moves, stays)


def _prefix(checkpoint: Checkpoint, own: Checkpoint, places: dict[str, int]) -> str:
    """Return the branch that a file is in: none for a shard, its name for a file of a trainer."""
    name = os.path.basename(own.path)  # noqa: PTH119 - a text
    branches = dict.fromkeys(("", name, *(row.path.partition("/")[0] for row in checkpoint.tensors)))
    return max(branches, key=lambda branch: sum(_below(branch, row) in places for row in own.tensors))


def _below(branch: str, row: Tensor) -> str:
    return "/".join(step for step in (branch, row.path) if step)


def _root_of(path: str) -> Path:
    """Return the folder that was opened, by its own path or by that of a file which stands for it."""
    given = Path(path)
    return given if given.is_dir() else given.parent

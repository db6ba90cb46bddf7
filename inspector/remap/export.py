"""From a plan to a file: the same checkpoint with other devices, at the cost of copying it.

A device is a few letters in the pickle. Where those do not grow, the copy is the source with its pickle
record overwritten; otherwise the records move, and their contents are still copied by the kernel.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from inspector.containers.base import Container
from inspector.containers.sniff import open_source, read_container
from inspector.containers.source import Source
from inspector.errors import CheckpointError, ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.progress import Progress
from inspector.remap.outfile import OutFile, writing
from inspector.remap.pickle_rewrite import rewrite_pickle
from inspector.remap.plan import Plan
from inspector.remap.verify import compare_with_plan
from inspector.remap.writers import CopyWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A copy that was written.

    Attributes:
        destination: Where it stands.
        nbytes: Its size.
        moved_tensors: How many tensors have another device now.
        kept_tensors: How many stayed on the CPU by design.
        in_one_piece: Whether no byte outside the pickle changed its place.
        verified: Whether the copy was opened again and compared.
    """

    destination: Path
    nbytes: int
    moved_tensors: int
    kept_tensors: int
    in_one_piece: bool
    verified: bool


def export_copy(
    path: str,
    destination: Path,
    plan: Plan,
    *,
    overwrite: bool = False,
    verify: bool = True,
    progress: Progress | None = None,
) -> Export:
    """Write a copy of a checkpoint with the devices of a plan.

    The plan must have been made from this very file. The source is only read; the copy appears once it is
    complete, synced and compared.

    Raises:
        CheckpointError: The source cannot be read (any more).
        PlanError: A device is written in a way that cannot be changed.
        ExportError: The copy cannot be written, or is not as planned. Nothing is left behind.
        CancelledError: The work was cancelled. Nothing is left behind.
    """
    progress = progress or Progress()
    refuse_destination(path, destination, overwrite=overwrite)
    limits = DEFAULT_LIMITS
    container = read_container(path, limits, progress)
    pickle = rewrite_pickle(container.stream, plan, limits=limits, progress=progress)
    with open_source(path, limits) as source:
        status = os.fstat(source.fd)
        with writing(destination, like=status, overwrite=overwrite) as out:
            writer = CopyWriter(source=source, target=out.fd, pickle=pickle, limits=limits, progress=progress)
            in_one_piece = _write(container, writer)
            _refuse_changed(source, status)
            if verify:
                progress.start("checking the copy")
                _verify(container, out, plan)
            nbytes = os.fstat(out.fd).st_size
            progress.start("waiting for the disk")
    return Export(
        destination=destination,
        nbytes=nbytes,
        moved_tensors=len(plan.tensors),
        kept_tensors=len(plan.kept),
        in_one_piece=in_one_piece,
        verified=verify,
    )


def refuse_destination(path: str, destination: Path, *, overwrite: bool) -> None:
    """Refuse to write over the source, or over anything unless that was asked for.

    Raises:
        ExportError: The destination is the source, exists already, or its folder does not.
    """
    try:
        same = destination.samefile(path)
    except OSError:
        same = False
    if same:
        raise ExportError(
            "the copy would replace the file itself", where=str(destination), remedy="name another file"
        )
    if destination.is_dir():
        raise ExportError("this is a folder", where=str(destination), remedy="name a file in it")
    if not overwrite and os.path.lexists(destination):
        raise ExportError(
            "there is a file already", where=str(destination), remedy="name another, or use --force"
        )
    if not destination.parent.is_dir():
        raise ExportError("there is no such folder", where=str(destination.parent))


def _write(container: Container, writer: CopyWriter) -> bool:
    if container.format == "legacy":
        writer.write_legacy()
        return False
    return writer.write_zip()


def _refuse_changed(source: Source, before: os.stat_result) -> None:
    after = os.fstat(source.fd)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ExportError("the file changed while it was copied", where=source.path, remedy="try again")


def _verify(container: Container, out: OutFile, plan: Plan) -> None:
    try:
        copy = open_checkpoint(str(out.path))
    except CheckpointError as error:
        raise ExportError(f"the copy cannot be read: {error}") from error
    differences = compare_with_plan(build_checkpoint(container), copy, plan)
    if differences:
        raise ExportError(f"the copy is not as planned: {differences[0]}")

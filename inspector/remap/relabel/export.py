"""From a plan to a file: the same checkpoint with other devices, at the cost of copying it.

A device is a few letters in the pickle. Where those do not grow, the copy is the source with its pickle
record overwritten; otherwise the records move, and their contents are still copied by the kernel.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from inspector.containers.container import Container
from inspector.containers.opening import open_path, read_container
from inspector.containers.source import FileSource, Source
from inspector.diff.same_bytes import SAMPLE_NBYTES, find_difference, sample_spans, total_nbytes
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import collector_paused
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.compare.planned import check_copy
from inspector.remap.convert.forms import refuse_suffix
from inspector.remap.files.destination import refuse_destination
from inspector.remap.files.outfile import OutFile, writing
from inspector.remap.plan import Plan, device_texts, with_viewed
from inspector.remap.relabel.formats import relabeling_of
from inspector.remap.relabel.rewrite import rewrite_pickle
from inspector.remap.relabel.writers import CopyWriter

if TYPE_CHECKING:
    from inspector.remap.compare.torch_check import TorchCheck

Verify = Literal["none", "quick", "full", "torch"]
"""How thoroughly a copy is checked, see `export_copy`."""
_COPIED_BY_NAME = frozenset({"darwin", "win32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A copy that was written.

    Attributes:
        destination: Where it stands.
        nbytes: Its size.
        moved_tensors: How many tensors have another device now.
        moved_hidden: How many devices outside of tensors are others now.
        kept_tensors: How many stayed on the CPU by design.
        in_one_piece: Whether no byte outside the pickle changed its place.
        verified: Whether the copy was opened again and compared.
        compared_nbytes: How many of the copied bytes were compared with the original's, one by one ...
        copied_nbytes: ... of how many.
        torch: What torch made of the copy, where it was asked.
    """

    destination: Path
    nbytes: int
    moved_tensors: int
    moved_hidden: int = 0
    kept_tensors: int
    in_one_piece: bool
    verified: bool
    compared_nbytes: int = 0
    copied_nbytes: int = 0
    torch: TorchCheck | None = None


def export_copy(  # noqa: PLR0913 - what, where, how, and how it is checked
    path: str,
    destination: Path,
    plan: Plan,
    *,
    overwrite: bool = False,
    verify: Verify = "quick",
    progress: Progress | None = None,
    python: str | None = None,
) -> Export:
    """Write a copy of a checkpoint with the devices of a plan.

    The plan must have been made from this very file. The source is only read; the copy appears once it is
    complete, synced and compared.

    Args:
        path: The checkpoint.
        destination: Where to write the copy.
        plan: What changes.
        overwrite: Whether a file that stands there may be replaced.
        verify: How the copy is checked before it appears: `quick` opens it again, compares all that it says
            and up to 32 MB of what was copied; `full` compares every byte; `torch` does what `quick` does and
            has torch load it; `none` trusts.
        progress: Told of the stages and of bytes, asked for cancellation.
        python: What names the Python whose torch loads it; None for the one that counts.
    """
    progress = progress or Progress()
    refuse_suffix(destination, "same")
    refuse_destination(path, destination, overwrite=overwrite)
    limits = DEFAULT_LIMITS
    with open_path(path, limits) as source:
        with collector_paused():
            container = read_container(source, limits, progress)
            relabeling = relabeling_of(container)
            plan = with_viewed(plan, container.storage_ids.values())
            # Of an archive of several pickles, each is rewritten when it is its turn.
            several = bool(container.pickles) or not relabeling.is_one_pickle
            pickle = b"" if several else rewrite_pickle(container.pickle(), plan, progress=progress)
        with writing(destination, like=source.status, overwrite=overwrite) as out:
            writer = CopyWriter(
                source=source,
                target=out.fd,
                pickle=pickle,
                limits=limits,
                progress=progress,
                clone=_cloner(source, out, progress),
            )
            in_one_piece = relabeling.write(container, writer, plan)
            source.refuse_changed("copied")
            devices = frozenset[str]() if verify == "none" else _verify(container, out, plan, progress)
            compared_nbytes = _compare_bytes(writer, out, verify)
            torch = _ask_torch(path, out, devices, progress, python) if verify == "torch" else None
            nbytes = os.fstat(out.fd).st_size
            progress.start("waiting for the disk")
    return Export(
        destination=destination,
        nbytes=nbytes,
        moved_tensors=len(plan.tensors),
        moved_hidden=len(plan.hidden),
        kept_tensors=len(plan.kept),
        in_one_piece=in_one_piece,
        verified=verify != "none",
        compared_nbytes=compared_nbytes,
        copied_nbytes=total_nbytes(writer.copied),
        torch=torch,
    )


def _verify(container: Container, out: OutFile, plan: Plan, progress: Progress) -> frozenset[str]:
    """Open the copy again and compare; return the devices it names."""
    progress.start("waiting for the disk")
    out.settle()
    progress.start("checking the copy")
    copy, difference = check_copy(container, str(out.path), plan, progress)
    if difference:
        raise ExportError(f"the copy is not as planned: {difference}")
    return device_texts(copy)


def _compare_bytes(writer: CopyWriter, out: OutFile, verify: Verify) -> int:
    """Compare what was copied, or samples of it; return how many bytes."""
    if verify == "none" or (writer.source.gzipped and verify != "full"):  # it had to be inflated again
        return 0
    spans = writer.copied if verify == "full" else sample_spans(writer.copied, SAMPLE_NBYTES)
    total = total_nbytes(spans)
    writer.progress.start("comparing bytes", total)
    with FileSource(str(out.path)) as copy:
        difference = find_difference(writer.source.read, copy.read, spans, writer.progress)
    if difference is not None:
        where = f"byte {difference.copy_offset:,}"
        raise ExportError(
            "the bytes of the copy differ from the file's", where=where, remedy="try another disk"
        )
    return total


def _ask_torch(
    path: str, out: OutFile, devices: frozenset[str], progress: Progress, python: str | None
) -> TorchCheck:
    from inspector.remap.compare.torch_check import check_with_torch  # noqa: PLC0415 - `subprocess` takes 8 ms

    found = check_with_torch(out, path, devices, progress, python)
    if found.is_bad:
        raise ExportError(f"torch does not load the copy as planned: {found.detail}", where=found.call)
    return found


def _cloner(source: Source, out: OutFile, progress: Progress) -> Callable[[], bool] | None:
    """Return what has the system copy the whole file, where it does that by name."""
    fd = source.fileno()
    if fd is None or sys.platform not in _COPIED_BY_NAME:
        return None
    from inspector.remap.files.cloning import Original, clone_by_name  # noqa: PLC0415 - ctypes takes 5 ms

    return lambda: clone_by_name(Original(fd=fd, path=source.path), out, progress)

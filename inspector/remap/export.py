"""From a plan to a file: the same checkpoint with other devices, at the cost of copying it.

A device is a few letters in the pickle. Where those do not grow, the copy is the source with its pickle
record overwritten; otherwise the records move, and their contents are still copied by the kernel.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.copying import write_bytes
from inspector.containers.formats import refuse_step
from inspector.containers.opening import open_path, read_container
from inspector.containers.source import FileSource
from inspector.diff.same_bytes import (
    SAMPLE_NBYTES,
    find_difference,
    hash_file,
    sample_spans,
    total_nbytes,
    whole_spans,
)
from inspector.errors import ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.files import OutFile, clone_by_name, explained, refuse_destination, writing
from inspector.remap.forms import refuse_suffix
from inspector.remap.plan import Plan, device_texts, plan_moves, with_viewed, without_nowhere
from inspector.remap.relabel import RELABELINGS, CopyWriter, relabeling_of, write_relabeled
from inspector.remap.rules import format_rule
from inspector.remap.verify import check_copy
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.remap.torch_check import TorchCheck

Verify = Literal["none", "quick", "full", "torch"]
"""How thoroughly a copy is checked, see `export_copy`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A copy that was written."""

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
        verify: How the copy is checked before it appears: `quick` opens it again, compares all that it says
            and up to 32 MB of what was copied; `full` compares every byte; `torch` does what `quick` does and
            has torch load it; `none` trusts.
        python: What names the Python whose torch loads it; None for the one that counts.
    """
    progress = progress or Progress()
    refuse_suffix(destination, "same")
    refuse_destination(path, destination, overwrite=overwrite)
    with open_path(path, DEFAULT_LIMITS) as source, collector_paused():
        container = read_container(source, DEFAULT_LIMITS, progress)
        plan = with_viewed(plan, container.storage_ids.values())
        relabeling_of(container)  # refuses what cannot be changed before anything is written
        with writing(destination, like=source.status, overwrite=overwrite) as out:
            fd = source.fileno() if sys.platform == "darwin" else None
            clone = None if fd is None else partial(clone_by_name, fd, out)
            writer = CopyWriter(source=source, target=out.fd, progress=progress, clone=clone)
            in_one_piece = write_relabeled(container, writer, plan)
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
    progress.start("waiting for the disk")
    out.settle()
    progress.start("checking the copy")
    copy, difference = check_copy(container, str(out.path), plan, progress)
    if difference:
        raise ExportError(f"the copy is not as planned: {difference}")
    return device_texts(copy)


def _compare_bytes(writer: CopyWriter, out: OutFile, verify: Verify) -> int:
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
    from inspector.remap.torch_check import check_with_torch  # noqa: PLC0415 - `subprocess` takes 8 ms

    found = check_with_torch(out, path, devices, progress, python)
    if found.is_bad:
        raise ExportError(f"torch does not load the copy as planned: {found.detail}", where=found.call)
    return found


# ------------------------------------------------------------------------------------------------------------
# A copy of a folder with other devices: each file of torch's with its part of the plan, others as they are.
#
# The new folder appears under its name once all of it is written, or not at all.

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
    """Write a copy of a folder with the devices of a plan."""
    progress = progress or Progress()
    root = _root_of(checkpoint.path)
    if not can_relabel(checkpoint):
        raise PlanError(
            "no file of this folder names a device, so there is none to change",
            where=checkpoint.path,
            remedy="the call that loads it decides; for torch.load write one file: "
            "export --format same -o model.pth",
        )
    refuse_step(checkpoint.format, "remap", checkpoint.path)
    plan = without_nowhere(checkpoint, plan)
    _refuse(root, destination)
    made = destination.with_name(f".{destination.name[:_MOST_NAME]}.{os.urandom(4).hex()}.part")
    try:
        with explained(destination):
            made.mkdir()
        written = list(_write(checkpoint, plan, made, verify=verify, progress=progress))
        with explained(destination):
            made.rename(destination)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    files = [file for file in destination.rglob("*") if file.is_file()]
    done = [one for *_, one in written if one is not None]
    return Export(
        destination=destination,
        nbytes=sum(file.stat().st_size for file in files),
        moved_tensors=len(plan.tensors),
        moved_hidden=sum(one.moved_hidden for one in done),
        kept_tensors=len(plan.kept),
        in_one_piece=all(one.in_one_piece for one in done),
        verified=all(one.verified for one in done),
        compared_nbytes=sum(compared for compared, *_ in written),
        copied_nbytes=sum(copied for _, copied, _ in written),
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
) -> Iterator[tuple[int, int, Export | None]]:
    """Write every file; yield how many bytes were compared and copied, and what became of torch's own."""
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
                yield *_copy_other(file, target / name, verify, progress), None
                continue
            own = _own_plan(checkpoint, plan, open_checkpoint(part, progress=progress))
            done = export_copy(part, target / name, own, verify=verify, progress=progress)
            yield done.compared_nbytes, done.copied_nbytes, done


def _copy_other(file: Path, copy: Path, verify: Verify, progress: Progress) -> tuple[int, int]:
    """Copy a file as it is and compare; return how many bytes were compared, and how many copied."""
    with explained(copy):
        shutil.copyfile(file, copy)
    with FileSource(str(file)) as source, FileSource(str(copy)) as other:
        spans = whole_spans(source, other, progress)
        some = [] if verify == "none" else sample_spans(spans, SAMPLE_NBYTES)
        compared = spans if verify == "full" else some
        if find_difference(source.read, other.read, compared, progress) is not None:
            raise ExportError("the bytes of a copied file differ from the original's", where=str(file))
    return total_nbytes(compared), total_nbytes(spans)


def _own_plan(checkpoint: Checkpoint, plan: Plan, own: Checkpoint) -> Plan:
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


# ------------------------------------------------------------------------------------------------------------
# What was done to a file and how it was checked, as a small JSON document to keep beside the copy.
#
# It says enough to prove later that a copy is the one that was made: `sha256sum` gives the same figures.
# Names are those of the files alone; where they lay is nobody's business.

SCHEMA = 1


def make_receipt(
    checkpoint: Checkpoint, plan: Plan, export: Export, version: str, progress: Progress | None = None
) -> dict[str, object]:
    """Return the receipt of a copy; both files are read once for their hashes."""
    progress = progress or Progress()
    rows = checkpoint.tensors
    moves = Counter((rows[index].device, to) for index, to in plan.tensors.items())
    return {
        "schema": SCHEMA,
        "program": f"checkpoint-inspector {version}",
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "original": _file(checkpoint.path, progress),
        "copy": _file(str(export.destination), progress),
        "plan": {
            "rules": [format_rule(rule) for rule in plan.rules],
            "moves": [{"from": there, "to": to, "tensors": n} for (there, to), n in moves.items()],
            "kept_on_cpu": len(plan.kept),
            "hidden_devices": len(plan.hidden),
        },
        "checks": {
            "opened_again": export.verified,
            "compared_nbytes": export.compared_nbytes,
            "copied_nbytes": export.copied_nbytes,
            "torch": _torch(export),
        },
        "versions": {"format": checkpoint.format, **dict(checkpoint.versions)},
    }


def refuse_receipt(receipt: Path, path: str, copy: Path) -> None:
    """Refuse to write a receipt over the file that was copied, or over the copy."""
    for other, what in ((Path(path), "file itself"), (copy, "copy")):
        if receipt.resolve() == other.resolve():
            raise ExportError(
                f"the receipt would replace the {what}",
                where=str(receipt),
                remedy="give it a name of its own",
            )


def write_receipt(receipt: dict[str, object], destination: Path, *, overwrite: bool = False) -> None:
    """Write a receipt; it appears whole or not at all."""
    data = json.dumps(receipt, indent=2).encode() + b"\n"
    like = os.stat_result((0o644, *(0,) * 9))
    with writing(destination, like=like, overwrite=overwrite, what="the receipt cannot be written") as out:
        write_bytes(out.fd, data)


def _file(path: str, progress: Progress) -> dict[str, object]:
    sha256 = hash_file(path, progress)
    return {"name": escape_text(Path(path).name), "nbytes": Path(path).stat().st_size, "sha256": sha256}


def _torch(export: Export) -> dict[str, object] | None:
    found = export.torch
    if found is None:
        return None
    return {
        "verdict": found.verdict,
        "detail": found.detail,
        "call": found.call,
        "version": found.torch,
        "tensors": found.tensors,
        "devices_not_tried": list(found.missing),
    }

"""What was done to a file and how it was checked, as a small JSON document to keep beside the copy.

It says enough to prove later that a copy is the one that was made: `sha256sum` gives the same figures. Names
are those of the files alone; where they lay is nobody's business.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

from inspector.containers.copying import write_bytes
from inspector.diff.same_bytes import hash_file
from inspector.errors import ExportError
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.remap.files.outfile import writing
from inspector.remap.plan import Plan
from inspector.remap.relabel.export import Export
from inspector.remap.rules import format_rule
from inspector.units import escape_text

SCHEMA = 1


def make_receipt(
    checkpoint: Checkpoint, plan: Plan, export: Export, version: str, progress: Progress | None = None
) -> dict[str, object]:
    """Return the receipt of a copy; both files are read once for their hashes.

    Args:
        checkpoint: The original, as it was opened.
        plan: What was planned.
        export: What came out.
        version: This program's version.
        progress: Told of bytes, asked for cancellation.
    """
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

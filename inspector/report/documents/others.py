"""What `recover`, `verify` and `snippet` say with `--json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inspector.report.jsonable import SCHEMA, Document

if TYPE_CHECKING:
    from inspector.remap.recover import Recovery
    from inspector.remap.verify import Comparison


def recover_document(path: str, output: str, done: Recovery) -> Document:
    """Return what was saved of a damaged file, and what is lost; `verdict` is that of the new file."""
    return {
        "schema": SCHEMA,
        "path": path,
        "output": output,
        "nbytes": done.nbytes,
        "tensors": done.tensors,
        "storages": done.storages,
        "storage_nbytes": done.storage_nbytes,
        "unchecked": done.unchecked,
        "verdict": done.verdict,
        "is_cut": done.is_cut,
        "lost_nbytes": done.lost_nbytes,
        "lost": [{**row._asdict(), "shape": list(row.shape)} for row in done.lost],
    }


def verify_document(path: str, against: str, found: Comparison) -> Document:
    """Return whether a copy is one, with the devices that differ."""
    return {
        "schema": SCHEMA,
        "path": path,
        "against": against,
        "same": found.is_same,
        "tensors": found.tensors,
        "compared_nbytes": found.compared_nbytes,
        "moves": [{"from": there, "to": here, "tensors": count} for there, here, count in found.moves],
        "moved_hidden": found.moved_hidden,
        "differences": list(found.differences),
    }


def snippet_document(
    path: str,
    code: str,
    *,
    style: str | None,
    styles: Iterable[str],
    unread: str | None = None,
) -> Document:
    """Return code that loads a file.

    Args:
        style: Its style; None where only one way of loading the file is known.
        unread: Why the file itself was not read, where the code is by its format alone.
    """
    return {
        "schema": SCHEMA,
        "path": path,
        "style": style,
        "styles": list(styles),
        "code": code,
        "unread": unread,
    }

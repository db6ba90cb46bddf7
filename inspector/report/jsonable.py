"""Documents of `--json`, exactly as the command line's contract fixes them (`schema` 1).

That of `show` is written piece by piece: a checkpoint of a hundred thousand tensors would otherwise be held
as dictionaries and once more as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from inspector.diagnose.findings.unreadable import diagnose_failure
from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint, Optimizer, Tensor, ValueRow
from inspector.model.findings import Finding, Fix
from inspector.model.roles.hidden import devices_outside
from inspector.model.totals import device_totals
from inspector.records import as_document, replace
from inspector.report.outline.node import Node, Tree, count_parameters
from inspector.safety.unread import judge_unread
from inspector.safety.verdict import SafetyVerdict

SCHEMA = 1
Document = dict[str, Any]
_BATCH = 4096
_encode = json.JSONEncoder(check_circular=False).encode  # of rows, none of which holds itself
_MOST_UNREAD = 1000
_MOST_BITS = 128


class Listed(NamedTuple):
    """Rows down to a level of the tree.

    Attributes:
        groups: The groups, with the sums of what is below.
    """

    tensors: tuple[Tensor, ...]
    values: tuple[ValueRow, ...]
    groups: tuple[Document, ...]


def cut_at(checkpoint: Checkpoint, tree: Tree, depth: int, only: Collection[int] | None = None) -> Listed:
    """Return the tensors and values of the rows that a tree shows down to a level, and its groups.

    Args:
        only: The ids of the rows that were searched for; None for all.
    """
    from inspector.report.page import tree_rows  # noqa: PLC0415 - without a level nothing of a tree is needed

    sought = None if only is None else frozenset(only)
    tensors, values, groups = list[int](), list[int](), list[Document]()
    for id_, _ in tree_rows(tree, depth, only).rows:
        node = tree.nodes[id_]
        if node.kind == "group":
            groups.append(row_document(checkpoint, node))
        elif node.index >= 0 and (sought is None or id_ in sought):
            (tensors if node.kind == "tensor" else values).append(node.index)
    return Listed(
        tuple(checkpoint.tensors[index] for index in sorted(tensors)),
        tuple(checkpoint.values[index] for index in sorted(values)),
        tuple(groups),
    )


def finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    """Return a value of a document with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list) else value


def write_show(
    checkpoint: Checkpoint,
    safety: SafetyVerdict,
    findings: tuple[Finding, ...],
    *,
    open_seconds: float,
    listed: Listed | None = None,
) -> Iterator[str]:
    """Yield the document of `show --json` for one file, as `json.dumps` would write it, in pieces.

    Args:
        checkpoint: What the file holds, or what of it was searched for.
        listed: What of it is listed; None for all.
    """
    yield json.dumps(_head(checkpoint, open_seconds))[:-1]
    yield ', "tensors": ['
    yield from _texts(map(_tensor, (listed or checkpoint).tensors))
    yield '], "storages": ['
    yield from _texts(_storages(checkpoint))
    yield f'], "devices": {json.dumps(_devices(checkpoint))}, "values": ['
    yield from _texts(map(_value, (listed or checkpoint).values))
    if listed is not None:
        yield '], "groups": ['
        yield from _texts(listed.groups)
    yield f"], {json.dumps(_tail(checkpoint, safety, findings))[1:]}"


def row_document(checkpoint: Checkpoint, node: Node) -> Document:
    """Return a row of the tree as `show --json` has it; of a group its path, and what is below it."""
    if node.kind == "tensor":
        return _tensor(checkpoint.tensors[node.index])
    if node.kind == "value":
        return _value(checkpoint.values[node.index])
    return {
        "path": node.path,
        "tensors": node.tensors,
        "parameters": _countable(node.parameters),
        "nbytes": _countable(node.nbytes),
        "devices": {device: _countable(nbytes) for device, nbytes in node.devices},
    }


def _countable(count: int) -> int | None:
    """Return a count that Python writes out; null for a product of sizes without end."""
    return count if count.bit_length() <= _MOST_BITS else None


def error_document(path: str | None, error: CheckpointError) -> Document:
    """Return the document that stands in place of an answer about a file; the path is null for none."""
    return {
        "schema": SCHEMA,
        "path": path,
        "error": {"kind": error.kind, "message": error.what, "where": error.where},
        "safety": _unread(error),
        "findings": [finding_document(finding) for finding in diagnose_failure(error)],
    }


def _unread(error: CheckpointError) -> Document | None:
    """Return what was seen of what loading the file would run; None where nothing was."""
    seen = judge_unread(error)
    if seen is None:
        return None
    return {
        "verdict": seen.verdict,
        "weights_only": False,
        "globals_to_allow": [],
        "globals": [
            {"name": name, "count": count, "verdict": verdict}
            for name, count, verdict in seen.names[:_MOST_UNREAD]
        ],
        "calls": [row.text for row in seen.calls[:_MOST_UNREAD]],
        "complete": seen.is_whole,
    }


def finding_document(finding: Finding) -> Document:
    """Return one finding."""
    named = replace(finding, everywhere=())  # `paths` has a few
    document = {**as_document(named), "fix": None if finding.fix is None else fix_document(finding.fix)}
    del document["everywhere"]
    return document


def fix_document(fix: Fix) -> Document:
    """Return what fixes a finding: a map rule, an option of `torch.load`, a style of `snippet`, `recover`."""
    if fix.option is not None:
        return {"kind": "option", "option": fix.option[0], "value": fix.option[1]}
    if fix.recovers:
        return {"kind": "recover"}
    return {"kind": "style", "style": fix.style} if fix.style else {"kind": "rule", "map": fix.rule}


# --- parts of a document ------------------------------------------------------------------------------------


def _head(checkpoint: Checkpoint, open_seconds: float) -> Document:
    parts = [{"path": part.path, "nbytes": part.nbytes} for part in checkpoint.parts]
    return {
        "schema": SCHEMA,
        "path": checkpoint.path,
        "format": checkpoint.format,
        "file_nbytes": checkpoint.file_nbytes,
        "parameters": _countable(count_parameters(checkpoint)),
        **({"parts": parts} if parts else {}),
        "open_seconds": round(open_seconds, 6),
    }


def _tail(checkpoint: Checkpoint, safety: SafetyVerdict, findings: tuple[Finding, ...]) -> Document:
    return {
        "globals": [
            {"name": use.name, "count": use.count, "verdict": verdict}
            for use, verdict in zip(checkpoint.globals, safety.globals, strict=True)
        ],
        "safety": {
            "verdict": safety.verdict,
            "weights_only": safety.weights_only,
            "globals_to_allow": list(safety.to_allow),
        },
        "hidden_devices": [as_document(row) for row in devices_outside(checkpoint)],
        "versions": dict(checkpoint.versions),
        "optimizers": [_optimizer(row) for row in checkpoint.optimizers],
        "findings": [finding_document(finding) for finding in findings],
    }


def _optimizer(row: Optimizer) -> Document:
    """Return how the slots of an optimizer came by the names of their parameters."""
    return {
        "path": row.path,
        "parameters": row.parameters,
        "with_state": row.with_state,
        "naming": row.naming,
        "detail": row.detail,
        "models": list(row.models),
    }


def _devices(checkpoint: Checkpoint) -> list[Document]:
    # Field by field: a file can name as many devices as it has tensors.
    return [
        {"device": row.device, "tensors": row.tensors, "storages": row.storages, "nbytes": row.nbytes}
        for row in device_totals(checkpoint)
    ]


# --- rows, one after the other ------------------------------------------------------------------------------


def _texts(rows: Iterable[Document]) -> Iterator[str]:
    """Yield rows as JSON, some thousands at once."""
    waiting, separator = iter(rows), ""
    while batch := list(islice(waiting, _BATCH)):
        yield separator + _encode(batch)[1:-1]
        separator = ", "


def _tensor(row: Tensor) -> Document:
    return {
        "path": row.path,
        "keys": row.keys,
        "device": row.device,
        "dtype": row.dtype,
        "shape": row.shape,
        "stride": row.stride,
        "storage_offset": row.storage_offset,
        "layout": row.layout,
        "requires_grad": row.requires_grad,
        "nbytes": row.nbytes,
        "storage": row.storage,
        "role": row.role,
        "parameter": row.parameter,
        "slot": row.slot,
    }


def _storages(checkpoint: Checkpoint) -> Iterator[Document]:
    """Yield the storages; where there are several files, each with the number of its own."""
    numbers = {part.path: number for number, part in enumerate(checkpoint.parts)}
    for row in checkpoint.storages:
        chunks = [
            {"part": numbers.get(piece.part), "offset": piece.starts, "shape": piece.sizes}
            for piece in row.pieces
        ]
        yield {
            "key": row.key,
            "device": row.device,
            "dtype": row.dtype,
            "nbytes": row.nbytes,
            "file_offset": row.file_offset,
            **({"part": numbers[row.part]} if row.part else {}),
            **({"chunks": chunks} if chunks else {}),
        }


def _value(row: ValueRow) -> Document:
    return {"path": row.path, "type": row.type, "text": row.text}

"""Documents of `--json`, exactly as the command line's contract fixes them (`schema` 1).

That of `show` is written piece by piece: a checkpoint of a hundred thousand tensors would otherwise be held
as dictionaries and once more as text, and take twice the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from json.encoder import encode_basestring_ascii as quote
from typing import Any, NamedTuple

from inspector.diagnose.findings.unreadable import diagnose_failure
from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint, Key, Optimizer, Storage, Tensor, ValueRow
from inspector.model.findings import Finding, Fix
from inspector.model.roles.hidden import devices_outside
from inspector.model.totals import device_totals
from inspector.records import as_document
from inspector.report.outline.node import Node, count_parameters
from inspector.safety.unread import judge_unread
from inspector.safety.verdict import SafetyVerdict

SCHEMA = 1
Document = dict[str, Any]
_BATCH = 4096
_MOST_UNREAD = 1000
_MOST_BITS = 128


class Listed(NamedTuple):
    """Rows down to a level of the tree.

    Attributes:
        groups: The groups, each as JSON, with the sums of what is below.
    """

    tensors: tuple[Tensor, ...]
    values: tuple[ValueRow, ...]
    groups: tuple[str, ...]


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
    yield from _joined(_tensor_texts((listed or checkpoint).tensors))
    yield '], "storages": ['
    yield from _joined(_storage_texts(checkpoint))
    yield f'], "devices": {json.dumps(_devices(checkpoint))}, "values": ['
    yield from _joined(map(_value_text, (listed or checkpoint).values))
    if listed is not None:
        yield '], "groups": ['
        yield from _joined(iter(listed.groups))
    yield f"], {json.dumps(_tail(checkpoint, safety, findings))[1:]}"


def row_text(checkpoint: Checkpoint, node: Node) -> str:
    """Return a row of the tree as `show --json` writes it; of a group its path, and what is below it."""
    if node.kind == "tensor":
        (text,) = _tensor_texts([checkpoint.tensors[node.index]])
        return text
    if node.kind == "value":
        return _value_text(checkpoint.values[node.index])
    return json.dumps(
        {
            "path": node.path,
            "tensors": node.tensors,
            "parameters": _countable(node.parameters),
            "nbytes": _countable(node.nbytes),
            "devices": {device: _countable(nbytes) for device, nbytes in node.devices},
        }
    )


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
    return {**as_document(finding), "fix": None if finding.fix is None else fix_document(finding.fix)}


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


# --- the same as text ---------------------------------------------------------------------------------------


def _joined(rows: Iterator[str]) -> Iterator[str]:
    separator = ""
    while batch := ", ".join(islice(rows, _BATCH)):
        yield separator + batch
        separator = ", "


def _tensor_texts(tensors: Iterable[Tensor]) -> Iterator[str]:
    """Yield the rows; what lies in the middle of one is often the same as in the row before."""
    known: tuple[object, ...] | None = None
    middle = ""
    for tensor in tensors:
        keys, path, storage, role = tensor[0], tensor[1], tensor[10], tensor[11]
        facts = tensor[2:10]
        if facts != known:
            known, middle = facts, _facts_text(tensor)
        yield (
            f'{{"path": {quote(path)}, "keys": [{_keys_text(keys)}], {middle}, "storage": {_text(storage)}, '
            f'"role": "{role}", "parameter": {_text(tensor.parameter)}, "slot": {_text(tensor.slot)}}}'
        )


def _facts_text(tensor: Tensor) -> str:
    _, _, device, dtype, shape, stride, offset, layout, grad, nbytes, *_ = tensor
    steps = "null" if stride is None else list(stride)
    return (
        f'"device": {quote(device)}, "dtype": "{dtype}", "shape": {list(shape)}, "stride": {steps}, '
        f'"storage_offset": {"null" if offset is None else offset}, "layout": {quote(layout)}, '
        f'"requires_grad": {"true" if grad else "false"}, "nbytes": {nbytes}'
    )


def _storage_texts(checkpoint: Checkpoint) -> Iterator[str]:
    """Yield the storages; where there are several files, each with the number of its own."""
    numbers = {part.path: number for number, part in enumerate(checkpoint.parts)}
    for storage in checkpoint.storages:
        key, device, dtype, nbytes, offset, *_ = storage
        part = f', "part": {numbers[storage.part]}' if storage.part else ""
        chunks = _chunks_text(storage, numbers) if storage.pieces else ""
        yield (
            f'{{"key": {quote(key)}, "device": {quote(device)}, "dtype": "{dtype}", "nbytes": {nbytes}, '
            f'"file_offset": {"null" if offset is None else offset}{part}{chunks}}}'
        )


def _chunks_text(storage: Storage, numbers: Mapping[str, int]) -> str:
    """Return what a storage is put together from: files by their numbers, and boxes of the tensor."""
    chunks = (
        f'{{"part": {numbers.get(piece.part, "null")}, "offset": {list(piece.starts)}, '
        f'"shape": {list(piece.sizes)}}}'
        for piece in storage.pieces
    )
    return f', "chunks": [{", ".join(chunks)}]'


def _value_text(value: ValueRow) -> str:
    return f'{{"path": {quote(value.path)}, "type": {quote(value.type)}, "text": {quote(value.text)}}}'


def _keys_text(keys: Iterable[Key]) -> str:
    return ", ".join([quote(key) if isinstance(key, str) else str(key) for key in keys])


def _text(text: str | None) -> str:
    return "null" if text is None else quote(text)

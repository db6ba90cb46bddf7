"""Documents of `--json`, exactly as the command line's contract fixes them (`schema` 1)."""

from __future__ import annotations

from typing import Any

from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint, Storage, Tensor
from inspector.model.findings import Finding
from inspector.model.totals import device_totals
from inspector.safety.verdict import SafetyVerdict

SCHEMA = 1
Document = dict[str, Any]


def show_document(
    checkpoint: Checkpoint, safety: SafetyVerdict, findings: tuple[Finding, ...], *, open_seconds: float
) -> Document:
    """Give the document of `show --json` for one file."""
    return {
        "schema": SCHEMA,
        "path": checkpoint.path,
        "format": checkpoint.format,
        "file_nbytes": checkpoint.file_nbytes,
        "open_seconds": round(open_seconds, 6),
        "tensors": [_tensor(tensor) for tensor in checkpoint.tensors],
        "storages": [_storage(storage) for storage in checkpoint.storages],
        "devices": [
            {"device": row.device, "tensors": row.tensors, "storages": row.storages, "nbytes": row.nbytes}
            for row in device_totals(checkpoint)
        ],
        "values": [
            {"path": value.path, "type": value.type, "text": value.text} for value in checkpoint.values
        ],
        "globals": [
            {"name": use.name, "count": use.count, "verdict": verdict}
            for use, verdict in zip(checkpoint.globals, safety.globals, strict=True)
        ],
        "safety": {
            "verdict": safety.verdict,
            "weights_only": safety.weights_only,
            "globals_to_allow": list(safety.to_allow),
        },
        "versions": dict(checkpoint.versions),
        "findings": [finding_document(finding) for finding in findings],
    }


def error_document(path: str, error: CheckpointError) -> Document:
    """Give the document of `show --json` for a file that cannot be read."""
    return {
        "schema": SCHEMA,
        "path": path,
        "error": {"kind": error.kind, "message": error.what, "where": error.where},
        "findings": [],
    }


def finding_document(finding: Finding) -> Document:
    """Give one finding."""
    return {
        "id": finding.id,
        "severity": finding.severity,
        "title": finding.title,
        "detail": finding.detail,
        "paths": list(finding.paths),
        "count": finding.count,
        "fix": None if finding.fix is None else {"map": finding.fix.rule},
    }


def _tensor(tensor: Tensor) -> Document:
    return {
        "path": tensor.path,
        "keys": tensor.keys,
        "device": tensor.device,
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "stride": tensor.stride,
        "storage_offset": tensor.storage_offset,
        "layout": tensor.layout,
        "requires_grad": tensor.requires_grad,
        "nbytes": tensor.nbytes,
        "storage": tensor.storage,
        "role": tensor.role,
        "parameter": tensor.parameter,
        "slot": tensor.slot,
    }


def _storage(storage: Storage) -> Document:
    return {
        "key": storage.key,
        "device": storage.device,
        "dtype": storage.dtype,
        "nbytes": storage.nbytes,
        "file_offset": storage.file_offset,
    }

"""The document of `show --json` as plain values: what `write_show` has to write."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, Piece, Storage, Tensor, ValueRow
from inspector.model.findings import Finding
from inspector.report import jsonable
from inspector.report.jsonable import Document
from inspector.safety.verdict import SafetyVerdict


def show_document(
    checkpoint: Checkpoint, safety: SafetyVerdict, findings: tuple[Finding, ...], *, open_seconds: float
) -> Document:
    return {
        **jsonable._head(checkpoint, open_seconds),
        "tensors": [_tensor(tensor) for tensor in checkpoint.tensors],
        "storages": [_storage(storage, checkpoint) for storage in checkpoint.storages],
        "devices": jsonable._devices(checkpoint),
        "values": [_value(value) for value in checkpoint.values],
        **jsonable._tail(checkpoint, safety, findings),
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


def _storage(storage: Storage, checkpoint: Checkpoint) -> Document:
    paths = [part.path for part in checkpoint.parts]
    return {
        "key": storage.key,
        "device": storage.device,
        "dtype": storage.dtype,
        "nbytes": storage.nbytes,
        "file_offset": storage.file_offset,
        **({"part": paths.index(storage.part)} if storage.part else {}),
        **({"chunks": [_chunk(piece, paths) for piece in storage.pieces]} if storage.pieces else {}),
    }


def _value(value: ValueRow) -> Document:
    return {"path": value.path, "type": value.type, "text": value.text}


def _chunk(piece: Piece, paths: list[str]) -> Document:
    return {
        "part": paths.index(piece.part) if piece.part else None,
        "offset": list(piece.starts),
        "shape": list(piece.sizes),
    }

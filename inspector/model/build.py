"""From a container to a checkpoint: the one way into the model, used by everything that opens a file."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from inspector.containers.base import Container
from inspector.containers.sniff import read_container
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.checkpoint import Checkpoint, GlobalUse, Key, Optimizer, Safety, Storage, Tensor
from inspector.model.dtypes import stored_nbytes
from inspector.model.naming import Names, Shape, Shapes, name_parameters, slot_shape
from inspector.model.optimizer import OptimizerDraft
from inspector.model.shapes import mapping_pairs
from inspector.model.tensors import describe_tensor
from inspector.model.texts import step_text, type_of
from inspector.model.walk import Findings, TensorDraft, walk
from inspector.pickles.instructions import OPCODES
from inspector.pickles.machine import Stream
from inspector.pickles.values import Call, Dict, Value
from inspector.progress import Progress
from inspector.units import escape_text

_Slots = dict[Key, list[tuple[str, Shape]]]
_NESTED_METADATA = frozenset({("sizes",), ("strides",), ("offsets",)})
_MESH_RANKS = frozenset({(".mesh", "._rank_map"), (".mesh", ".mesh")})  # its name today and its former one


def open_checkpoint(path: str, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None) -> Checkpoint:
    """Open a file and describe it wholly, without executing anything in it or reading any weights.

    Raises:
        CheckpointError: The file is missing, no checkpoint, of a format that is not read, or damaged.
        CancelledError: The work was cancelled.
    """
    with collector_paused():
        progress = progress or Progress()
        return build_checkpoint(read_container(path, limits, progress), limits, progress)


def build_checkpoint(
    container: Container, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
) -> Checkpoint:
    """Describe what a container holds.

    Raises:
        ModelError: It holds more rows than the limits allow.
        CancelledError: The work was cancelled.
    """
    progress = progress or Progress()
    progress.start("listing tensors")
    stream = container.stream
    found = walk(stream.root, limits, progress)
    names = _name_optimizers(found)
    tensors = _tensor_rows(found, names)
    return Checkpoint(
        path=container.path,
        format=container.format,
        file_nbytes=container.file_nbytes,
        tensors=tensors,
        storages=_storage_rows(container, tensors),
        values=tuple(found.values),
        globals=tuple(GlobalUse(name=escape_text(node.dotted), count=node.count) for node in stream.globals),
        hidden_devices=tuple(found.hidden_devices),
        optimizers=tuple(_optimizer_row(draft, names[number]) for number, draft in enumerate(found.optimizers)),
        versions=container.versions,
        root=_kind_of_root(stream.root),
        module_class=_module_class(stream.root),
        safety=_safety(stream),
        notes=container.notes + _notes(found),
    )


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cycle collector from walking over millions of young values again and again (it doubles the time)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# --- tensors ------------------------------------------------------------------------------------------------


def _tensor_rows(found: Findings, names: list[Names]) -> tuple[Tensor, ...]:
    rows: list[Tensor] = []
    for draft in found.tensors:
        whole = None if draft.part_of is None else rows[draft.part_of]
        rows.append(_tensor_row(draft, found, names, whole))
    return tuple(rows)


def _tensor_row(draft: TensorDraft, found: Findings, names: list[Names], whole: Tensor | None) -> Tensor:
    facts = draft.facts
    parameter: str | None = None
    slot: str | None = None
    by_design = draft.role == "rng"
    if draft.optimizer is not None:
        optimizer = found.optimizers[draft.optimizer]
        owner, slot = _slot_of(optimizer, draft.keys)
        if owner is not None and slot is not None:
            parameter = names[draft.optimizer].by_id.get(owner)
            by_design = facts.numel == 1 and optimizer.is_kept_on_cpu(owner, slot)
    if whole is not None:
        by_design = whole.on_cpu_by_design or is_metadata_on_cpu(whole, draft.keys)
    storage = facts.storage.key if facts.storage is not None else None
    return Tensor(
        keys=draft.keys,
        path=draft.path,
        device=facts.device,
        dtype=facts.dtype,
        shape=facts.shape,
        stride=facts.stride,
        storage_offset=facts.offset,
        layout=facts.layout,
        requires_grad=facts.requires_grad,
        nbytes=facts.nbytes,
        storage=storage,
        role=draft.role,
        parameter=parameter,
        slot=slot,
        part_of=draft.part_of,
        on_cpu_by_design=by_design,
        problem=facts.problem,
    )


def is_metadata_on_cpu(whole: Tensor, keys: tuple[Key, ...]) -> bool:
    """Say whether a part of a tensor only describes it, and must lie on the CPU wherever the tensor is.

    These are the sizes, strides and offsets of nested tensors (`NestedTensorImpl` in torch's
    `aten/src/ATen/NestedTensorImpl.cpp`) and the ranks of a DTensor's mesh (`torch/distributed/device_mesh.py`).
    """
    if whole.layout == "nested":
        return keys[len(whole.keys) :] in _NESTED_METADATA
    return keys[-2:] in _MESH_RANKS


def _slot_of(optimizer: OptimizerDraft, keys: tuple[Key, ...]) -> tuple[Key | None, str | None]:
    """Split a path below an optimizer into the parameter's number and the slot's name."""
    below = keys[len(optimizer.keys) :]
    if len(below) < 3 or below[0] != "state":
        return None, None
    return below[1], "/".join(step_text(step) for step in below[2:])


def _name_optimizers(found: Findings) -> list[Names]:
    slots: list[_Slots] = [defaultdict(list) for _ in found.optimizers]
    for draft in found.tensors:
        if draft.optimizer is not None and draft.part_of is None:
            owner, slot = _slot_of(found.optimizers[draft.optimizer], draft.keys)
            if owner is not None and slot is not None:
                slots[draft.optimizer][owner].append((slot, draft.facts.shape))
    return [
        name_parameters(optimizer, _known_shapes(slots[number]), found.models)
        for number, optimizer in enumerate(found.optimizers)
    ]


def _known_shapes(slots: _Slots) -> Shapes:
    shapes = {owner: slot_shape(found) for owner, found in slots.items()}
    return {owner: shape for owner, shape in shapes.items() if shape is not None}


def _optimizer_row(draft: OptimizerDraft, names: Names) -> Optimizer:
    return Optimizer(
        path=draft.path,
        keys=draft.keys,
        parameters=sum(len(group.ids) for group in draft.groups),
        with_state=len(draft.state_ids),
        naming=names.naming,
        detail=names.detail,
        capturable=any(group.capturable for group in draft.groups),
    )


# --- storages -----------------------------------------------------------------------------------------------


def _storage_rows(container: Container, tensors: tuple[Tensor, ...]) -> tuple[Storage, ...]:
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for tensor in tensors:
        if tensor.storage is not None:
            counts[tensor.storage] += 1
            spans[tensor.storage].append(_viewed_span(tensor))
    rows = []
    for key, storage_id in container.storage_ids.items():
        stored = container.stored.get(key)
        rows.append(
            Storage(
                key=key,
                device=storage_id.location,
                dtype=storage_id.dtype,
                nbytes=storage_id.nbytes if stored is None else stored.nbytes,
                file_offset=None if stored is None else stored.file_offset,
                missing=stored is None,
                viewed_nbytes=_length_of_union(spans[key]),
                tensors=counts[key],
            )
        )
    return tuple(rows)


def _viewed_span(tensor: Tensor) -> tuple[int, int]:
    """Give the bytes of its storage that a tensor spans, holes of a strided view included."""
    if tensor.stride is None or tensor.storage_offset is None or tensor.problem is not None:
        return 0, tensor.nbytes
    start = stored_nbytes(tensor.dtype, tensor.storage_offset)
    if 0 in tensor.shape:
        return start, start
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride, strict=True))
    return start, start + stored_nbytes(tensor.dtype, last + 1)


def _length_of_union(spans: list[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


# --- the rest -----------------------------------------------------------------------------------------------


def _kind_of_root(root: Value) -> str:
    facts = describe_tensor(root)
    if facts is not None:
        return "tensor"
    if _module_class(root) is not None:
        return "module"
    if isinstance(root, Dict) or (isinstance(root, Call) and root.pairs is not None):
        return "mapping"
    if isinstance(root, list | tuple):
        return "sequence"
    return "object" if isinstance(root, Call) else "value"


def _module_class(root: Value) -> str | None:
    """Give the class of a whole pickled `nn.Module`, told by the dictionaries that every module has."""
    if not isinstance(root, Call):
        return None
    names = [key for key, _ in mapping_pairs(root.state) or [] if isinstance(key, str)]
    return type_of(root) if "_parameters" in names and "_modules" in names else None


def _safety(stream: Stream) -> Safety:
    return Safety(
        opcodes=tuple(sorted(OPCODES[code].name for code in stream.opcodes)),
        protocol=stream.protocol,
        oddities=tuple(str(note) for note in stream.notes),
    )


def _notes(found: Findings) -> tuple[str, ...]:
    if not found.too_deep:
        return ()
    return (f"{found.too_deep:,} values are nested too deeply to be shown.",)

"""Facts about one tensor, and about the file, as titled lists of plain text."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.model.checkpoint import Checkpoint, Storage, Tensor, Value
from inspector.model.totals import wasted_nbytes
from inspector.safety.verdict import SafetyVerdict
from inspector.units import escape_text, format_count, format_nbytes, format_shape

_MOST_LISTED = 40
_ROLES = {
    "parameter": "parameter",
    "buffer": "buffer",
    "optimizer": "optimizer state",
    "scheduler": "scheduler state",
    "rng": "random generator state",
    "ema": "averaged weights (EMA)",
    "other": "other data",
}
_VERDICTS = {
    "weights-only": "loads with weights_only=True",
    "needs-allow-list": "needs names allowed for weights_only=True",
    "runs-code": "loads only with weights_only=False",
    "dangerous": "can run commands when loaded",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactGroup:
    """A titled list of (label, value) facts, all plain text."""

    title: str
    facts: tuple[tuple[str, str], ...]


def tensor_facts(checkpoint: Checkpoint, index: int) -> tuple[FactGroup, ...]:
    """Give all that is known of a tensor without reading its data."""
    tensor = checkpoint.tensors[index]
    groups = [
        FactGroup(title="Tensor", facts=tuple(_about(tensor))),
        FactGroup(title="Layout", facts=tuple(_layout(tensor))),
    ]
    storage = next((row for row in checkpoint.storages if row.key == tensor.storage), None)
    if storage is not None:
        groups.append(FactGroup(title="Storage", facts=tuple(_storage(storage))))
        others = [row.path for row in checkpoint.tensors if row.storage == storage.key and row is not tensor]
        if others:
            rows = tuple(("", path) for path in others[:_MOST_LISTED])
            groups.append(
                FactGroup(title=f"Shares its bytes with {format_count(len(others), 'tensor')}", facts=rows)
            )
    return tuple(groups)


def value_facts(value: Value) -> tuple[FactGroup, ...]:
    """Give what is known of a value that is no tensor."""
    return (
        FactGroup(title="Value", facts=(("Path", value.path), ("Type", value.type), ("Value", value.text))),
    )


def file_facts(checkpoint: Checkpoint, safety: SafetyVerdict) -> tuple[FactGroup, ...]:
    """Give what is known of the file."""
    written = written_by(checkpoint)
    rows = [
        ("Path", escape_text(checkpoint.path)),
        ("Size", f"{format_nbytes(checkpoint.file_nbytes)} ({checkpoint.file_nbytes:,} bytes)"),
        ("Container", f"{checkpoint.format}{f', {written}' if written else ''}"),
        ("Tensors", f"{len(checkpoint.tensors):,} in {format_count(len(checkpoint.storages), 'storage')}"),
        ("Stored but unused", format_nbytes(wasted_nbytes(checkpoint.storages))),
    ]
    if checkpoint.module_class:
        rows.append(("Whole module", checkpoint.module_class))
    groups = [FactGroup(title="File", facts=tuple(rows))]
    if checkpoint.versions:
        groups.append(FactGroup(title="Versions in the file", facts=tuple(_plain(checkpoint.versions))))
    if checkpoint.optimizers:
        named = tuple((row.path or "(root)", f"{row.detail} [{row.naming}]") for row in checkpoint.optimizers)
        groups.append(FactGroup(title="Optimizers", facts=named))
    verdict = (("Verdict", _VERDICTS[safety.verdict]), *(("", reason) for reason in safety.reasons))
    groups.append(FactGroup(title=f"Safety, by the rules of torch {safety.torch_version}", facts=verdict))
    names = tuple(
        (use.name, f"{verdict}, {use.count:,} \u00d7")
        for use, verdict in zip(checkpoint.globals, safety.globals, strict=True)
    )
    if names:
        groups.append(FactGroup(title="Names that loading imports", facts=names[:_MOST_LISTED]))
    if checkpoint.notes:
        groups.append(FactGroup(title="Notes", facts=tuple(("", note) for note in checkpoint.notes)))
    return tuple(groups)


def written_by(checkpoint: Checkpoint) -> str:
    """Say which torch wrote the file, as far as its container tells."""
    versions = dict(checkpoint.versions)
    if checkpoint.format == "legacy":
        return "the format of torch before 1.6"
    if ".format_version" in versions:
        return "torch 2.7 or later"
    if "byteorder" in versions:
        return "torch 2.1 to 2.6"
    return {"3": "torch 1.6 to 2.0", "2": "torch 1.5", "1": "torch 1.4"}.get(versions.get("version", ""), "")


def _about(tensor: Tensor) -> list[tuple[str, str]]:
    rows = [
        ("Path", tensor.path or "(root)"),
        ("Python", python_expression(tensor)),
        ("Device", tensor.device),
        ("Role", _ROLES[tensor.role]),
    ]
    if tensor.slot is not None:
        rows.append(("Slot", tensor.slot))
        rows.append(
            ("Parameter", escape_text(tensor.parameter) if tensor.parameter is not None else "not certain")
        )
    if tensor.on_cpu_by_design:
        rows.append(("On the CPU", "by design: torch keeps this state there"))
    if tensor.problem is not None:
        rows.append(("Problem", tensor.problem))
    return rows


def _layout(tensor: Tensor) -> list[tuple[str, str]]:
    rows = [
        ("Shape", format_shape(tensor.shape)),
        ("Type", tensor.dtype),
        ("Size", f"{format_nbytes(tensor.nbytes)} ({tensor.nbytes:,} bytes)"),
        ("Layout", tensor.layout),
    ]
    if tensor.stride is not None:
        rows.append(("Stride", f"({', '.join(str(step) for step in tensor.stride)})"))
    if tensor.storage_offset is not None:
        rows.append(("Offset", format_count(tensor.storage_offset, "element")))
    rows.append(("Requires grad", "yes" if tensor.requires_grad else "no"))
    return rows


def _storage(storage: Storage) -> list[tuple[str, str]]:
    place = "missing from the file" if storage.missing else "compressed"
    return [
        ("Key", escape_text(storage.key)),
        ("Location tag", escape_text(storage.device)),
        ("Stored", f"{format_nbytes(storage.nbytes)} ({storage.nbytes:,} bytes)"),
        ("At byte", f"{storage.file_offset:,}" if storage.file_offset is not None else place),
        ("Unused", format_nbytes(max(storage.nbytes - storage.viewed_nbytes, 0))),
    ]


def python_expression(tensor: Tensor) -> str:
    """Give the Python expression that reaches a tensor in the loaded checkpoint, in ASCII."""
    steps = []
    for key in tensor.keys:
        attribute = isinstance(key, str) and key.startswith(".") and key[1:].isidentifier()
        steps.append(ascii(key)[1:-1] if attribute else f"[{key!a}]")
    return "checkpoint" + "".join(steps)


def _plain(pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return [(escape_text(name), escape_text(text)) for name, text in pairs]

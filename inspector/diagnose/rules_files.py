"""Rules about the file itself: damage, waste, names, and what loading would import."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inspector.diagnose.base import Case, Rule
from inspector.model.findings import Finding, finding
from inspector.model.totals import wasted_nbytes
from inspector.units import format_count, format_nbytes

_WASTE_NBYTES = 1 << 20
_NEWEST_ZIP_VERSION = 10


def _truncated(case: Case) -> Iterator[Finding]:
    """Point at tensors whose bytes are not in the file, or that do not fit into them."""
    missing = {storage.key for storage in case.checkpoint.storages if storage.missing and storage.nbytes}
    lost = [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in missing]
    if lost:
        yield finding(
            "truncated",
            "error",
            "Bytes of some tensors are missing",
            "The file ends early or lost records, so torch.load stops. Fetch or copy it again.",
            lost,
        )
    wrong = [tensor for tensor in case.checkpoint.tensors if tensor.problem is not None]
    if wrong:
        yield finding(
            "invalid-tensor",
            "error",
            "Tensors whose description cannot be true",
            f"For example {wrong[0].path}: {wrong[0].problem}.",
            [tensor.path for tensor in wrong],
        )


def _oversized(case: Case) -> Iterator[Finding]:
    """Point at storages of which most is viewed by no tensor."""
    wasteful = [
        storage
        for storage in case.checkpoint.storages
        if storage.tensors
        and storage.nbytes - storage.viewed_nbytes > max(_WASTE_NBYTES, storage.viewed_nbytes)
    ]
    keys = {storage.key for storage in wasteful}
    if keys:
        yield finding(
            "oversized-storage",
            "warning",
            f"{format_nbytes(wasted_nbytes(wasteful))} are stored that no tensor uses",
            "Small views of large tensors were saved: torch.save writes the whole storage. Save a clone() of each.",
            [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in keys],
        )


def _shared(case: Case) -> Iterator[Finding]:
    """Name tensors that share their bytes."""
    by_storage: dict[str, list[str]] = defaultdict(list)
    for tensor in case.checkpoint.tensors:
        if tensor.storage is not None:
            by_storage[tensor.storage].append(tensor.path)
    shared = [path for paths in by_storage.values() if len(paths) > 1 for path in paths]
    if shared:
        yield finding(
            "shared-storage",
            "note",
            f"{format_count(len(shared), 'tensor')} share their bytes with others",
            "Tied weights or views of one tensor. torch.load and a fixed copy keep the sharing; safetensors does not.",
            shared,
        )


def _prefixes(case: Case) -> Iterator[Finding]:
    """Name the wrappers whose prefix stands before every parameter."""
    names = [tensor for tensor in case.checkpoint.tensors if tensor.role in {"parameter", "buffer", "ema"}]
    for id_, prefix, wrapper in (
        ("prefix-module", "module.", "DataParallel or DistributedDataParallel"),
        ("prefix-compiled", "_orig_mod.", "torch.compile"),
    ):
        paths = [tensor.path for tensor in names if tensor.keys and f".{prefix}" in f".{tensor.keys[-1]}"]
        if paths:
            yield finding(
                id_,
                "warning",
                f"Parameter names carry the prefix '{prefix}'",
                f"The model was saved inside {wrapper}. Loading it into the bare model stops with missing and unexpected "
                "keys unless the prefix is removed.",
                paths,
            )


def _whole_module(case: Case) -> Iterator[Finding]:
    """Say that a whole module needs its classes."""
    name = case.checkpoint.module_class
    if name is not None:
        yield finding(
            "whole-module",
            "warning",
            f"A whole pickled module, {name}",
            f"Loading it needs weights_only=False and the module {name.rpartition('.')[0]} importable, in a version "
            "that fits. A state dict needs neither.",
            [],
        )


def _optimizer_names(case: Case) -> Iterator[Finding]:
    """Say which optimizers do not match the parameters in the file."""
    for optimizer in case.checkpoint.optimizers:
        if optimizer.naming in {"unknown", "partial"} and optimizer.with_state:
            yield finding(
                "optimizer-mismatch",
                "note",
                f"Optimizer slots of {optimizer.path or 'the checkpoint'} could not all be named",
                optimizer.detail,
                [optimizer.path],
            )


def _safety(case: Case) -> Iterator[Finding]:
    """Say what loading would import."""
    reasons = " ".join(case.safety.reasons)
    if case.safety.verdict == "dangerous":
        yield finding("dangerous-global", "error", "Loading this file can run commands", reasons, [])
    elif case.safety.verdict == "runs-code":
        yield finding(
            "runs-code", "warning", "torch.load takes this file only with weights_only=False", reasons, []
        )
    elif case.safety.verdict == "needs-allow-list":
        yield finding(
            "needs-allow-list", "warning", "torch.load needs names allowed for this file", reasons, []
        )


def _versions(case: Case) -> Iterator[Finding]:
    """Say what in the container limits which torch can read it."""
    versions = dict(case.checkpoint.versions)
    if versions.get("byteorder") == "big":
        yield finding(
            "byteorder",
            "note",
            "Saved on a big-endian machine",
            "torch swaps the bytes of typed storages on load.",
            [],
        )
    number = versions.get("version", "")
    if number.isdecimal() and int(number) > _NEWEST_ZIP_VERSION:
        yield finding(
            "newer-format",
            "error",
            f"Container version {number} is newer than torch reads",
            "Save it again with a torch that knows it, or update torch.",
            [],
        )


FILE_RULES: tuple[Rule, ...] = (
    _truncated,
    _oversized,
    _shared,
    _prefixes,
    _whole_module,
    _optimizer_names,
    _safety,
    _versions,
)

"""Rules about the file itself: damage, waste, names, and what loading would import."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inspector.diagnose.base import Case, Rule
from inspector.model.checkpoint import Key
from inspector.model.findings import Finding, finding
from inspector.model.obstacles import find_obstacle, has_wrong_checksum
from inspector.model.totals import wasted_nbytes
from inspector.units import format_count, format_nbytes

_WASTE_NBYTES = 1 << 20
_MODEL_ROLES = frozenset({"parameter", "buffer", "ema"})


def _truncated(case: Case) -> Iterator[Finding]:
    """Point at tensors whose bytes are not in the file."""
    missing = {storage.key for storage in case.checkpoint.storages if storage.missing and storage.nbytes}
    if missing:
        yield finding(
            "truncated",
            "error",
            "Bytes of some tensors are missing",
            "The file ends early or lost records, so torch.load stops. Fetch or copy it again.",
            [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in missing],
        )


def _invalid(case: Case) -> Iterator[Finding]:
    """Point at tensors that cannot be what the pickle says."""
    wrong = [tensor for tensor in case.checkpoint.tensors if tensor.problem is not None]
    if wrong:
        yield finding(
            "invalid-tensor",
            "error",
            "Tensors whose description cannot be true",
            f"For example {wrong[0].path}: {wrong[0].problem}.",
            [tensor.path for tensor in wrong],
        )


def _refused(case: Case) -> Iterator[Finding]:
    """Say why torch can load the file nowhere, where no other rule says it."""
    obstacle = find_obstacle(case.checkpoint)
    if obstacle is None or obstacle.finding == "truncated":
        return
    title = "torch.load refuses this file"
    if obstacle.finding == "newer-format":
        title = "The file is of a newer format than torch reads"
    detail = f"On every machine it stops with: {obstacle.message} {obstacle.remedy}"
    yield finding(obstacle.finding, "error", title, detail, [])


def _checksum(case: Case) -> Iterator[Finding]:
    """Say that the pickle is not what its checksum says; torch does not look at it."""
    if has_wrong_checksum(case.checkpoint):
        yield finding(
            "bad-crc",
            "warning",
            "A checksum in the file is wrong",
            "The file was damaged, or changed after it was saved. torch.load does not check it. Compare it "
            "with the original, or fetch it again.",
            [],
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
            "Small views of large tensors were saved: torch.save writes the whole storage. Save a clone() "
            "of each.",
            [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in keys],
        )


def _shared(case: Case) -> Iterator[Finding]:
    """Name tensors that share their bytes."""
    shared = {storage.key for storage in case.checkpoint.storages if storage.tensors > 1}
    if shared:
        paths = [tensor.path for tensor in case.checkpoint.tensors if tensor.storage in shared]
        yield finding(
            "shared-storage",
            "note",
            f"{format_count(len(paths), 'tensor')} share their bytes with others",
            "Tied weights or views of one tensor. torch.load and a fixed copy keep the sharing; "
            "safetensors does not.",
            paths,
        )


def _prefixes(case: Case) -> Iterator[Finding]:
    """Name the wrappers whose prefix stands in parameters' names."""
    tensors = case.checkpoint.tensors
    places = {
        tensor.keys[:-1] for tensor in tensors if "module." in tensor.path or "_orig_mod." in tensor.path
    }
    by_place: dict[tuple[Key, ...], list[tuple[str, list[str]]]] = defaultdict(list)
    for tensor in tensors if places else ():
        if (
            tensor.role in _MODEL_ROLES
            and tensor.part_of is None
            and tensor.keys
            and tensor.keys[:-1] in places
        ):
            by_place[tensor.keys[:-1]].append((tensor.path, str(tensor.keys[-1]).split(".")))
    for id_, wrapper, find in (
        ("prefix-module", "DataParallel or DistributedDataParallel", _behind_module),
        ("prefix-compiled", "torch.compile", _behind_compile),
    ):
        paths = [path for names in by_place.values() for path in find(names)]
        if paths:
            prefix = "module." if find is _behind_module else "_orig_mod."
            yield finding(
                id_,
                "warning",
                f"Parameter names carry the prefix '{prefix}'",
                f"The model was saved inside {wrapper}. Loading it into the bare model stops with missing "
                "and unexpected keys unless the prefix is removed.",
                paths,
            )


def _behind_module(names: list[tuple[str, list[str]]]) -> list[str]:
    # torch.compile may have wrapped the wrapper; an averaged model counts its updates beside the wrapped one.
    bare = [(path, [step for step in steps if step != "_orig_mod"]) for path, steps in names]
    wrapped = [path for path, steps in bare if steps[:1] == ["module"] and len(steps) > 1]
    others = [steps for _, steps in bare if steps != ["n_averaged"]]
    return wrapped if len(wrapped) == len(others) else []


def _behind_compile(names: list[tuple[str, list[str]]]) -> list[str]:
    """Give the paths that torch.compile left its mark in; nobody else uses that name."""
    return [path for path, steps in names if "_orig_mod" in steps[:-1]]


def _whole_module(case: Case) -> Iterator[Finding]:
    """Say that a whole module needs its classes."""
    name = case.checkpoint.module_class
    if name is not None:
        yield finding(
            "whole-module",
            "warning",
            f"A whole pickled module, {name}",
            f"Loading it needs weights_only=False and the module {name.rpartition('.')[0]} importable, in a "
            "version that fits. A state dict needs neither.",
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
        title = "torch.load takes this file only with weights_only=False"
        yield finding("runs-code", "warning", title, reasons, [])
    elif case.safety.verdict == "needs-allow-list":
        title = "torch.load needs names allowed for this file"
        yield finding("needs-allow-list", "warning", title, f"{reasons} Allow what you trust.", [])


def _byteorder(case: Case) -> Iterator[Finding]:
    """Say that the bytes are in the other order."""
    if dict(case.checkpoint.versions).get("byteorder") == "big":
        yield finding(
            "byteorder",
            "note",
            "Saved on a big-endian machine",
            "torch swaps the bytes of typed storages on load.",
            [],
        )


FILE_RULES: tuple[Rule, ...] = (
    _refused,
    _truncated,
    _invalid,
    _checksum,
    _oversized,
    _shared,
    _prefixes,
    _whole_module,
    _optimizer_names,
    _safety,
    _byteorder,
)

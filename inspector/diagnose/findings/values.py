"""What a scan of all values found; each finding says from which figure on it is one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Severity, finding
from inspector.units import format_count
from inspector.values.statistics import HUGE, HUGE_WEIGHT, Oddity, Scan, Scanned

_DIVERGED = (
    "A model that holds NaN or infinite numbers computes nothing else from then on. Training most likely "
    "diverged, or a number did not fit into the type that it was cast to. Go back to an earlier checkpoint. "
    "Masks that hold -inf on purpose are no fault."
)
_BEGINNING = (
    "Best scores and the bounds of observers begin at infinity: Lightning's ModelCheckpoint keeps one in "
    "kth_value, quantizers keep min_val and max_val. They say nothing about the weights."
)
_DIVERGING = (
    f"Numbers above {HUGE_WEIGHT:,.0f} in a weight, or above {HUGE:.0e} elsewhere, are what training leaves "
    "that is about to diverge. float16 ends at 65,504."
)
_UNTRAINED = (
    "Biases, and the second matrix of a LoRA, are zeros before training. After it, such a weight was never "
    "trained, or was lost."
)
_ONES = (
    "The weights of normalizing layers are ones before training. After it, such a weight was never trained."
)
_DEAD = (
    "A row of zeros in a weight is an output that never changes: a pruned unit, a padded vocabulary, or the "
    "row of an embedding's padding_idx."
)
_SCORES = re.compile(
    r"(?:best|kth|current|last|top)_(?:\w*_)?(?:scores?|values?|metrics?|models)", re.IGNORECASE
)
"""What keeps the best figure so far: `best_score`, `best_model_score`, `kth_value`, `best_k_models`."""
_BOUNDS = re.compile(r"(?:\w+_)?(?:min|max)_val(?:ue)?", re.IGNORECASE)
"""The least and the greatest so far: observers of torch.ao.quantization, MinMetric of torchmetrics."""
_OF_MODEL = frozenset({"parameter", "buffer"})
_DIVERGED_ID, _INFINITE = "nan-or-inf", "infinite-scores"
_ROWS: tuple[tuple[str, tuple[Oddity, ...], Severity, str, str], ...] = (
    (_DIVERGED_ID, (Oddity.NAN, Oddity.INF), "warning", "with NaN or infinities", _DIVERGED),
    ("huge-values", (Oddity.HUGE,), "warning", "with huge numbers", _DIVERGING),
    (_INFINITE, (Oddity.INF, Oddity.NAN), "note", "at infinity or NaN outside of the weights", _BEGINNING),
    ("zero-weights", (Oddity.ZERO,), "note", "of zeros alone", _UNTRAINED),
    ("constant-weights", (Oddity.CONSTANT,), "note", "of one number throughout", _ONES),
    ("dead-rows", (Oddity.DEAD_ROWS,), "note", "with rows of zeros", _DEAD),
)


def value_findings(checkpoint: Checkpoint, scan: Scan) -> tuple[Finding, ...]:
    """Return what a scan found, worst first."""
    return tuple(_findings(checkpoint, scan))


def is_sound(scan: Scan, findings: Iterable[Finding]) -> bool:
    """Return whether all was read, and no numbers of it are spoiled: scores may begin at infinity."""
    return not scan.unread and all(one.id != _DIVERGED_ID for one in findings)


def spoiled(checkpoint: Checkpoint, scan: Scan) -> list[Scanned]:
    """Return the tensors with NaN or infinities where those are no scores."""
    return [one for one in scan.with_oddity(Oddity.NAN, Oddity.INF) if not _is_score(checkpoint, one)]


def _findings(checkpoint: Checkpoint, scan: Scan) -> Iterator[Finding]:
    for name, oddities, severity, what, detail in _ROWS:
        found = scan.with_oddity(*oddities)
        if name == _INFINITE:
            found = [one for one in found if _is_score(checkpoint, one)]
        elif name == _DIVERGED_ID:
            found = spoiled(checkpoint, scan)
        paths = [checkpoint.tensors[one.row].path for one in found]
        if paths:
            yield finding(name, severity, f"{format_count(len(paths), 'tensor')} {what}", detail, paths)


def _is_score(checkpoint: Checkpoint, one: Scanned) -> bool:
    """Return whether a number is a score that is not known yet: a single one that is no weight.

    What is called a score may be NaN as well. In a model, such as a metric or an observer of a quantizer, its
    name has to say what it is.
    """
    tensor = checkpoint.tensors[one.row]
    if not all(size == 1 for size in tensor.shape) or not tensor.keys:
        return False
    has_nan = Oddity.NAN in one.oddities
    if tensor.role == "other":
        return not has_nan or any(_SCORES.fullmatch(str(key)) for key in tensor.keys[-2:])
    name = str(tensor.keys[-1]).rpartition(".")[2]
    return not has_nan and tensor.role in _OF_MODEL and _BOUNDS.fullmatch(name) is not None

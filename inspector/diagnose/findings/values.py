"""What a scan of all values found; each finding says from which figure on it is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Severity, finding
from inspector.units import format_count
from inspector.values.scan import HUGE, HUGE_WEIGHT, Oddity, Scan, Scanned

_DIVERGED = (
    "A model that holds NaN or infinite numbers computes nothing else from then on. Training most likely "
    "diverged, or a number did not fit into the type that it was cast to. Go back to an earlier checkpoint. "
    "Masks that hold -inf on purpose are no fault."
)
_BEGINNING = (
    "Best scores begin at infinity: Lightning's ModelCheckpoint keeps one in kth_value. They are outside of "
    "models and optimizers, and say nothing about the weights."
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
_DIVERGED_ID, _INFINITE = "nan-or-inf", "infinite-scores"
_ROWS: tuple[tuple[str, tuple[Oddity, ...], Severity, str, str], ...] = (
    (_DIVERGED_ID, (Oddity.NAN, Oddity.INF), "warning", "with NaN or infinities", _DIVERGED),
    ("huge-values", (Oddity.HUGE,), "warning", "with huge numbers", _DIVERGING),
    (_INFINITE, (Oddity.INF,), "note", "at infinity outside of the weights", _BEGINNING),
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


def _findings(checkpoint: Checkpoint, scan: Scan) -> Iterator[Finding]:
    for name, oddities, severity, what, detail in _ROWS:
        found = scan.with_oddity(*oddities)
        if name == _INFINITE:
            found = [one for one in found if _is_score(checkpoint, one)]
        elif Oddity.INF in oddities:
            found = [one for one in found if not _is_score(checkpoint, one)]
        paths = [checkpoint.tensors[one.row].path for one in found]
        if paths:
            yield finding(name, severity, f"{format_count(len(paths), 'tensor')} {what}", detail, paths)


def _is_score(checkpoint: Checkpoint, one: Scanned) -> bool:
    """Return whether an infinity is a single number that belongs to no model and no optimizer."""
    tensor = checkpoint.tensors[one.row]
    is_single = all(size == 1 for size in tensor.shape)
    return tensor.role == "other" and is_single and Oddity.NAN not in one.oddities

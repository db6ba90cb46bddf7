"""Rules about files of which several processes saved one each."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.case import Case, Rule
from inspector.model.findings import Finding, finding
from inspector.model.roles.processes import find_shards
from inspector.units import format_shape

_GROUPED = (
    "torch.load raises without a process group in which this process has the rank that saved the file: call "
    "torch.distributed.init_process_group first, in as many processes as saved it."
)
_LOOSE = (
    "torch.load makes DTensors of them, which no ordinary model loads: .to_local() is what is in this file, "
    "and .full_tensor() needs a process group of as many processes as saved it, each with its own file."
)
_WHOLE = (
    " Whole tensors come from the files of all processes together: save with a full state dict, or with "
    "torch.distributed.checkpoint."
)


def _shards(case: Case) -> Iterator[Finding]:
    """Report tensors of which the file holds the part of one process."""
    shards = find_shards(case.checkpoint)
    if shards is None:
        return
    of = f" of {shards.ranks} processes" if shards.ranks else " of several processes"
    rank = "" if shards.rank is None else f", that of rank {shards.rank}"
    is_divided = shards.local != shards.whole
    example = f"{shards.paths[0]}: {format_shape(shards.local)} of {format_shape(shards.whole)}{rank}"
    how = _GROUPED if shards.kind == "ShardedTensor" else _LOOSE
    yield finding(
        "process-shards",
        "warning",
        f"Each tensor is the part of one{of}" if is_divided else f"The tensors are of the type {shards.kind}",
        f"They are {shards.kind}s (for example {example}). {how}{_WHOLE if is_divided else ''}",
        list(shards.paths),
    )


PROCESS_RULES: tuple[Rule, ...] = (_shards,)

"""Tensors of which a file holds the part of one process, as FSDP and DTensor save them ungathered.

`ShardedTensor` refuses to be loaded without a process group in which this process has the rank that saved it:
`ShardedTensor.__setstate__` in `torch/distributed/_shard/sharded_tensor/api.py`. A `DTensor` loads, but no
ordinary model takes it, and whole it is only where all processes come together.
"""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass

_KINDS = (
    ("torch.distributed._shard.sharded_tensor.api.ShardedTensor", "ShardedTensor", ".tensor"),
    ("torch.distributed.tensor.DTensor", "DTensor", "._local_tensor"),
    ("torch.distributed._tensor.api.DTensor", "DTensor", "._local_tensor"),
)
_RANK = ".placement/._rank"
_RANKS = "._rank_map"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """The parts that a file holds.

    Attributes:
        kind: `ShardedTensor` or `DTensor`.
        whole: The sizes of the tensor that it is a part of.
        rank: The rank that saved the file; None where it does not say.
        ranks: How many there were; 0 where it does not say.
    """

    kind: str
    paths: tuple[str, ...]
    local: tuple[int, ...]
    whole: tuple[int, ...]
    rank: int | None
    ranks: int


def find_shards(checkpoint: Checkpoint) -> Shards | None:
    """Return the parts of tensors in a file; None where its tensors are whole by nature."""
    names = {use.name for use in checkpoint.globals}
    kind, step = next(((kind, step) for name, kind, step in _KINDS if name in names), ("", ""))
    if not kind:
        return None
    tensors = checkpoint.tensors
    parts = [
        (tensors[row.part_of], row)
        for row in tensors
        if row.part_of is not None and row.keys and row.keys[-1] == step
    ]
    if not parts:
        return None
    divided = [(whole, part) for whole, part in parts if whole.shape != part.shape] or parts
    whole, part = divided[0]
    rank = next((value.text for value in checkpoint.values if value.path.endswith(_RANK)), "")
    ranks = next((row.shape for row in tensors if row.keys and row.keys[-1] == _RANKS), ())
    count = 1
    for size in ranks:
        count *= size
    return Shards(
        kind=kind,
        paths=tuple(one.path for one, _ in divided),
        local=part.shape,
        whole=whole.shape,
        rank=int(rank) if rank.isdecimal() and kind == "ShardedTensor" else None,
        ranks=count if ranks else 0,
    )

from __future__ import annotations

from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.model.roles.processes import find_shards
from tests.builders.pickles import name
from tests.corpus import CORPUS
from tests.unit.model.making import by_hand

FOLDER = CORPUS.parent / "distributed"


def test_parts_are_told_with_their_rank() -> None:
    fsdp1 = find_shards(open_checkpoint(str(FOLDER / "fsdp1_rank1.pt")))
    assert (fsdp1.kind, fsdp1.local, fsdp1.whole, fsdp1.rank, fsdp1.ranks) == (
        "ShardedTensor",
        (5, 6),
        (10, 6),
        1,
        0,
    )
    fsdp2 = find_shards(open_checkpoint(str(FOLDER / "fsdp2_rank0.pt")))
    assert (fsdp2.kind, fsdp2.local, fsdp2.whole, fsdp2.rank, fsdp2.ranks) == (
        "DTensor",
        (5, 6),
        (10, 6),
        None,
        2,
    )
    assert fsdp2.paths[0] == "embed.weight"


def test_a_part_may_be_the_whole() -> None:
    found = find_shards(open_checkpoint(str(CORPUS / "dist" / "sharded_tensor.pt")))
    assert (found.local, found.whole, found.rank) == ((4, 3), (4, 3), 0)


def test_other_files_hold_whole_tensors() -> None:
    assert find_shards(open_checkpoint(str(CORPUS / "zip" / "state_dict.pt"))) is None
    assert find_shards(by_hand(name("torch.distributed.tensor.DTensor"))) is None
    assert Path(FOLDER).is_dir()

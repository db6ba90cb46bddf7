from __future__ import annotations

from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS


def said(path: str) -> tuple[str, str]:
    checkpoint = open_checkpoint(str(CORPUS.parent / path))
    (found,) = [one for one in diagnose(checkpoint, judge(checkpoint)) if one.id == "process-shards"]
    return found.title, found.detail


def test_parts_are_said_with_what_they_need() -> None:
    title, detail = said("distributed/fsdp2_rank0.pt")
    assert title == "Each tensor is the part of one of 2 processes"
    assert "embed.weight: 5 × 6 of 10 × 6)" in detail
    assert ".to_local()" in detail
    title, detail = said("distributed/fsdp1_rank1.pt")
    assert title == "Each tensor is the part of one of several processes"
    assert "of 10 × 6, that of rank 1)" in detail
    assert "init_process_group" in detail
    assert "full state dict" in detail
    title, detail = said("corpus/dist/sharded_tensor.pt")
    assert title == "The tensors are of the type ShardedTensor"
    assert "full state dict" not in detail


def test_the_code_makes_the_process_group() -> None:
    code = render(
        open_checkpoint(str(CORPUS.parent / "distributed" / "fsdp1_rank1.pt")), style="plain", target=CPU_ONLY
    )
    assert code.index('dist.init_process_group("gloo")') < code.index("torch.load(")
    assert "in rank 1, which" in code
    other = open_checkpoint(str(CORPUS.parent / "distributed" / "fsdp2_rank0.pt"))
    assert "init_process_group" not in render(other, style="plain", target=CPU_ONLY)

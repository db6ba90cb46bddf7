"""The style `fsdp`, as text; `tests/torch/test_snippets_distributed.py` runs it."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.unit.snippet.rows import THIS, checkpoint, optimizer, tensor

RUN = checkpoint(tensor("net", "module.w", device="cuda:0"), optimizers=(optimizer("opt"),))


def fsdp(rows: Checkpoint, target: Profile = THIS) -> str:
    return render(rows, style="fsdp", target=target, path="best.pth")


def test_rank_0_reads_and_all_are_sent_their_shards() -> None:
    text = fsdp(RUN, parse_target("2xcuda"))
    assert text.endswith(
        "# The model is yours, built as it was when this file was saved.\n"
        "# Shard its large blocks first, as in the run, and make the optimizer after that.\n"
        "fully_shard(net)\n\n"
        "# Rank 0 reads the file, and sends the others their shards.\n"
        "net_state = {}\n"
        "opt_state = {}\n"
        "if dist.get_rank() == 0:\n"
        '    checkpoint = torch.load(\n        "best.pth",\n'
        '        map_location="cpu",\n        weights_only=True,\n    )\n'
        '    state_dict = checkpoint["net"]\n'
        '    consume_prefix_in_state_dict_if_present(state_dict, "module.")\n'
        "    net_state = state_dict\n"
        '    opt_state = by_name(checkpoint["opt"], net, opt)\n'
        "options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)\n"
        "set_model_state_dict(net, net_state, options=options)\n"
        "set_optimizer_state_dict(net, opt, opt_state, options=options)\n"
    )
    assert "    StateDictOptions,\n    set_model_state_dict,\n    set_optimizer_state_dict,\n" in text


def test_optimizers_that_cannot_be_sharded_are_left_out() -> None:
    two = checkpoint(
        tensor("a", "l.weight"),
        tensor("b", "v.weight"),
        optimizers=(replace(optimizer("opt"), parameters=2),),
    )
    assert "by_name" not in fsdp(two)
    unknown = checkpoint(tensor("a", "l.weight"), optimizers=(replace(optimizer("opt"), parameters=9),))
    assert 'by_name(checkpoint["opt"], a, opt)' in fsdp(unknown)


def test_older_torch_wraps_the_model() -> None:
    old = replace(parse_target("cuda"), torch_version="2.4.1")
    text = fsdp(RUN, old)
    assert "net = FullyShardedDataParallel(net, device_id=local_rank)\n" in text
    assert 'map_location="cpu"' in text
    assert "fully_shard" not in text
    on_cpu = fsdp(checkpoint(tensor("net", "w")), replace(CPU_ONLY, torch_version="2.0.1"))
    assert "net = FullyShardedDataParallel(net)\n" in on_cpu
    assert "map_location" not in on_cpu

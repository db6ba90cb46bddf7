"""The ids that the command line's contract fixes: each has a rule with its samples, or a reason why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.diagnose.run import diagnose
from inspector.model.checkpoint import Checkpoint
from inspector.safety.verdict import judge
from inspector.target.machine.profile import CPU_ONLY, Profile, parse_target
from tests.unit.diagnose.cases import samples
from tests.unit.report.rows import checkpoint, optimizer, storage, tensor
from tests.work import growth

FIXED = {
    "cuda-unavailable",
    "cuda-index-out-of-range",
    "mps-unavailable",
    "xpu-unavailable",
    "unknown-device",
    "mixed-devices",
    "optimizer-off-parameter-device",
    "step-on-accelerator",
    "rng-off-cpu",
    "all-ranks-on-one-device",
    "does-not-fit",
    "oversized-storage",
    "shared-storage",
    "prefix-module",
    "prefix-compiled",
    "whole-module",
    "needs-allow-list",
    "runs-code",
    "dangerous-global",
    "hidden-device",
    "nested-pickle",
    "truncated",
    "bad-crc",
    "not-a-checkpoint",
    "lfs-pointer",
    "html-page",
    "missing-shard",
    "optimizer-mismatch",
    "byteorder",
    "newer-format",
    "nan-or-inf",
}

OF_UNREADABLE_FILES = "the reader refuses such a file with an error that says so: no checkpoint is opened"
WITHOUT_A_RULE = {
    "not-a-checkpoint": OF_UNREADABLE_FILES,
    "lfs-pointer": OF_UNREADABLE_FILES,
    "html-page": OF_UNREADABLE_FILES,
    "missing-shard": "sharded checkpoints are a format that this version names and does not open",
    "nan-or-inf": "values are looked at by statistics only, which this version does not have",
}


def test_every_id_of_the_contract_has_a_rule_or_a_reason() -> None:
    with_rule = {id_ for id_, sample in samples().items() if sample.has and sample.lacks}
    assert with_rule | WITHOUT_A_RULE.keys() >= FIXED
    assert not with_rule & WITHOUT_A_RULE.keys()
    assert WITHOUT_A_RULE.keys() <= FIXED


@pytest.mark.parametrize("target", [CPU_ONLY, parse_target("cuda:4")], ids=["cpu", "cuda:4"])
def test_many_tensors_are_diagnosed_in_proportion(target: Profile) -> None:
    def prepare(tensors: int) -> Callable[[], object]:
        made = _training(tensors // 4)
        safety = judge(made)
        return lambda: diagnose(made, safety, target) or pytest.fail("nothing is found")

    assert growth(prepare, 400, 1_600) < 1.2


def _training(layers: int) -> Checkpoint:
    rows: list[object] = []
    for place in range(layers):
        name = f"module.layer{place}.conv.weight"
        keys = [("model", name), *(("o", "state", place, slot) for slot in ("step", "exp_avg", "exp_avg_sq"))]
        for part, way in enumerate(keys):
            fields = {"role": "optimizer", "slot": way[-1], "parameter": name} if part else {}
            rows.append(tensor(*way, device="cuda:0", storage=f"{place}/{part}", **fields))
            rows.append(storage(f"{place}/{part}", "cuda:0"))
    return checkpoint(*rows, optimizer("o", parameters=layers, with_state=layers))

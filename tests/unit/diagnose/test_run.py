"""Every finding: who has it and who has not, what it points at, and in which order they come."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.diagnose.findings import devices as rules_devices
from inspector.diagnose.findings.files import PART_OF_CHECKPOINT
from inspector.diagnose.fitting import MAP_DOES_NOT_FIT
from inspector.diagnose.run import RULES, diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import SEVERITIES, Fix
from inspector.remap.rules import parse_rule
from inspector.safety.verdict import judge
from inspector.target.profile import CPU_ONLY, Profile, presets
from inspector.target.wish import parse_target
from tests.corpus import cases
from tests.unit.diagnose.cases import PLAIN, findings, samples, trained
from tests.unit.model.making import by_hand
from tests.unit.report.rows import checkpoint as rows_of
from tests.unit.report.rows import optimizer, storage, tensor
from tests.work import growth

SAMPLES = samples()
STYLES = {"plain", "resume", "module", "lightning", "transformers", "distributed"}


def can_be_applied(fix: Fix | None) -> bool:
    """Whether the window could carry a fix out: the rule can be read, the style or option is known."""
    if fix is None:
        return True
    if fix.kind == "rule":
        return bool(parse_rule(fix.rule))
    if fix.recovers:
        return True
    return (
        fix.style in STYLES
        if fix.kind == "style"
        else fix.option in {("mmap", "True"), ("map_location", "'cpu'")}
    )


def test_who_has_it_and_who_has_not() -> None:
    for id_, sample in SAMPLES.items():
        for checkpoint in sample.has:
            found = findings(checkpoint, sample.target)
            assert id_ in found
            assert found[id_].detail.endswith((".", "'")), id_
        for checkpoint in sample.lacks:
            assert id_ not in findings(checkpoint, sample.target)


def test_what_it_points_at_and_offers() -> None:
    for id_, sample in SAMPLES.items():
        found = findings(sample.has[0], sample.target)[id_]
        assert (found.paths, found.count, found.fix) == (sample.paths, len(sample.paths), sample.fix), id_
        assert can_be_applied(found.fix), id_


def test_every_id_in_the_rules_has_its_sample() -> None:
    ids = set(rules_devices._TITLES)
    for module in Path(rules_devices.__file__).parent.glob("*.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "finding":
                first = node.args[0]
                ids |= {first.value} if isinstance(first, ast.Constant) else set()
    assert ids <= SAMPLES.keys()
    # The others come by a variable: from the wrappers' table, and from what torch says to the file.
    assert SAMPLES.keys() - ids == {
        "prefix-module",
        "prefix-compiled",
        "torch-refuses",
        "newer-format",
        MAP_DOES_NOT_FIT,
        PART_OF_CHECKPOINT,
    }


def test_worst_is_first() -> None:
    checkpoint = trained("cuda:0", "cuda:1")
    order = [SEVERITIES.index(found.severity) for found in diagnose(checkpoint, judge(checkpoint), CPU_ONLY)]
    assert order == sorted(order)
    assert len(set(order)) > 1


def test_rules_have_a_sentence_for_a_docstring() -> None:
    for rule in RULES:
        assert (rule.__doc__ or "").strip().endswith(".")


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert findings(PLAIN, "cpu") == {}
    assert findings(by_hand(b"N"), "cpu") == {}


@pytest.mark.wide
def test_corpus_is_diagnosed_without_a_stumble() -> None:
    machines = (None, *presets())
    for case in cases():
        try:
            checkpoint = open_checkpoint(str(case.path))
        except CheckpointError:
            continue
        safety = judge(checkpoint)
        for found in (diagnose(checkpoint, safety, machine) for machine in machines):
            ranks = [SEVERITIES.index(finding.severity) for finding in found]
            assert ranks == sorted(ranks), case.name
            assert all(finding.title and finding.detail for finding in found), case.name
            assert all(finding.count >= len(finding.paths) for finding in found), case.name
            assert all(can_be_applied(finding.fix) for finding in found), case.name


# --- the ids that the command line's contract fixes ---------------------------------------------------------

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
    "nan-or-inf": "values are looked at by a scan only, see test_values.py",
}


def test_every_id_of_the_contract_has_a_rule_or_a_reason() -> None:
    with_rule = {id_ for id_, sample in SAMPLES.items() if sample.has and sample.lacks}
    assert with_rule | WITHOUT_A_RULE.keys() >= FIXED
    assert not with_rule & WITHOUT_A_RULE.keys()
    assert WITHOUT_A_RULE.keys() <= FIXED


@pytest.mark.parametrize("target", [CPU_ONLY, parse_target("4xcuda")], ids=["cpu", "4xcuda"])
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
    return rows_of(*rows, optimizer("o", parameters=layers, with_state=layers))

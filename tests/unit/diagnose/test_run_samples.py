"""Every finding: who has it and who has not, what it points at, and in which order they come."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from inspector.diagnose.findings import devices as rules_devices
from inspector.diagnose.run import RULES, diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.findings import SEVERITIES, Fix
from inspector.remap.rules import parse_rule
from inspector.safety.verdict import judge
from inspector.target.machine.profile import CPU_ONLY, parse_target, presets
from tests.corpus import cases
from tests.unit.diagnose.cases import PLAIN, findings, samples, trained
from tests.unit.model.making import by_hand

SAMPLES = samples()
STYLES = {"plain", "resume", "module", "lightning", "transformers", "distributed"}


def can_be_applied(fix: Fix | None) -> bool:
    """Whether the window could carry a fix out: the rule can be read, the style or option is known."""
    if fix is None:
        return True
    if fix.kind == "rule":
        return bool(parse_rule(fix.rule))
    return fix.style in STYLES if fix.kind == "style" else fix.option == ("mmap", "True")


@pytest.mark.parametrize("id_", SAMPLES)
def test_who_has_it_and_who_has_not(id_: str) -> None:
    sample = SAMPLES[id_]
    for checkpoint in sample.has:
        found = findings(checkpoint, sample.target)
        assert id_ in found
        assert found[id_].title
        assert found[id_].detail.endswith((".", "'"))
        assert found[id_].severity in SEVERITIES
    for checkpoint in sample.lacks:
        assert id_ not in findings(checkpoint, sample.target)


@pytest.mark.parametrize("id_", SAMPLES)
def test_what_it_points_at_and_offers(id_: str) -> None:
    sample = SAMPLES[id_]
    found = findings(sample.has[0], sample.target)[id_]
    assert (found.paths, found.count) == (sample.paths, len(sample.paths))
    assert found.fix == sample.fix
    assert can_be_applied(found.fix)


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
    assert SAMPLES.keys() - ids == {"prefix-module", "prefix-compiled", "torch-refuses", "newer-format"}


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


@pytest.mark.parametrize("target", [None, *(preset.id for preset in presets())])
def test_corpus_is_diagnosed_without_a_stumble(target: str | None) -> None:
    machine = None if target is None else parse_target(target)
    for case in cases():
        try:
            checkpoint = open_checkpoint(str(case.path))
        except CheckpointError:
            continue
        for found in diagnose(checkpoint, judge(checkpoint), machine):
            assert found.count >= len(found.paths)
            assert can_be_applied(found.fix)

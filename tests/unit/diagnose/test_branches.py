"""Rules for single branches: exact for one tensor, by the last step for several, none where that fails."""

from __future__ import annotations

from inspector.diagnose.branches import branch_fix
from inspector.model.findings import Fix
from inspector.remap.rules import parse_rule
from tests.sweep import table


@table(
    ("paths", "to", "rule"),
    [
        (["rng_state"], "cpu", "path:rng_state@cpu"),
        (["o/state/0/step", "o/state/1/step"], "cuda:0", "path:**/step@cuda:0"),
        (["a@b"], "cpu", "path:a@b@cpu"),
        (["a/b", "a/c"], "cpu", None),
        (["a"], "cpu:0", None),
        (["a"], "odd!", None),
        (["a*"], "cpu", None),
        (["a/b?", "c/b?"], "cpu", None),
        ([""], "cpu", None),
        ([], "cpu", None),
    ],
)
def test_one_rule_or_none(paths: list[str], to: str, rule: str | None) -> None:
    assert branch_fix(paths, to) == (None if rule is None else Fix(rule=rule))


def test_rules_reach_the_tensors_they_are_made_for() -> None:
    paths = ["optimizer/state/0/step", "optimizer/state/1/step"]
    fix = branch_fix(paths, "cpu")
    assert fix is not None
    assert all(parse_rule(fix.rule).matches("cuda:0", [path]) for path in paths)

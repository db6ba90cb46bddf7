from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.remap.describe import PlanRow, describe_plan, format_plan
from inspector.remap.forms import DROPPED, KEPT, NEVER
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from inspector.resources import demo_path
from tests.corpus import CORPUS
from tests.unit.remap.samples import call, checkpoint_of, mapping, name, sparse, stream, tensor, text
from tests.unit.remap.test_plan import META, NESTED
from tests.work import count_steps


def described(body: bytes, *rules: str) -> tuple[PlanRow, ...]:
    checkpoint = checkpoint_of(stream(body))
    return describe_plan(checkpoint, plan_remap(checkpoint, [parse_rule(rule) for rule in rules]))


def test_every_tensor_of_the_demo_stands_in_one_row() -> None:
    checkpoint = open_checkpoint(str(demo_path()))
    plan = plan_remap(checkpoint, [parse_rule("*=cuda:0")])
    rows = describe_plan(checkpoint, plan)
    assert sum(row.tensors for row in rows) == len(checkpoint.tensors)
    assert sum(row.tensors for row in rows if row.what == "moves") == len(plan.tensors)
    assert sum(row.tensors for row in rows if row.what == "kept") == len(plan.kept)
    order = ["moves", "kept", "stays"]
    assert [row.what for row in rows] == sorted((row.what for row in rows), key=order.index)
    why = {row.role: row.why for row in rows if row.what == "kept"}
    assert why["rng"] == "torch requires the state of random number generators to be on the CPU."
    assert "unless the optimizer is capturable or fused" in why["optimizer"]
    lines = format_plan(rows).splitlines()
    assert len(lines) == len(rows)
    assert lines[0].startswith("cuda:1 -> cuda:0: ")
    assert lines[0].endswith("By the rule *=cuda:0.")
    assert any(line.startswith("cpu stays: rng, ") for line in lines)


def test_the_first_rule_that_applies_is_the_reason() -> None:
    body = mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:1"), "1"), c=tensor(text("cuda:2"), "2"))
    rows = described(body, "path:a@cpu", "dtype:float32@mps")
    assert [(row.device, row.to, row.why, row.examples) for row in rows] == [
        ("cuda:0", "cpu", "By the rule path:a@cpu.", ("a",)),
        ("cuda:1", "mps", "By the rule dtype:float32@mps.", ("b",)),
        ("cuda:2", "mps", "By the rule dtype:float32@mps.", ("c",)),
    ]
    assert [row.why for row in described(body, "cuda:0=cpu")] == [
        "By the rule cuda:0=cpu.",
        "No rule sends it elsewhere.",
        "No rule sends it elsewhere.",
    ]


def test_what_goes_along_and_what_stays_for_other_reasons() -> None:
    body = mapping(s=sparse(tensor(text("cuda:0"), "8"), tensor(text("cuda:0"), "9")), m=META, n=NESTED)
    rows = described(body, "path:s/values@cpu", "cpu=cuda:1")
    whys = {row.why for row in rows}
    assert whys >= {"It belongs to a tensor that moves.", "It has no data."}
    assert "torch keeps this on the CPU wherever the rest is." in whys


def test_hostile_names_are_harmless() -> None:
    bad = call(name("collections", "OrderedDict"))
    body = b"}(" + text("\x1b[2J\u202e") + tensor(text("cuda:0")) + text("b") + bad + b"u"
    (row,) = described(body, "*=cpu")
    assert row.examples == ("\\u001b[2J\\u202e",)


def test_a_large_plan_is_described_in_few_steps_for_each_tensor() -> None:
    checkpoint = open_checkpoint(str(CORPUS / "zip" / "many_storages.pt"))
    plan = plan_remap(checkpoint, [parse_rule("cpu=cuda:0")])
    assert count_steps(lambda: describe_plan(checkpoint, plan)) < 60 * len(checkpoint.tensors)


def test_of_another_form_what_is_written_alone() -> None:
    checkpoint = open_checkpoint(str(demo_path()))
    plan = plan_remap(checkpoint, [parse_rule("*=cpu")])
    fates = bytes([KEPT, *[DROPPED, NEVER] * len(checkpoint.tensors)])
    (row,) = describe_plan(checkpoint, plan, fates)
    assert row.examples == (checkpoint.tensors[0].path,)

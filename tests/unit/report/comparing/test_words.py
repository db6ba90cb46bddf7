from __future__ import annotations

from inspector.diff.records import Numbers, Rule
from inspector.report.comparing.words import (
    FACT_TEXTS,
    LABELS,
    cosine_text,
    describe_tensor,
    fact_text,
    how_text,
    numbers_text,
    rule_text,
)
from tests.unit.diff.test_facts import ROW

SAME = Numbers(4, 0, 0.0, 0.0, 1.0, None, "", "", 0, 0)


def test_each_fact_has_a_label_and_a_text() -> None:
    other = ROW._replace(
        keys=(1,), device="cuda:0", stride=None, requires_grad=True, shape=(), problem="runs past the end"
    )
    assert fact_text("device", ROW, other) == "device cpu \u2192 cuda:0"
    assert fact_text("shape", ROW, other) == "shape 2 \u00d7 3 \u2192 scalar"
    assert fact_text("stride", ROW, other) == "stride (3, 1) \u2192 contiguous"
    assert fact_text("key", ROW, other) == "key 'w' \u2192 1"
    assert fact_text("problem", ROW, other) == "soundness sound \u2192 runs past the end"
    assert fact_text("class", ROW, other) == "another tensor class"
    assert fact_text("values", ROW, other) == ""
    for fact in ("dtype", "layout", "requires_grad", "role"):
        assert fact_text(fact, ROW, other).startswith(LABELS[fact])
    assert set(FACT_TEXTS) <= set(LABELS)


def test_a_tensor_is_described_without_a_device_that_nobody_named() -> None:
    assert describe_tensor(ROW) == "float32 2 \u00d7 3, 24 B, cpu"
    assert describe_tensor(ROW._replace(device="none")) == "float32 2 \u00d7 3, 24 B"


def test_numbers_are_said_in_one_line() -> None:
    text = numbers_text(Numbers(1000, 12, 0.5, 2.0, 0.25, (1, 2), "1.0", "1.5", 0, 1))
    assert text == (
        "12 of 1,000 elements differ, by at most 0.5 where both are finite, relative 2, "
        "1 with NaN or infinity, cosine 0.250000, first at [1, 2]: 1.0 \u2192 1.5"
    )
    text = numbers_text(Numbers(1, 1, None, None, None, (), "nan", "1.0", 0, 0))
    assert text == "1 of 1 element differ, first at []: nan \u2192 1.0"
    # The difference of two finite elements is 0 then, and would be said of those that differ.
    text = numbers_text(Numbers(2, 1, 0.0, 0.0, None, (), "nan", "1.0", 0, 1))
    assert text == "1 of 2 elements differ, 1 with NaN or infinity, first at []: nan \u2192 1.0"
    assert ", cosine" not in numbers_text(Numbers(2, 1, 0.5, None, None, (), "1.0", "0.0", 0, 0))
    # Where the second has zeros, what differs is no multiple of anything.
    assert "relative" not in numbers_text(Numbers(2, 1, 1.0, 0.0, None, (), "1.0", "0.0", 0, 0))
    assert numbers_text(SAME) == "the same numbers"
    assert numbers_text(SAME._replace(max_abs=0.25)) == "equal within the tolerance, at most 0.25 apart"
    assert numbers_text(SAME._replace(other_bits=2)).startswith("the same numbers, 2 of them in other bits")
    assert numbers_text(SAME._replace(other_bits=2, max_abs=0.25)).startswith(
        "equal within the tolerance, at most 0.25 apart, 2 of them in other bits"
    )


def test_a_cosine_is_one_only_where_it_is() -> None:
    assert cosine_text(1.0) == "1.000000"
    assert cosine_text(-1.0) == "-1.000000"
    assert cosine_text(0.99999999) == "0.99999999"
    assert cosine_text(0.5) == "0.500000"


def test_a_rule_says_what_became_of_names_and_why() -> None:
    assert rule_text(Rule("module.", "", 2, "prefix")) == "module. \u2192 (nothing)   2 tensors"
    assert rule_text(Rule("a\x1b", "b", 1, "content")) == "a\\u001b \u2192 b   1 tensor, equal bytes"
    assert how_text("path") == ""

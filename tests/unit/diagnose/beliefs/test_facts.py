from __future__ import annotations

from inspector.diagnose.beliefs.facts import and_joined, by_dtype, gather_facts
from inspector.records import replace
from inspector.target.default_load import judge_load
from tests.unit.diagnose.beliefs.asking import CPU, weights
from tests.unit.report.rows import checkpoint, storage, tensor


def test_a_shared_storage_is_halved_once() -> None:
    made = checkpoint(
        tensor("a", storage="0"),
        tensor("b", storage="0"),
        tensor("c", dtype="int64", storage="1"),
        tensor("d", storage=None),
        storage("0", nbytes=100),
        storage("1", nbytes=100),
    )
    facts = gather_facts(made, judge_load(made, CPU), CPU)
    assert facts.halved_nbytes() == 50
    assert facts.halved_nbytes(("buffer",)) == 0


def test_texts_of_a_file_are_harmless() -> None:
    made = replace(weights("a", device="cuda:0\n\x1b[2J"), path='/x/"; import os; "\n.pth')
    facts = gather_facts(made, judge_load(made, CPU), CPU)
    assert "\x1b" not in facts.places
    assert facts.path() == "'\"; import os; \"\\n.pth'"
    compile(facts.path("-half"), "", "eval")


def test_lists_are_cut() -> None:
    assert and_joined([]) == ""
    assert and_joined(["a"]) == "a"
    assert and_joined(["a", "b"], "or") == "a or b"
    assert and_joined(list("abcdefg")) == "a, b, c, d and 3 more"
    assert by_dtype([tensor("a"), tensor("b", dtype="int8", nbytes=40), tensor("c")]) == [
        ("int8", 1, 40),
        ("float32", 2, 32),
    ]

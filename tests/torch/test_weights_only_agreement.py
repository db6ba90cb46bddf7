"""What we say of `weights_only=True`, beside what torch does with the same file in a limited child."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.agreement import EXPLAINED, NAMES, Row, rows, table
from tests.hostile.constructed import THEMES
from tests.hostile.making_arguments import asked, recorded
from tests.sweep import put_through

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def enough_files_are_compared(found: list[Row]) -> None:
    folders = [row.folder for row in found]
    assert folders.count("corpus") > 130
    assert folders.count("hostile") > 60
    assert sum(folder in THEMES for folder in folders) > 350
    assert {row.ours for row in found} == {
        *("accepts", "allow", "code", "opcode", "errors", "never", "ambiguous", "refused")
    }


def every_disagreement_is_explained(found: list[Row]) -> None:
    assert [row for row in found if not row.agrees and row.explanation is None] == [], table(found)


def no_answer_is_better_than_the_truth(found: list[Row]) -> None:
    better = [row for row in found if row.ours == "accepts" and row.theirs != "accepts"]
    assert [row for row in better if row.explanation is None] == []
    words = ("Unsupported global", "is blocked", "Unsupported operand", "unrecognized function")
    assert [row for row in better if any(word in row.theirs for word in words)] == []


def nearly_all_constructed_files_agree(found: list[Row]) -> None:
    rows = [row for row in found if row.folder in THEMES and (row.agrees or not row.is_unknown)]
    assert sum(row.agrees for row in rows) >= 0.98 * len(rows), table(found)


def test_the_table_of_arguments_is_still_that_of_torch() -> None:
    wanted = recorded()[::29]
    assert len(wanted) > 700
    answers = asked(one for one, _ in wanted)
    other = {
        one.callable
        for (one, said), (_, accepted) in zip(answers, wanted, strict=True)
        if (said == "accepts") != accepted
    }
    # A number alone is a device of the accelerator that torch was built for.
    assert other == ({"torch.device"} if torch.accelerator.current_accelerator() else set())


def names_that_we_list_are_all_it_takes(found: list[Row]) -> None:
    allowed = [row for row in found if row.ours in NAMES and row.name not in EXPLAINED]
    assert len(allowed) > 25
    assert {row.when_allowed for row in allowed} == {"accepts"}


CHECKS = (
    enough_files_are_compared,
    every_disagreement_is_explained,
    no_answer_is_better_than_the_truth,
    nearly_all_constructed_files_agree,
    names_that_we_list_are_all_it_takes,
)


def test_what_is_said_of_weights_only(tmp_path: Path) -> None:
    found = rows(tmp_path, quick=True)  # once: tests of their own may run in several processes
    put_through(lambda check: check(found), CHECKS, lambda check: check.__name__)

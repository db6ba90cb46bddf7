"""What we say of `weights_only=True`, beside what torch does with the same file in a limited child."""

from __future__ import annotations

import pytest

from tests.hostile.agreement import EXPLAINED, NAMES, QUICK, Row, rows, table
from tests.hostile.constructed import THEMES
from tests.hostile.making_arguments import asked, recorded

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return rows(tmp_path_factory.mktemp("agreement"), quick=True)


def test_enough_files_are_compared(found: list[Row]) -> None:
    folders = [row.folder for row in found]
    assert folders.count("corpus") > 130
    assert folders.count("generated") == QUICK >= 200
    assert folders.count("hostile") > 60
    assert sum(folder in THEMES for folder in folders) > 350
    assert {row.ours for row in found} == {
        *("accepts", "allow", "code", "opcode", "errors", "never", "ambiguous", "refused")
    }


def test_every_disagreement_is_explained(found: list[Row]) -> None:
    assert [row for row in found if not row.agrees and row.explanation is None] == [], table(found)


def test_no_answer_is_better_than_the_truth(found: list[Row]) -> None:
    better = [row for row in found if row.ours == "accepts" and row.theirs != "accepts"]
    assert [row for row in better if row.explanation is None] == []
    words = ("Unsupported global", "is blocked", "Unsupported operand", "unrecognized function")
    assert [row for row in better if any(word in row.theirs for word in words)] == []


def test_nearly_all_constructed_files_agree(found: list[Row]) -> None:
    rows = [row for row in found if row.folder in THEMES]
    assert sum(row.agrees for row in rows) >= 0.98 * len(rows), table(found)


def test_the_table_of_arguments_is_still_that_of_torch() -> None:
    wanted = recorded()[::29]
    assert len(wanted) > 700
    said = [said == "accepts" for _, said in asked(one for one, _ in wanted)]
    assert said == [accepted for _, accepted in wanted]


def test_names_that_we_list_are_all_it_takes(found: list[Row]) -> None:
    allowed = [row for row in found if row.ours in NAMES and row.name not in EXPLAINED]
    assert len(allowed) > 25
    assert {row.when_allowed for row in allowed} == {"accepts"}

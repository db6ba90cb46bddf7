"""What we say of `weights_only=True`, beside what torch does with the same file in a limited child."""

from __future__ import annotations

import pytest

from tests.hostile.agreement import EXPLAINED, NAMES, QUICK, Row, rows, table

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
    assert {row.ours for row in found} == {
        *("accepts", "allow", "code", "opcode", "errors", "never", "ambiguous", "refused")
    }


def test_every_disagreement_is_explained(found: list[Row]) -> None:
    assert [row for row in found if not row.agrees and row.explanation is None] == [], table(found)


def test_no_answer_is_better_than_the_truth(found: list[Row]) -> None:
    better = {row.name for row in found if row.ours == "accepts" and row.theirs != "accepts"}
    assert better <= set(EXPLAINED)


def test_names_that_we_list_are_all_it_takes(found: list[Row]) -> None:
    allowed = [row for row in found if row.ours in NAMES and row.name not in EXPLAINED]
    assert len(allowed) > 25
    assert {row.when_allowed for row in allowed} == {"accepts"}

"""Every hostile file ends in what it is said to end in, quickly, in little memory, and untouched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.cases import CASES, ELSEWHERE, Case
from tests.hostile.running import Runner, shortcomings

GROUPS = 28


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hostile_file(case: Case, runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(case.build())
    assert shortcomings(runner.open(path), case.says) == []


def test_no_group_is_left_out() -> None:
    groups = {case.group for case in CASES} | set(ELSEWHERE)
    assert groups >= set(range(1, GROUPS + 1))
    assert all((Path(__file__).parents[2] / place).exists() for place in ELSEWHERE.values())


def test_names_of_cases_differ() -> None:
    assert len({str(case) for case in CASES}) == len(CASES)

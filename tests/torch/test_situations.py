"""Every situation gets the first answer that it needs; see `situations.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.situations import ROWS, TABLE, wrong

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def test_every_situation_gets_its_first_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = []
    for number, row in enumerate(ROWS):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        if amiss := list(wrong(row)):
            failures.append(f"{row.story}: {row.has}: {'; '.join(amiss)}")
    assert not failures, "\n".join(failures)


def test_the_table_tells_of_all_four_kinds_of_people() -> None:
    assert len(ROWS) >= 60
    assert len(TABLE) == 4
    assert len({row.has for row in ROWS}) == len(ROWS)

"""Every situation gets the first answer that it needs; see `situations.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.situations import PAGE, ROWS, STORIES, page, wrong

# What is not yet right, and why; a row leaves this table when it is.
AMISS: dict[str, str] = {
    "weights saved on the CPU; someone else's traceback is pasted": "not answered well enough",
    "weights for another number of classes": "not answered well enough",
    "a state dict; the code asks for checkpoint['state_dict']": "the error is not yet answered",
    "training on the CPU; the code to resume on a GPU moves the model": "the code leaves something out",
    "optimizer.step() finds two devices after resuming": "not answered well enough",
    "a GAN; the code to load it": "the code leaves something out",
    "the script that loads on the CPU; which line fails?": "scripts are not read yet",
}

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def test_every_situation_gets_its_first_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = []
    for number, row in enumerate(ROWS):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        amiss = list(wrong(row))
        if amiss and row.has not in AMISS:
            failures.append(f"{row.story}: {row.has}: {'; '.join(amiss)}")
    assert not failures, "\n".join(failures)


def test_the_table_tells_of_all_four_kinds_of_people_and_is_written_down() -> None:
    assert len(ROWS) >= 60
    assert {row.story for row in ROWS} == set(STORIES)
    assert len({row.has for row in ROWS}) == len(ROWS)
    assert set(AMISS) <= {row.has for row in ROWS}
    assert PAGE.read_text(encoding="utf-8") == page()

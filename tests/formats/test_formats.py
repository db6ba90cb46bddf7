"""Every step of the program on a file of every format; see `rows.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspector.containers.formats import FORMATS
from tests.formats.page import PAGE, page
from tests.formats.rows import ROWS
from tests.formats.steps import STEPS
from tests.sweep import table

NAMED_ONLY = {entry.name for entry in FORMATS if not entry.format().is_read}


@table("name", STEPS)
def test_each_step(name: str, cli: Callable[..., Any], tmp_path: Path) -> None:
    failures = []
    for number, row in enumerate(ROWS):
        folder = tmp_path / str(number)
        folder.mkdir()
        failures += [f"{row.title}: {what}" for what in STEPS[name].wrong(row, cli, folder)]
    assert not failures, "\n".join(failures)


def test_every_format_that_is_read_has_a_row() -> None:
    assert {row.name for row in FORMATS} - NAMED_ONLY <= {row.name for row in ROWS}
    assert len({row.title for row in ROWS}) == len(ROWS)


def test_the_table_is_written_down() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()

"""No payload that really runs is called safe, and no file is refused without a word of it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.safety.unread import judge_unread
from inspector.safety.verdict import judge
from tests.hostile import loaders
from tests.hostile.loaders.case import Case, runs


def _cases() -> Iterator[Case]:
    for module in pkgutil.iter_modules(loaders.__path__):
        if module.name.startswith("cases_"):
            yield from importlib.import_module(f"{loaders.__name__}.{module.name}").CASES


CASES = tuple(_cases())
WRONG = {"weights-only", "refused"}


def judged(path: Path) -> str:
    """Return the verdict on what was opened, or what is said beside a refusal: `refused` where nothing is."""
    try:
        return judge(open_checkpoint(str(path))).verdict
    except CheckpointError as error:
        seen = judge_unread(error)
        return "refused" if seen is None or not seen.sentence else f"refused, {seen.verdict}"


@pytest.mark.parametrize("case", CASES, ids=[f"{case.reader}: {case.name} ({case.loader})" for case in CASES])
def test_payload(case: Case, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = case.write(home)
    assert case.source or runs(case, path, tmp_path / "run"), "the payload did not run: this shows nothing"
    assert judged(path) not in WRONG

"""No payload that really runs is called safe, and no file is refused without a word of it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.safety.unread import judge_unread
from inspector.safety.verdict import judge
from tests.hostile import loaders
from tests.hostile.loaders.case import Case, run_all


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


def answers(cases: Sequence[Case], folder: Path) -> list[tuple[str, str]]:
    """Return, for each case, whether its payload ran and what is said of the file."""
    paths = []
    for number, case in enumerate(cases):
        (folder / f"files/{number}").mkdir(parents=True)
        paths.append(case.write(folder / f"files/{number}"))
    ran = run_all(cases, paths, folder / "runs")
    return [("ran" if has else "did not run", judged(path)) for has, path in zip(ran, paths, strict=True)]


@pytest.mark.torch
@pytest.mark.parametrize("reader", dict.fromkeys(case.reader for case in CASES))
def test_payloads_run(reader: str, tmp_path: Path) -> None:
    """Their verdicts are asked for in tests/unit/containers/test_payloads.py."""
    cases = [case for case in CASES if case.reader == reader]
    found = zip(cases, answers(cases, tmp_path), strict=True)
    assert {
        (case.name, case.loader): answer
        for case, answer in found
        if answer[0] == "did not run" or answer[1] in WRONG
    } == {}

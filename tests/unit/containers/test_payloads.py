"""What is said of files whose payload really runs, see tests/hostile/loaders: never that they are safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.loaders.test_loaders import CASES, WRONG, judged


@pytest.mark.parametrize("reader", dict.fromkeys(case.reader for case in CASES))
def test_payloads_are_never_called_safe_nor_refused_without_a_word(reader: str, tmp_path: Path) -> None:
    found = {}
    for number, case in enumerate(CASES):
        if case.reader == reader:
            home = tmp_path / str(number)
            home.mkdir()
            found[case.name, case.loader] = judged(case.write(home))
    assert {case: verdict for case, verdict in found.items() if verdict in WRONG} == {}

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.diff import content
from inspector.diff.compare import Wish, compare_paths
from inspector.diff.content import place_of
from inspector.errors import ExportError
from tests.builders.states import T, save_zip


def test_a_place_follows_from_the_number_of_an_element() -> None:
    assert [place_of(number, (2, 3)) for number in (0, 2, 3, 5)] == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert place_of(0, ()) == ()


def test_a_child_that_cannot_answer_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text("def answer(head, blocks):\n    raise ModuleNotFoundError('no numpy')\n    yield\n")
    monkeypatch.setattr(content, "worker_script", lambda _: script)
    paths = [save_zip(tmp_path / f"{number}.pt", {"w": T([number])}) for number in (1.0, 2.0)]
    with pytest.raises(ExportError, match=r"the numbers cannot be compared: w: .*no numpy"):
        compare_paths(*paths, Wish(mode="numbers"))

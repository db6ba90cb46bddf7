"""A file of which programs read different things is safe nowhere: in no answer, key, exit code or chip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.progress import Progress
from inspector.session.document import open_document
from inspector.session.verdict import safety_chip
from tests.hostile.archives import CASES

AMBIGUOUS = {name: build for _, name, build, says in CASES if says.get("answer") == "ambiguous"}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_file_is_safe_nowhere(cli, tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(AMBIGUOUS[name]())
    plain = cli("check", path, "--target", "cpu")
    assert plain.code == 1
    assert "  NOT SAFE: " in plain.out
    answer = cli("check", path, "--target", "cpu", "--json")
    assert (answer.code, json.loads(answer.out)["safe"]) == (1, False)
    shown = json.loads(cli("show", "--json", path).out)["safety"]
    assert (shown["weights_only"], shown["globals_to_allow"]) == (False, [])
    assert shown["verdict"] in {"runs-code", "dangerous"}
    chip = safety_chip(open_document(str(path), Progress()).safety)
    assert chip.tone in {"warning", "bad"}

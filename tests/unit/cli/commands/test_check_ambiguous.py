"""A file of which programs read different things is safe nowhere: in no answer, key, exit code or chip."""

from __future__ import annotations

import json
import re
from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from inspector.session.present.banner import safety_chip
from tests.builders import zips
from tests.builders.pickles import state_dict, storage, tensor
from tests.hostile.archives import CASES
from tests.sweep import table

AMBIGUOUS = {
    name: build
    for rows in CASES.values()
    for name, (build, says) in rows.items()
    if says.get("answer") == "ambiguous"
}


@table("name", AMBIGUOUS)
def test_ambiguous_file_is_safe_nowhere(cli, tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(AMBIGUOUS[name]())
    plain = cli("check", path, "--target", "cpu")
    assert plain.code == 1
    assert "  SAFE: " not in plain.out
    assert re.search("^  (NEEDS YOUR TRUST|DANGEROUS): ", plain.out, re.MULTILINE)
    answer = cli("check", path, "--target", "cpu", "--json")
    assert (answer.code, json.loads(answer.out)["safe"]) == (1, False)
    shown = json.loads(cli("show", "--json", path).out)["safety"]
    assert (shown["weights_only"], shown["globals_to_allow"]) == (False, [])
    written = cli("snippet", path)
    refused = (written.code, written.out) == (2, "") and "no code loads this file" in written.err
    assert refused or "weights_only=True" in written.out
    assert "weights_only=False" not in written.out
    assert shown["verdict"] in {"runs-code", "dangerous"}
    chip = safety_chip(judge(open_checkpoint(str(path))))
    assert chip.tone in {"warning", "bad"}


def test_what_only_differs_from_reader_to_reader_is_said_as_such(cli, tmp_path: Path) -> None:
    pickle = state_dict(w=tensor(storage(), 2))
    twice = zips.Record(name="archive/DATA.PKL", data=pickle)
    path = tmp_path / "file.pt"
    path.write_bytes(zips.checkpoint(pickle, {"0": bytes(8)}, twice))
    answer = cli("check", path, "--target", "cpu")
    assert "  LOADS on a machine without a GPU: as far as it could be read.\n" in answer.out
    assert "  NEEDS YOUR TRUST: programs read different things from this file." in answer.out
    whole = cli("check", path, "--target", "cpu", "--full").out
    assert " ! Needs your trust: programs read different things from this file\n" in whole
    assert "weights_only=False" not in answer.out
    assert "programs read different things" in cli("show", path).out
    assert "# Programs read different things from this file" in cli("snippet", path).out
    chip = safety_chip(judge(open_checkpoint(str(path))))
    assert (chip.text, chip.tone) == ("needs your trust", "warning")

"""The ways in which people write a load: each idiom, and 99 scripts of which torch knows the line."""

from __future__ import annotations

import json
import tomllib

from inspector.report.page import plain_lines
from inspector.report.scripts import script_lines
from tests.unit.diagnose.script.following import FILES, follow

SCRIPTS = FILES.parent
TABLE = tomllib.loads((SCRIPTS / "table.toml").read_text(encoding="utf-8"))
MOST_LINES = 23
"""Of the script's part of the answer; the file's verdict is below."""


def test_idioms() -> None:
    wrong = []
    for row in json.loads((SCRIPTS / "idioms" / "expect.json").read_text(encoding="utf-8")):
        text = (SCRIPTS / "idioms" / row["script"]).read_text(encoding="utf-8")
        answer = follow(text, "ckpt_dp_cuda.pth.tar", row["targets"][0])
        wanted = row["expect"]
        if answer.line != wanted["line"] or not wanted["what"].startswith(answer.kind or "works"):
            wrong.append((row["script"], answer.line, answer.kind, wanted))
        if "async" in row["script"] and "non_blocking" not in answer.further[0].why:
            wrong.append((row["script"], answer.further))
    assert wrong == []


def test_what_works_is_left_alone_and_what_is_beyond_is_not_called_well() -> None:
    wrong = []
    for kind in ("works", "fails"):
        for row in TABLE[kind]:
            text = (SCRIPTS / kind / row["script"]).read_text(encoding="utf-8")
            words = " ".join(row.get("arguments", [])) or None
            answer = follow(text, row["file"], row["target"], arguments=words)
            said = "\n".join(plain_lines(script_lines(answer)))
            if answer.is_good != (kind == "works" or bool(row.get("beyond"))):
                wrong.append((row["script"], answer.kind, answer.line))
            if answer.is_good and "othing fails" in said:
                wrong.append((row["script"], said))
            if len(said.split("\n")) > MOST_LINES:
                wrong.append((row["script"], len(said.split("\n")), said))
    assert wrong == []


def test_the_line_is_named_without_torch() -> None:
    found = [row for row in TABLE["fails"] if not row.get("beyond")]
    kinds = {
        follow(
            (SCRIPTS / "fails" / row["script"]).read_text(encoding="utf-8"), row["file"], row["target"]
        ).kind
        for row in found
    }
    assert len(found) >= 32
    assert len(kinds) >= 12
    assert "" not in kinds

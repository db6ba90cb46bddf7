from __future__ import annotations

import ast
import json
from pathlib import Path

from inspector.resources import demo_path

DEMO = demo_path()


def test_what_was_saved_and_what_is_lost(cli, copy: Path) -> None:
    out = copy.with_name("rest.pth")
    copy.write_bytes(copy.read_bytes()[:400_000])
    answer = cli("recover", copy, "-o", out, "--json")
    document = json.loads(answer.out)
    lost = document.pop("lost")
    assert (answer.code, document["output"], document["verdict"]) == (0, str(out), "weights-only")
    assert document["tensors"] + len(lost) == 283
    assert document["lost_nbytes"] == sum(row["nbytes"] for row in lost)
    assert set(lost[0]) == {"path", "why", "device", "dtype", "shape", "nbytes"}
    assert set(document) == {
        "schema", "path", "output", "nbytes", "tensors", "storages", "storage_nbytes", "unchecked",
        "verdict", "is_cut", "lost_nbytes",
    }  # fmt: skip


def test_code_and_the_styles_that_there_are(cli, tmp_path) -> None:
    document = json.loads(cli("snippet", DEMO, "--json").out)
    assert document.pop("code") == cli("snippet", DEMO).out
    assert document["styles"][:2] == ["resume", "plain"]
    assert {**document, "styles": []} == {
        "schema": 1,
        "path": str(DEMO),
        "style": "resume",
        "styles": [],
        "unread": None,
    }
    assert json.loads(cli("snippet", DEMO, "--json", "--style", "plain").out)["style"] == "plain"
    (tmp_path / "config.json").write_text("{}")
    answer = cli("snippet", tmp_path, "--style", "transformers", "--json")
    unread = json.loads(answer.out)
    assert (answer.code, unread["style"], unread["styles"]) == (0, "transformers", ["transformers"])
    assert answer.err == f"checkpoint-inspector: the file itself was not read: {unread['unread']}\n"
    ast.parse(unread["code"])


def test_a_comparison(cli, copy: Path) -> None:
    document = json.loads(cli("verify", copy, "--against", DEMO, "--json").out)
    assert (document["same"], document["moves"], document["differences"]) == (True, [], [])

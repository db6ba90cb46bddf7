from __future__ import annotations

import json
from pathlib import Path

from inspector.remap import export
from inspector.remap.torch_check import TorchCheck
from inspector.report.documents import torch_document
from inspector.resources import demo_path
from tests.unit.remap.samples import CUDA_0, mapping, stream, tensor, text, written, zip_of

DEMO = demo_path()


def test_a_copy(cli, copy: Path) -> None:
    out = copy.with_name("out.pth")
    answer = cli("remap", copy, "-o", out, "--map", "*=cuda:0", "--json")
    assert (answer.code, answer.err) == (0, "")
    document = json.loads(answer.out)
    compared = document.pop("compared_nbytes")
    assert compared == document.pop("copied_nbytes") > 700_000
    assert document == {
        "schema": 1,
        "path": str(copy),
        "output": str(out),
        "action": "copy",
        "nbytes": out.stat().st_size,
        "moved_tensors": 83,
        "moved_hidden": 0,
        "kept_tensors": 50,
        "verified": True,
        "torch": None,
    }


def test_a_copy_that_torch_did_not_check(cli, copy: Path, monkeypatch) -> None:
    found = TorchCheck(verdict="unchecked", detail="there is no torch", torch="2.13", missing=("cuda:0",))
    monkeypatch.setattr(export, "_ask_torch", lambda *_: found)
    answer = cli("remap", copy, "-o", copy.with_name("out.pth"), "--verify", "torch", "--json")
    document = json.loads(answer.out)
    assert document["torch"] == torch_document(found)
    assert document["torch"] == {
        "version": "2.13",
        "verdict": "unchecked",
        "detail": "there is no torch",
        "missing": ["cuda:0"],
    }
    assert (answer.code, "error" in document) == (4, False)
    assert "torch did not check the copy: there is no torch" in answer.err


def test_another_form(cli, copy: Path) -> None:
    out = copy.with_name("out.safetensors")
    document = json.loads(cli("remap", copy, "-o", out, "--json").out)
    left = {row["path"]: row for row in document.pop("left_out")}
    assert left["optimizer"] == {
        "path": "optimizer",
        "why": "the state of an optimizer",
        "tensors": 141,
        "nbytes": left["optimizer"]["nbytes"],
        "is_lost": False,
    }
    assert document == {
        "schema": 1,
        "path": str(copy),
        "output": str(out),
        "action": "form",
        "format": "safetensors",
        "nbytes": out.stat().st_size,
        "source_nbytes": copy.stat().st_size,
        "tensors": 92,
        "model": "model",
        "prefix": "",
        "tied": [],
        "overflowed": 0,
        "verified": True,
    }


def test_a_change_in_place_and_back(cli, copy: Path) -> None:
    before = copy.read_bytes()
    document = json.loads(cli("remap", copy, "--in-place", "--json").out)
    assert document.pop("written_nbytes") > 0
    assert document == {
        "schema": 1,
        "path": str(copy),
        "output": str(copy),
        "action": "in-place",
        "nbytes": copy.stat().st_size,
        "moved_tensors": 233,
        "moved_hidden": 0,
        "kept_tensors": 0,
        "verified": True,
        "record": f"{copy}.undo",
    }
    undone = json.loads(cli("remap", copy, "--undo", "--json").out)
    assert undone == {
        "schema": 1,
        "path": str(copy),
        "output": str(copy),
        "action": "undo",
        "nbytes": len(before),
    }
    assert copy.read_bytes() == before
    nothing = json.loads(cli("remap", copy, "--in-place", "--json", "--map", "cpu=cpu").out)
    assert (nothing["record"], nothing["moved_tensors"]) == (None, 0)


def test_a_plan(cli, tmp_path) -> None:
    path = written(tmp_path, zip_of(stream(mapping(d=CUDA_0, t=tensor(text("cuda:0")))), {"0": bytes(16)}))
    document = json.loads(cli("remap", path, "--dry-run", "--json").out)
    (row,) = document.pop("plan")
    assert (row["what"], row["device"], row["to"], row["tensors"]) == ("moves", "cuda:0", "cpu", 1)
    stays = {"path": "d", "device": "cuda:0", "what": "torch.device"}
    assert document == {
        "schema": 1,
        "path": str(path),
        "output": None,
        "action": "plan",
        "form": None,
        "hidden": [{**stays, "to": None}],
    }
    moved = json.loads(cli("remap", path, "--dry-run", "--json", "--hidden-devices").out)
    assert moved["hidden"] == [{**stays, "to": "cpu"}]
    weights = json.loads(cli("export", path, "--dry-run", "--json", "--hidden-devices").out)
    assert weights["hidden"] == []
    planned = json.loads(cli("export", DEMO, "--dry-run", "--json").out)
    assert sum(row["tensors"] for row in planned["plan"]) == planned["form"]["tensors"]
    formed = planned["form"]
    assert (formed["format"], formed["tensors"], formed["model"]) == ("zip", 92, "model")
    assert [row["path"] for row in formed["left_out"]][:2] == ["optimizer", "ema"]
    excluded = json.loads(
        cli("export", DEMO, "--dry-run", "--json", "--exclude", "optimizer", "--format", "same").out
    )["form"]
    assert [row["path"] for row in excluded["left_out"]] == ["optimizer"]


def test_the_plan_is_that_of_the_text(cli) -> None:
    document = json.loads(cli("remap", DEMO, "--dry-run", "--json", "--map", "*=cuda:0").out)
    lines = cli("remap", DEMO, "--dry-run", "--map", "*=cuda:0").out.splitlines()
    assert [row["why"] for row in document["plan"]] == [line[line.index(". ") + 2 :] for line in lines]


def test_a_failure_is_a_document_and_a_line(cli, copy: Path) -> None:
    (copy.parent / "there.pth").write_bytes(b"x")
    for words, code, kind in (
        (("missing.pth", "-o", "x.pth"), 3, "container"),
        ((copy, "-o", copy.parent / "there.pth"), 4, "export"),
        ((copy, "-o", "x.pt", "--format", "safetensors"), 2, "plan"),
        ((copy, "--map", "moon", "--in-place"), 2, "plan"),
    ):
        answer = cli("remap", *words, "--json")
        document = json.loads(answer.out)
        assert (answer.code, document["error"]["kind"], document["path"]) == (code, kind, str(words[0]))
        assert answer.err.startswith(f"checkpoint-inspector: error: {document['error']['message']}")

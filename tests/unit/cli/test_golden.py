"""What the command line says of four files, word for word; a change is reviewed as a diff."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.resources import demo_path
from tests.corpus import CORPUS
from tests.sweep import table

FILES = {
    "demo": demo_path(),
    "lightning": CORPUS / "frameworks" / "lightning.ckpt",
    "legacy_sparse_cuda": CORPUS / "devices" / "legacy_sparse_cuda.pt",
    "legacy_python_types": CORPUS / "legacy" / "python_types.pt",
}


def lines(document: dict[str, Any]) -> Iterator[str]:
    """A document with one row a line, so that a diff shows which row changed."""
    for name, part in document.items():
        if isinstance(part, list) and part:
            yield f'"{name}": ['
            yield from (f"  {json.dumps(row)}" for row in part)
            yield "]"
        else:
            yield f'"{name}": {json.dumps(part)}'


@table("name", FILES)
def test_json(cli, golden, name: str) -> None:
    document = json.loads(cli("show", "--json", FILES[name]).out)
    assert document.pop("open_seconds") > 0
    assert document["path"] == str(FILES[name])
    document["path"] = FILES[name].name
    golden(f"{name}.json.txt", "\n".join(lines(document)) + "\n")


@pytest.mark.parametrize("name", FILES)
def test_text(cli, golden, name: str, monkeypatch) -> None:
    monkeypatch.chdir(FILES[name].parent)
    golden(f"{name}.txt", cli("show", Path(FILES[name].name)).out)


def test_check(cli, golden, monkeypatch) -> None:
    monkeypatch.chdir(FILES["demo"].parent)
    said = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
    answer = cli("check", Path(FILES["demo"].name), "--target", "cuda", "--error-text", said)
    assert (answer.code, answer.err) == (1, "")
    golden("demo_check.txt", answer.out)

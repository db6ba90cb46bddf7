"""The corpus: genuine checkpoints of many torch versions, each with an oracle of what torch says is in it.

`data/corpus/index.json` lists the files; an oracle was written by `torch.load` (or, where torch cannot load
the file, by the program that wrote it). `disagreement` compares an oracle with a document of `show --json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sweep import IS_SWEEP

CORPUS = Path(__file__).parent / "data" / "corpus"

# What the oracle calls it -> what the document calls it.
FIELDS = {
    "dtype": "dtype",
    "shape": "shape",
    "stride": "stride",
    "offset": "storage_offset",
    "device": "device",
}
# Tensors of other kinds (sparse, nested, ...) have no geometry of their own: only their device is compared.
PLAIN_KINDS = {None, "strided", "quantized", "wrapper_subclass", "rebuilt_device"}

# Written in another order than the oracle lists them in; of an agent, its policy is shown first.
SORTED = {"safetensors", "sb3"}

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file of the corpus.

    Attributes:
        name: The path below the corpus, which also names the test.
        container: `zip`, `legacy`, `gzip(legacy)`, `tar`, ..., or `invalid`.
        torch_loads: Whether torch 2.13 loads it; None when nobody tried.
        weights_only: Whether torch loads it with `weights_only=True`; None when nobody tried.
        is_varied: Whether it is among the fewest files in which everything occurs that any file has.
        root: The folder that its name and its oracle's are below.
    """

    name: str
    container: str
    torch_loads: bool | None
    weights_only: bool | None
    oracle_name: str
    is_varied: bool = False
    root: Path = CORPUS

    @property
    def folder(self) -> str:
        """The part of the corpus it belongs to: `zip`, `devices`, `old`, ..."""
        return self.name.partition("/")[0]

    @property
    def path(self) -> Path:
        """The file (or, for a distributed checkpoint, the folder)."""
        return self.root / self.name

    def oracle(self) -> Document:
        return json.loads((self.root / self.oracle_name).read_text(encoding="utf-8"))


def cases(*, container: str | None = None, folder: str | None = None, root: Path = CORPUS) -> list[Case]:
    """List the corpus, or the part of it with this container or in this folder."""
    entries = json.loads((root / "index.json").read_text(encoding="utf-8"))
    every = [
        Case(
            name=entry["file"],
            container=entry["container"],
            torch_loads=entry["torch_loads"],
            weights_only=entry["wo"],
            oracle_name=entry["oracle"],
            is_varied=entry.get("varied", False),
            root=root,
        )
        for entry in entries
    ]
    return [case for case in every if container in {None, case.container} and folder in {None, case.folder}]


def varied() -> list[Case]:
    """List the files that differ in kind, for tests that do much with each; a sweep lists them all.

    Each container, opcode, protocol, global, role, dtype and type of device of the corpus occurs in one:
    see `tests/unit/test_corpus.py`.
    """
    return [case for case in cases() if case.is_varied or IS_SWEEP]


def disagreement(case: Case, oracle: Document, document: Document) -> str | None:
    """Return in what the document contradicts the oracle, or None when the two agree.

    They agree when every tensor of the oracle is listed with the same keys (ints and strings compared as
    text), dtype, shape, stride, offset, device and storage size, in the same order. Further rows are allowed:
    parts of sparse tensors, a tensor that is reached twice. An invalid file must be refused or reported by a
    finding.
    """
    if case.container == "invalid" and not oracle.get("tensors"):
        return None if "error" in document or document.get("findings") else "neither refused nor reported"
    if "error" in document:
        return f"refused: {document['error'].get('message')}"
    wanted = [tensor for tensor in oracle.get("tensors", []) if tensor.get("path") is not None]
    if not wanted:
        return None
    rows: dict[str, Document] = {}
    for row in document["tensors"]:
        rows.setdefault(_name(row["keys"]), row)
    problems = (_tensor_disagreement(tensor, rows.get(_name(tensor["path"]))) for tensor in wanted)
    return (
        next(filter(None, problems), None)
        or (None if case.container in SORTED else _order_disagreement(wanted, rows))
        or _storage_disagreement(oracle.get("storages", {}), document.get("storages", []))
    )


def agrees(case: Case, oracle: Document, document: Document) -> bool:
    """Whether a document of `show --json` tells the truth."""
    return disagreement(case, oracle, document) is None


def _name(keys: list[str | int]) -> str:
    return json.dumps([str(key) for key in keys])


def _tensor_disagreement(tensor: Document, row: Document | None) -> str | None:
    if row is None:
        return f"{tensor['path']} is not listed"
    if tensor.get("kind") in PLAIN_KINDS:
        for theirs, ours in FIELDS.items():
            if tensor.get(theirs) is not None and row.get(ours) != tensor[theirs]:
                return f"{tensor['path']}: {ours} is {row.get(ours)!r}, not {tensor[theirs]!r}"
    if tensor.get("device") and row.get("device") != tensor["device"]:
        return f"{tensor['path']}: device is {row.get('device')!r}, not {tensor['device']!r}"
    return None


def _order_disagreement(wanted: list[Document], rows: dict[str, Document]) -> str | None:
    order = {name: rank for rank, name in enumerate(rows)}
    ranks = [order[_name(tensor["path"])] for tensor in wanted]
    return None if ranks == sorted(ranks) else "the order is not the file's"


def _storage_disagreement(theirs: Document, ours: list[Document]) -> str | None:
    sizes = {(str(key), storage["nbytes"]) for key, storage in theirs.items() if "nbytes" in storage}
    missing = sizes - {(str(storage["key"]), storage["nbytes"]) for storage in ours}
    return f"storage sizes differ: {sorted(missing)[:3]}" if missing else None

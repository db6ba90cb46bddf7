"""Folders that several real processes wrote, against what torch and DeepSpeed themselves make of them.

`oracle.json` has, for each tensor, its type, its sizes and the SHA-256 of its bytes: what torch 2.13 makes of
it with `dcp_to_torch_save`, and DeepSpeed 0.19 with `get_fp32_state_dict_from_zero_checkpoint`. Two to four
processes wrote them on CPUs: FSDP2 with AdamW, DTensors in a grid, and ZeRO 1 to 3 with tied, frozen and
grouped parameters.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inspector.containers.opening import open_path, read_container
from inspector.containers.storage_reader import StorageReader
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from inspector.report import details
from inspector.report.details import look_up, tensor_facts
from inspector.safety.verdict import judge
from tests.sweep import table

FOLDER = Path(__file__).parents[1] / "data" / "distributed"
ORACLE: dict[str, dict[str, Any]] = json.loads((FOLDER / "oracle.json").read_text(encoding="utf-8"))


@table("name", ORACLE)
def test_every_tensor_is_as_its_own_library_reads_it(name: str) -> None:
    with open_path(str(FOLDER / name)) as source:
        container = read_container(source)
        checkpoint = build_checkpoint(container)
        reader = StorageReader(container, source)
        found = {}
        for row in checkpoint.tensors:
            if row.path in ORACLE[name]:
                assert row.storage is not None
                itemsize = container.storage_ids[row.storage].itemsize
                data = reader.read(row.storage, (row.storage_offset or 0) * itemsize, row.nbytes)
                found[row.path] = [row.dtype, list(row.shape), hashlib.sha256(data).hexdigest()]
    assert found == ORACLE[name]
    assert judge(checkpoint).verdict == "weights-only"
    slots = [row for row in checkpoint.tensors if row.slot is not None]
    assert all(row.parameter is not None for row in slots)
    assert len(slots) == (0 if name == "dcp_grid" else 24 if name == "dcp_fsdp2" else 21)


@pytest.mark.wide
def test_they_are_converted_by_ranges(tmp_path: Path) -> None:
    for name, oracle in ORACLE.items():
        form = Form(shape="same", container="zip") if name.startswith("dcp") else Form(shape="state-dict")
        done = export_form(str(FOLDER / name), tmp_path / f"{name}.pt", None, form)
        assert done.tensors == len(oracle)
        with open_path(str(done.destination)) as source:
            container = read_container(source)
            reader = StorageReader(container, source)
            for row in build_checkpoint(container).tensors:
                data = reader.read(row.storage or "", 0, row.nbytes)
                path = row.path if name.startswith("dcp") else f"fp32/{row.path}"
                assert hashlib.sha256(data).hexdigest() == oracle[path][2], (name, row.path)


def test_which_rank_has_what_is_said(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(cli("show", "--json", FOLDER / "dcp_grid").out)
    parts = [Path(part["path"]).name for part in document["parts"]]
    both = next(storage for storage in document["storages"] if storage["key"] == "both")
    assert [(parts[chunk["part"]], chunk["offset"], chunk["shape"]) for chunk in both["chunks"]] == [
        ("__0_0.distcp", [0, 0], [4, 5]),
        ("__1_0.distcp", [0, 5], [4, 5]),
        ("__2_1.distcp", [4, 0], [3, 5]),
        ("__3_1.distcp", [4, 5], [3, 5]),
    ]
    checkpoint = open_checkpoint(str(FOLDER / "dcp_grid"))
    facts = dict(tensor_facts(checkpoint, 0, look_up(checkpoint))[-1].facts)
    assert facts["At byte"] == "put together from 4 pieces"
    assert facts["Piece 2"] == "[0:4, 5:10] in __1_0.distcp"
    monkeypatch.setattr(details, "_MOST_PIECES", 1)
    facts = dict(tensor_facts(checkpoint, 0, look_up(checkpoint))[-1].facts)
    assert (facts["Piece 1"], facts["More"]) == ("[0:4, 0:5] in __0_0.distcp", "3 pieces")


def test_pieces_whose_file_is_missing_are_said(tmp_path: Path, cli: Callable[..., Any]) -> None:
    folder = Path(shutil.copytree(FOLDER / "dcp_grid", tmp_path / "a"))
    (folder / "__1_0.distcp").unlink()
    both = json.loads(cli("show", "--json", folder).out)["storages"][0]
    assert [chunk["part"] is None for chunk in both["chunks"]] == [False, True, False, False]
    checkpoint = open_checkpoint(str(folder))
    facts = dict(tensor_facts(checkpoint, 0, look_up(checkpoint))[-1].facts)
    assert facts["Piece 2"] == "[0:4, 5:10] in a missing file"

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.remap.export import export_copy, make_receipt, refuse_receipt, write_receipt
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from inspector.remap.torch_check import TorchCheck
from inspector.resources import demo_path


@pytest.fixture
def receipt(tmp_path: Path):
    def make(torch: TorchCheck | None = None) -> dict:
        checkpoint = open_checkpoint(str(demo_path()))
        plan = plan_remap(checkpoint, [parse_rule("cuda:1=cuda:0"), parse_rule("cpu=cuda:0")])
        done = export_copy(checkpoint.path, tmp_path / "out.pth", plan, overwrite=True)
        return make_receipt(checkpoint, plan, replace(done, torch=torch), "1.2.3")

    return make


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_receipt_says_what_was_done(receipt, tmp_path: Path) -> None:
    found = receipt()
    copy = tmp_path / "out.pth"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found.pop("made"))
    checks = found.pop("checks")
    assert checks["opened_again"] is True
    assert checks["compared_nbytes"] == checks["copied_nbytes"] > 700_000
    assert checks["torch"] is None
    versions = found.pop("versions")
    assert versions["format"] == "zip"
    assert found == {
        "schema": 1,
        "program": "checkpoint-inspector 1.2.3",
        "original": {
            "name": "demo.pth",
            "nbytes": demo_path().stat().st_size,
            "sha256": sha256(demo_path()),
        },
        "copy": {"name": "out.pth", "nbytes": copy.stat().st_size, "sha256": sha256(copy)},
        "plan": {
            "rules": ["cuda:1=cuda:0", "cpu=cuda:0"],
            "moves": [{"from": "cuda:1", "to": "cuda:0", "tensors": 83}],
            "kept_on_cpu": 50,
            "hidden_devices": 0,
        },
    }


def test_what_torch_said_stands_in_it(receipt) -> None:
    check = TorchCheck(
        verdict="equal", call="torch.load(path)", torch="2.13.0", tensors=9, missing=("cuda:0",)
    )
    assert receipt(check)["checks"]["torch"] == {
        "verdict": "equal",
        "detail": "",
        "call": "torch.load(path)",
        "version": "2.13.0",
        "tensors": 9,
        "devices_not_tried": ["cuda:0"],
    }


def test_a_receipt_is_written_whole_and_over_nothing(receipt, tmp_path: Path) -> None:
    found, path = receipt(), tmp_path / "receipt.json"
    write_receipt(found, path)
    assert json.loads(path.read_text()) == found
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(ExportError, match="the receipt cannot be written: File exists"):
        write_receipt({}, path)
    assert json.loads(path.read_text()) == found
    write_receipt({}, path, overwrite=True)
    assert path.read_text() == "{}\n"


def test_a_receipt_never_takes_the_place_of_the_copy(tmp_path: Path) -> None:
    copy = tmp_path / "out.pt"
    (tmp_path / "folder").mkdir()
    source = str(tmp_path / "in.pt")
    refuse_receipt(tmp_path / "out.json", source, copy)
    for name in ("out.pt", "folder/../out.pt"):
        with pytest.raises(ExportError, match="the receipt would replace the copy"):
            refuse_receipt(tmp_path / name, source, copy)
    with pytest.raises(ExportError, match="the receipt would replace the file itself"):
        refuse_receipt(tmp_path / "in.pt", source, copy)

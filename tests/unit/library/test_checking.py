from __future__ import annotations

from pathlib import Path

import pytest

import inspector
from inspector.resources import demo_path
from tests.unit.remap.samples import call, mapping, name, stream, tensor, text, written, zip_of

ERROR = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."
)


def test_a_file_that_does_not_load_there(demo: inspector.Checkpoint) -> None:
    found = inspector.check(demo, target="cpu")
    assert not found
    assert (found.loads, found.safe) == (False, True)
    assert found.error is not None
    assert found.error.startswith("RuntimeError: Attempting to deserialize object on a CUDA device")
    assert found.findings[0].id == "cuda-unavailable"
    assert found.target == "CPU only"
    assert found.to_dict()["error"] == found.error
    assert "DOES NOT LOAD" in str(found)
    assert repr(found) == f"<Check of '{demo_path()}' on 'CPU only': loads=False, safe=True>"


def test_a_file_that_loads_and_is_safe() -> None:
    found = inspector.check(demo_path(), target="2xcuda")
    assert found
    assert (found.loads, found.safe, found.error) == (True, True, None)


def test_a_file_that_loads_only_without_the_check_is_no_good_one(tmp_path) -> None:
    body = mapping(w=tensor(text("cpu")), x=call(name("os", "system"), text("echo")))
    found = inspector.check(written(tmp_path, zip_of(stream(body), {"0": bytes(16)})), target="cpu")
    assert not found
    assert not found.safe


def test_an_error_is_explained(demo: inspector.Checkpoint) -> None:
    document = inspector.check(demo, target="cpu", error_text=ERROR).to_dict()
    assert document["explanation"]["finding"] == "cuda-unavailable"


def test_what_the_doctor_says_of_a_machine_that_was_probed(demo: inspector.Checkpoint) -> None:
    profile = Path(__file__).parents[2] / "data/profiles/docker-without-gpus.json"
    found = inspector.check(demo, target=str(profile))
    assert found.to_dict()["diagnoses"]
    assert inspector.check(demo, target="cpu").to_dict()["diagnoses"] == []


def test_a_script_is_followed_with_the_file(demo: inspector.Checkpoint, tmp_path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import torch\n\nstate = torch.load({str(demo_path())!r})\n", encoding="utf-8")
    found = inspector.check(demo, target="cpu", script=script)
    assert found.script is not None
    assert (found.script.outcome, found.script.line) == ("fails", 3)
    assert found.to_dict()["script"]["line"] == 3
    assert inspector.check(demo, target="cpu").script is None
    good = inspector.check(demo, target="2xcuda", script=script)
    assert good
    script.write_text("def (", encoding="utf-8")
    with pytest.raises(inspector.CheckpointError):
        inspector.check(tmp_path / "missing.pth", script=script)

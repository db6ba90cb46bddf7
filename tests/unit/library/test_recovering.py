from __future__ import annotations

import pytest

import inspector
from inspector.resources import demo_path
from tests.schemas import complaint
from tests.unit.remap.samples import call, mapping, name, stream, tensor, text, written, zip_of


def test_what_is_intact_is_saved(tmp_path) -> None:
    half, out = tmp_path / "half.pth", tmp_path / "rest.pth"
    half.write_bytes(demo_path().read_bytes()[:-90_000])
    found = inspector.recover(half, out)
    assert found.output == out
    assert found.tensors == len(inspector.open(out)) > 0
    assert found.lost
    assert found.verdict == "weights-only"
    assert found.lost[0] in str(found)
    assert "lost" in str(found)
    assert complaint("recover", found.to_dict()) == ""
    with pytest.raises(inspector.ExportError):
        inspector.recover(half, out)
    assert inspector.recover(half, out, force=True).lost == found.lost


def test_an_open_checkpoint_is_a_source_like_a_path(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(demo_path().parent)
    demo = inspector.open("demo.pth")
    monkeypatch.chdir(tmp_path)
    assert inspector.recover(demo, "rest.pth").tensors == len(demo)


def test_what_loading_the_rest_runs_is_said(tmp_path) -> None:
    body = mapping(w=tensor(text("cpu")), x=call(name("mine", "Thing"), text("a")))
    path = written(tmp_path, zip_of(stream(body), {"0": bytes(16)}))
    found = inspector.recover(path, tmp_path / "rest.pth")
    assert found.verdict == "runs-code"
    assert "The new file: " in str(found)

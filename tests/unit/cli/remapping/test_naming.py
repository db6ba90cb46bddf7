from __future__ import annotations

from pathlib import Path

import pytest

from inspector.cli.remapping.into import is_folder, name_of, refuse_collisions, refuse_sources
from inspector.errors import PlanError


def test_a_copy_is_called_as_its_file_unless_the_suffix_would_lie(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step-5").mkdir()
    (tmp_path / "step-5" / ".metadata").touch()
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / "model.safetensors.index.json").touch()
    named = {
        ("a/best.pth", None, False): "best.pth",
        ("a/best", None, False): "best",
        ("a/best.pth.gz", None, False): "best.pth",
        ("a/best.gz", None, False): "best.gz",
        ("best.pth.tar", None, False): "best.pth.tar",
        ("best.pth", "safetensors", True): "best.safetensors",
        ("best.pth.tar", "safetensors", True): "best.safetensors",
        ("model.v1", "safetensors", True): "model.v1.safetensors",
        ("x.safetensors", "safetensors", True): "x.safetensors",
        ("x.SafeTensors", "state-dict", True): "x.pth",
        ("x.safetensors", None, True): "x.safetensors",
        ("x.ckpt", "state-dict", True): "x.ckpt",
        ("step-5", None, False): "step-5",
        ("step-5/", None, False): "step-5",
        ("step-5/.metadata", None, False): "step-5",
        ("step-5/../step-5/.", None, False): "step-5",
        (".", None, False): tmp_path.name,
        ("llm/model.safetensors.index.json", None, False): "llm",
        ("llm", "safetensors", True): "llm.safetensors",
        ("step-5", "state-dict", True): "step-5.pth",
        ("step-5", None, True): "step-5.pth",
    }
    got = {given: name_of(given[0], given[1], is_form=given[2]) for given in named}
    assert got == named
    monkeypatch.chdir("step-5")
    assert name_of(".metadata", None, is_form=False) == "step-5"
    assert is_folder("../llm")
    assert not is_folder("missing.pth")


def test_two_copies_never_have_one_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "x.pth").touch()
    Path("link.pth").symlink_to("a/x.pth")
    refuse_collisions([("a/x.pth", "o/x.pth"), ("b/y.pth", "o/y.pth")])
    with pytest.raises(PlanError, match="two files would have one copy, o/x"):
        refuse_collisions([("a/x.pth", "o/x.pth"), ("b/x.pth", "o/x.pth")])
    for other in ("a/x.pth", "./a/x.pth", "link.pth"):
        with pytest.raises(PlanError, match=f"this file is named twice: a/x.pth and {other}"):
            refuse_collisions([("a/x.pth", "o/x.pth"), (other, "o/x.pth")])
    with pytest.raises(PlanError, match="named twice"):  # also where there is none
        refuse_collisions([("gone.pth", "o/x.pth"), ("gone.pth", "o/x.pth")])
    with pytest.raises(PlanError, match="two files would have one copy"):
        refuse_collisions([("gone.pth", "o/x.pth"), ("a\0b", "o/x.pth")])


def test_no_copy_takes_the_place_of_another_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "x.pth").touch()
    Path("a/y.pth").symlink_to("../b/x.pth")
    refuse_sources([("a/x.pth", "o/x.pth"), ("b/x.pth", "o/y.pth")])
    with pytest.raises(PlanError, match=r"the copy of a/x\.pth would replace a file that is to be copied: b"):
        refuse_sources([("a/x.pth", "a/y.pth"), ("b/x.pth", "o/z.pth")])

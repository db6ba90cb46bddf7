from __future__ import annotations

from pathlib import Path

import pytest

from inspector.diff.side import Side, open_side
from inspector.errors import ContainerError
from inspector.progress import Progress
from inspector.records import replace
from tests.builders.states import T, save_safetensors, save_zip


def opened(path: str) -> Side:
    with open_side(path, Progress()) as side:
        return side


def test_objects_that_stand_twice_are_followed_to_their_first_place(tmp_path: Path) -> None:
    shared = {"w": T([1.0]), "in": {"x": T([2.0])}}
    state = {"a": shared, "b": shared, "c": {"d": shared}}
    side = opened(save_zip(tmp_path / "a.pt", state))
    assert side.aliases == {"b": "a", "c/d": "a"}
    assert side.listed_at("b/w") == side.listed_at("c/d/w") == side.listed_at("a/w") == "a/w"
    assert side.listed_at("bb/w") == "bb/w"
    side.aliases = {"a": "b", "b": "a"}  # no file leads in a circle; were there one, it ends
    assert side.listed_at("a/w") in {"a/w", "b/w"}
    side.aliases = {"x": ""}
    assert side.listed_at("x/w") == "w"


def test_names_that_safetensors_leave_out_stand_for_those_they_keep(tmp_path: Path) -> None:
    path = save_safetensors(tmp_path / "a.safetensors", {"e": T([1.0])}, {"h": "e", "format": "pt"})
    side = opened(path)
    assert side.listed_at("h") == "e"
    assert side.data == b""


def test_an_error_names_its_file_once(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pt")
    with pytest.raises(ContainerError) as caught, open_side(missing, Progress()):
        pass
    assert str(caught.value).count(missing) == 1
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(ContainerError) as caught, open_side(str(broken), Progress()):
        pass
    assert str(caught.value).count(str(broken)) == 1
    empty = tmp_path / "empty.pt"
    empty.write_bytes(b"")
    with pytest.raises(ContainerError) as caught, open_side(str(empty), Progress()):
        pass
    assert str(caught.value).count(str(empty)) == 1


def test_distributed_checkpoints_make_texts_of_all_keys(tmp_path: Path) -> None:
    side = opened(save_zip(tmp_path / "a.pt", {"w": T([1.0])}))
    assert side.has_keys
    side.checkpoint = replace(side.checkpoint, format="dcp")
    assert not side.has_keys

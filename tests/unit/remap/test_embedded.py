"""Files of torch within bytes, changed by choice and opened by torch itself."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import Stream
from inspector.progress import Progress
from inspector.remap.embedded import _literals, embedded_edits
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place, undo_patch
from inspector.remap.plan import Plan, could_move, plan_remap, with_hidden
from inspector.remap.rewrite import Edit, rewrite_pickle
from inspector.remap.rules import parse_rule
from tests.builders.scripts import net, script

torch = pytest.importorskip("torch")
remapping = pytest.importorskip("tests.torch.remapping")


def inner(place: str, numel: int = 4, **options: Any) -> bytes:
    """A file whose tensors were on this device, but for a step that stays on the CPU."""
    buffer = io.BytesIO()
    with remapping.tagged(lambda _: place):
        torch.save({"w": torch.arange(float(numel))}, buffer, **options)
    return buffer.getvalue()


def outer(path: Path, value: Any, protocol: int = 2, **options: Any) -> Path:
    torch.save(value, path, pickle_protocol=protocol, **options)
    return path


def planned(checkpoint: Checkpoint, *rules: str) -> Plan:
    return with_hidden(checkpoint, plan_remap(checkpoint, [parse_rule(rule) for rule in rules]))


def places(data: bytes) -> set[str]:
    with io.BytesIO(data) as file:
        seen: set[str] = set()
        torch.load(file, map_location=lambda storage, tag: seen.add(tag) or storage, weights_only=True)
    return seen


@pytest.mark.wide
def test_every_way_of_writing_bytes(tmp_path: Path) -> None:
    old = {"_use_new_zipfile_serialization": False}
    one = inner("cuda:0")
    value = {
        "a": one,
        "again": [one],
        "old": inner("cuda:1", **old),
        "array": bytearray(inner("cuda:0", 6)),
        "large": inner("cuda:0", 300_000),
        "cpu": inner("cpu"),
        "t": torch.ones(2),
    }
    for protocol in (2, 3, 4, 5):
        for options in ({}, old):
            path = outer(tmp_path / "in.pt", value, protocol, **options)
            opened = open_checkpoint(str(path))
            assert {row.device for row in opened.hidden_devices} == {"cuda:0", "cuda:1"}
            for rules, wanted in ((("*=cpu",), "cpu"), (("cuda:0=cuda:12", "cuda:1=cuda:12"), "cuda:12")):
                plan = planned(opened, *rules)
                copy = tmp_path / "out.pt"
                done = export_copy(str(path), copy, plan, overwrite=True)
                assert done.moved_hidden == len(opened.hidden_devices)
                found = torch.load(copy, weights_only=False)
                for key, before in value.items():
                    data = found[key][0] if key == "again" else found[key]
                    if key == "t":
                        continue
                    assert type(data) is type(one if key == "again" else before)
                    assert places(bytes(data)) == {"cpu" if key == "cpu" else wanted}, key
                    mine, theirs = (
                        torch.load(io.BytesIO(x), map_location="cpu")
                        for x in (
                            data,
                            one if key == "again" else before,
                        )
                    )
                    assert torch.equal(mine["w"], theirs["w"])


def test_in_place_and_undone(tmp_path: Path) -> None:
    path = outer(tmp_path / "in.pt", {"a": inner("cuda:0")})
    before = path.read_bytes()
    opened = open_checkpoint(str(path))
    patch_in_place(str(path), planned(opened, "cuda:0=cpu"))
    assert places(torch.load(path)["a"]) == {"cpu"}
    undo_patch(str(path))
    assert path.read_bytes() == before


def test_the_default_leaves_them_and_says_so(tmp_path: Path) -> None:
    path = outer(tmp_path / "in.pt", {"a": inner("cuda:0")})
    opened = open_checkpoint(str(path))
    plan = plan_remap(opened, [parse_rule("*=cpu")])
    assert [row.path for row in could_move(opened, plan)] == ["a"]
    copy = tmp_path / "out.pt"
    export_copy(str(path), copy, plan)
    assert places(torch.load(copy)["a"]) == {"cuda:0"}


def test_a_file_within_a_file_within_is_left_closed(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with remapping.tagged(lambda _: "cuda:1"):
        torch.save({"deep": inner("cuda:0"), "w": torch.ones(2)}, buffer)
    path = outer(tmp_path / "in.pt", {"a": buffer.getvalue()})
    opened = open_checkpoint(str(path))
    assert [row.device for row in opened.hidden_devices] == ["cuda:1"]
    copy = tmp_path / "out.pt"
    export_copy(str(path), copy, planned(opened, "*=cpu"))
    data = torch.load(copy)["a"]
    assert places(data) == {"cpu"}
    assert places(torch.load(io.BytesIO(data))["deep"]) == {"cuda:0"}


def test_one_file_in_two_places_goes_one_way(tmp_path: Path) -> None:
    one = inner("cuda:0")
    path = outer(tmp_path / "in.pt", {"a": one, "b": one})
    opened = open_checkpoint(str(path))
    with pytest.raises(PlanError, match="stands in several places, which are sent to different devices"):
        export_copy(str(path), tmp_path / "out.pt", planned(opened, "path:a@cpu", "path:b@cuda:1"))


def test_only_what_moves_is_written(tmp_path: Path) -> None:
    path = outer(tmp_path / "in.pt", {"a": inner("cuda:0"), "b": inner("cuda:1")})
    opened = open_checkpoint(str(path))
    copy = tmp_path / "out.pt"
    export_copy(str(path), copy, planned(opened, "cuda:1=cpu"))
    found = torch.load(copy)
    assert (places(found["a"]), places(found["b"])) == ({"cuda:0"}, {"cpu"})
    assert found["a"] == torch.load(path)["a"]


def edits(data: bytes, contents: bytes) -> list[Edit]:
    row = HiddenDevice(path="a", device="cuda:0", what=HiddenPlace.NESTED)

    def rewrite(stream: Stream, plan: Plan) -> bytes:
        return rewrite_pickle(stream, plan)

    return embedded_edits(data, [(row, contents)], {0: "cpu"}, rewrite, Progress())


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(PlanError, match="written in a way that cannot be changed"):
        edits(b"", inner("cuda:0"))
    with pytest.raises(PlanError, match="of a format whose devices cannot be changed there"):
        edits(b"", script(net("cuda:0")))


def test_short_literals_become_longer_ones() -> None:
    for short, long in (("SHORT_BINBYTES", "BINBYTES"), ("SHORT_BINUNICODE", "BINUNICODE")):
        pushed = bytes([CODES[short], 3]) + b"abc" + b"."
        (edit,) = _literals(pushed, b"abc", b"x" * 300)
        assert edit == Edit(0, 5, bytes([CODES[long]]) + (300).to_bytes(4, "little") + b"x" * 300)
        (edit,) = _literals(pushed, b"abc", b"de")
        assert edit.data == bytes([CODES[short], 2]) + b"de"
    wide = bytes([CODES["BINBYTES8"]]) + (3).to_bytes(8, "little") + b"abc."
    (edit,) = _literals(wide, b"abc", b"d")
    assert edit.data == bytes([CODES["BINBYTES8"]]) + (1).to_bytes(8, "little") + b"d"

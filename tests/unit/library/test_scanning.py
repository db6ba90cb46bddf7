from __future__ import annotations

import math
import struct

import pytest

import inspector
from tests.builders import pickles, zips
from tests.schemas import complaint
from tests.unit.remap.samples import mapping, stream, tensor, text, written, zip_of


def scanned(tmp_path, *numbers: float, role: str = "w", **more: object) -> inspector.Scan:
    data = {"0": struct.pack("<4f", *numbers)}
    root = mapping(model=mapping(**{role: tensor(text("cpu"))}), **more)
    return inspector.scan(written(tmp_path, zip_of(stream(root), data)))


def test_what_is_odd(tmp_path) -> None:
    found = scanned(tmp_path, 1.0, math.nan, math.inf, 2.0, b=tensor(text("meta"), key="1"))
    assert found.odd == {"model/w": ("nan", "inf")}
    assert list(found.unread) == ["b"]
    assert "meta device" in found.unread["b"]
    assert [one.id for one in found.findings] == ["nan-or-inf"]
    assert (found.sound, bool(found), found.tensors, found.nbytes) == (False, False, 1, 16)
    assert complaint("stats", found.to_dict()) == ""
    assert str(found).startswith("1 tensor read")
    assert repr(found).startswith("<Scan: 1 tensor read")
    fine = scanned(tmp_path, 1.0, 2.0, 3.0, 4.0)
    assert (bool(fine), fine.odd, fine.unread, fine.findings) == (True, {}, {}, ())
    assert scanned(tmp_path, 0.0, 0.0, 0.0, 0.0).sound  # odd, and it may well be meant


def test_two_keys_that_read_alike(tmp_path) -> None:
    """A key that is a number and the text of it."""
    rows = {str(number): pickles.tensor(pickles.storage(str(number), numel=2), 2) for number in (0, 1)}
    stored = {"0": struct.pack("<2f", math.nan, 0), "1": struct.pack("<2f", math.inf, 0)}
    tree = pickles.dict_((pickles.number(0), rows["0"]), (pickles.text("0"), rows["1"]))
    path = tmp_path / "twice.pth"
    path.write_bytes(zips.checkpoint(pickles.stream(pickles.proto(), tree), stored))
    assert inspector.scan(path).odd == {"0~#1": ("nan",), "0": ("inf",)}


def test_without_numpy_the_error_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    with pytest.raises(inspector.ExportError, match="this needs NumPy"):
        scanned(tmp_path, 1.0, 2.0, 3.0, 4.0)


def test_it_can_be_stopped(demo: inspector.Checkpoint) -> None:
    steps: list[inspector.Step] = []
    found = inspector.scan(demo, progress=steps.append)
    assert (steps[0].stage, steps[-1].done) == ("reading values", found.nbytes)

    def stop(step: inspector.Step) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inspector.scan(demo, progress=stop)

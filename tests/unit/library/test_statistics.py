from __future__ import annotations

import json
import math
import struct

import pytest

import inspector
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from tests.builders import pickles, zips
from tests.builders.safetensors import row, safetensors
from tests.schemas import complaint
from tests.unit.remap.samples import mapping, stream, tensor, text, written, zip_of


@pytest.fixture
def path(tmp_path):
    numbers = struct.pack("<4f", 1.0, 2.0, math.nan, 0.0)
    return written(
        tmp_path,
        zip_of(
            stream(mapping(a=mapping(w=tensor(text("cuda:0"))), b=tensor(text("meta"), key="1"))),
            {"0": numbers},
        ),
    )


def test_figures_of_one_tensor(path) -> None:
    (found,) = inspector.stats(path, "a/w")
    assert (found.path, found.dtype, found.shape, found.numel) == ("a/w", "float32", (4,), 4)
    assert (found.min, found.max, found.mean, found.std) == (0.0, 2.0, 1.0, 1.0)
    assert (found.nan, found.posinf, found.neginf, found.zeros, found.first_nan) == (1, 0, 0, 1, (2,))
    assert found.norm == pytest.approx(math.sqrt(5))
    assert sum(found.histogram.counts) == 3
    assert len(found.histogram.edges) == len(found.histogram.counts) + 1
    document = found.to_dict()
    assert document["tensor"] == "a/w"
    for name in ("numel", "min", "max", "mean", "std", "norm", "zeros", "nan"):
        assert document[name] == getattr(found, name)
    assert str(found).startswith("a/w  float32  4\n")
    assert repr(found) == "<Statistics of 'a/w': min=0.0, max=2.0, mean=1.0, std=1.0, nan=1>"


def test_patterns_and_open_checkpoints(demo: inspector.Checkpoint) -> None:
    found = inspector.stats(demo, "model/stem.bn.*", "model/stem.conv.weight")
    assert [one.path for one in found][:2] == ["model/stem.conv.weight", "model/stem.bn.weight"]
    assert len(found) > 4


def test_what_has_no_numbers(path, demo: inspector.Checkpoint) -> None:
    with pytest.raises(inspector.ValuesError):
        inspector.stats(path, "b")
    with pytest.raises(inspector.PlanError, match="no tensor of the file has this path"):
        inspector.stats(demo, "nowhere")


def test_without_numpy_the_error_says_so(demo: inspector.Checkpoint, monkeypatch) -> None:
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    with pytest.raises(inspector.ExportError, match="this needs NumPy"):
        inspector.stats(demo, "model/head.bias")


def test_a_folder_is_read_wherever_the_program_is_meanwhile(tmp_path, monkeypatch) -> None:
    """As it was named when it was opened; the process that reads works in a folder of its own."""
    folder = tmp_path / "runs" / "llm"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"model-0000{number}-of-00002.safetensors").write_bytes(
            safetensors({f"w{number}": row()}, struct.pack("<2f", number, number))
        )
    names = {f"w{number}": f"model-0000{number}-of-00002.safetensors" for number in (1, 2)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}), encoding="utf-8")
    for named in ("llm", "./llm", "llm/model.safetensors.index.json"):
        monkeypatch.chdir(folder.parent)
        found = inspector.open(named)
        assert [one.mean for one in inspector.stats(found, "**")] == [1.0, 2.0]
        with ValueReader() as reader:
            assert reader.statistics(Requests(open_checkpoint(named)), 1, Progress()).mean == 2.0
        monkeypatch.chdir(tmp_path)
        assert [one.mean for one in inspector.stats(found, "**")] == [1.0, 2.0]


def test_the_storages_of_a_file_are_looked_up_once_for_all_tensors(monkeypatch, demo) -> None:
    made: list[object] = []
    begin = Requests.__init__

    def noting(requests: Requests, *given: object) -> None:
        made.append(requests)
        begin(requests, *given)

    monkeypatch.setattr(Requests, "__init__", noting)
    assert len(inspector.stats(demo, "model/stem.bn.*")) > 2
    assert len(made) == 1


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


def test_a_scan_without_numpy_says_so(tmp_path, monkeypatch) -> None:
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

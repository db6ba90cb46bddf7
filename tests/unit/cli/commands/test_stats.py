from __future__ import annotations

import json
from pathlib import Path

from inspector.resources import demo_path
from tests.unit.values.test_statistics import NAN, weights

DEMO = demo_path()


def test_ranks_are_given_when_they_are_asked_for(cli, tmp_path: Path) -> None:
    path = weights(tmp_path, w=[1.0, 0.0, 0.0, 1.0])
    assert "Effective rank          2 of 2" in cli("stats", path, "w", "--rank").out
    document = json.loads(cli("stats", path, "w", "--rank", "--json").out)
    bad = cli("stats", weights(tmp_path, w=[NAN, 1.0]), "w", "--rank")
    assert (bad.code, bad.out.startswith("w  float32")) == (0, True)
    assert bad.err.startswith("checkpoint-inspector: w: no rank: it holds NaN or infinities, ")
    assert document["ranks"] == {"effective": 2.0, "stable": 2.0, "largest": 1.0, "most": 2}


def test_a_tensor_without_values_does_not_stop_the_others(cli, tmp_path: Path) -> None:
    from tests.builders.pickles import state_dict, storage, tensor
    from tests.builders.zips import checkpoint

    path = tmp_path / "meta.pt"
    pickle = state_dict(a=tensor(storage("1", location="meta"), 2), b=tensor(storage(), 2))
    path.write_bytes(checkpoint(pickle, {"0": bytes(8)}))
    answer = cli("stats", path, "a", "b")
    assert answer.code == 3
    assert answer.err.startswith("checkpoint-inspector: error: it was saved from the meta device")
    assert answer.out.startswith("b  float32  2\n")
    lines = cli("stats", path, "a", "b", "--json").out.splitlines()
    failed, found = map(json.loads, lines)
    assert (failed["path"], failed["tensor"], failed["error"]["kind"]) == (str(path), "a", "values")
    assert (found["tensor"], found["numel"]) == ("b", 2)


def test_without_numpy_nothing_is_read_and_the_code_says_so(cli, monkeypatch) -> None:
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    answer = cli("stats", DEMO, "--scan")
    assert (answer.code, answer.out) == (4, "")
    assert "this needs NumPy" in answer.err


def test_a_name_with_a_slash_is_written_and_taken_as_people_know_it(cli, tmp_path: Path) -> None:
    from tests.builders.pickles import state_dict, storage, tensor
    from tests.builders.zips import checkpoint

    path = tmp_path / "tf.pt"
    rows = {"encoder/layer": tensor(storage(), 2), "a~b": tensor(storage("1", location="cuda:9"), 2)}
    path.write_bytes(checkpoint(state_dict(**rows), {"0": bytes(8), "1": bytes(8)}))
    assert cli("stats", path, "encoder/layer").out.startswith("encoder/layer  float32  2\n")
    assert "encoder/layer  is all zeros" in cli("stats", path, "--scan").out
    (document,) = map(json.loads, cli("stats", path, "encoder/layer", "--json").out.splitlines())
    assert document["tensor"] == "encoder~1layer"
    found = cli("check", path, "--full", "--target", "cpu").out
    assert "- a~b\n" in found
    assert "at the tensor a~b." in found


def test_several_files_are_told_apart_from_tensors(cli, tmp_path: Path, monkeypatch) -> None:
    """A tensor may be called as what lies here; the name of a checkpoint means the file."""
    monkeypatch.chdir(tmp_path)
    for name in ("e-1.pth", "e-2.pth"):
        Path(weights(tmp_path, w=[1.0, 1.0], model=[2.0, 2.0])).rename(name)
    Path("w").write_bytes(b"")
    Path("model").mkdir()
    rows = [
        (one["path"], one["tensor"])
        for one in map(
            json.loads, cli("stats", "e-1.pth", "e-2.pth", "w", "model", "--json").out.splitlines()
        )
    ]
    assert sorted(rows) == [(file, name) for file in ("e-1.pth", "e-2.pth") for name in ("model", "w")]
    text = cli("stats", "e-1.pth", "e-2.pth", "w").out
    assert text.startswith("e-1.pth\nw  float32  ")
    assert "\n\ne-2.pth\nw  float32  " in text
    assert text.endswith("\n\n2 files: 2 have their figures above\n")


def test_a_folder_is_scanned_and_the_worst_counts(cli, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name, number in (("a.pth", 1.0), ("b.pth", NAN)):
        Path(weights(tmp_path, w=[number, 2.0])).rename(tmp_path / "runs" / name)
    answer = cli("stats", tmp_path / "runs", "--scan")
    assert answer.code == 1
    assert answer.out.endswith("2 files: 1 is sound, 1 is not sound\n")
    assert [line for line in answer.out.splitlines() if line.endswith(".pth")] == [
        f"{tmp_path}/runs/{name}.pth" for name in "ab"
    ]
    assert cli("stats", tmp_path / "runs", "missing", "--scan").code == 2

from __future__ import annotations

import json
from pathlib import Path

from inspector.resources import demo_path
from tests.unit.values.test_statistics import NAN, weights

DEMO = demo_path()


def test_statistics_of_tensors_as_text_and_json(cli) -> None:
    answer = cli("stats", DEMO, "model/stem.conv.weight")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("model/stem.conv.weight  float32  8 \u00d7 3 \u00d7 3 \u00d7 3\n")
    answer = cli("stats", DEMO, "model/stem.*", "--json")
    documents = [json.loads(line) for line in answer.out.splitlines()]
    assert len(documents) == 6
    assert documents[0]["numel"] == 216


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


def test_a_scan_lists_what_is_odd(cli, tmp_path: Path) -> None:
    path = weights(tmp_path, fine=[1.0, 2.0], bad=[NAN, 1.0])
    answer = cli("stats", path, "--scan")
    assert answer.code == 1
    assert answer.out.splitlines()[:2] == ["2 tensors read: 1 with NaN.", "  bad  NaN: 1, first at [0, 0]"]
    document = json.loads(cli("stats", path, "--scan", "--json").out)
    assert [finding["id"] for finding in document["findings"]] == ["nan-or-inf"]
    assert cli("stats", weights(tmp_path, fine=[1.0, 2.0]), "--scan").code == 0


def test_a_scan_that_could_not_read_all_is_no_clean_scan(cli, tmp_path: Path) -> None:
    whole = Path(weights(tmp_path, fine=[1.0] * 5000)).read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    answer = cli("stats", tmp_path / "cut.pt", "--scan")
    assert "1 could not be read" in answer.out
    assert answer.code == 1


def test_tensors_are_named_or_all_are_scanned(cli) -> None:
    for words in ((), ("model", "--scan")):
        answer = cli("stats", DEMO, *words)
        assert answer.code == 2
        assert "name the tensors, or use --scan" in answer.err
    assert cli("stats", DEMO, "nothing").code == 2
    assert cli("stats", "/nothing.pt", "a").code == 3


def test_without_numpy_nothing_is_read_and_the_code_says_so(cli, monkeypatch) -> None:
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    answer = cli("stats", DEMO, "--scan")
    assert (answer.code, answer.out) == (4, "")
    assert "this needs NumPy" in answer.err

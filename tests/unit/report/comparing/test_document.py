from __future__ import annotations

import json
from pathlib import Path

from inspector.report.comparing.document import diff_document
from tests.builders.states import T
from tests.unit.diff.test_compare import NUMBERS, V, W, compared


def test_facts_stand_alone_or_by_their_names(tmp_path: Path) -> None:
    a = {"one": T(W, device="cuda:0"), "two": T(W, (2, 2), device="cuda:0"), "module.three": T(W), "n": 1}
    b = {"one": T(W), "two": T(W, (4, 1), grad=True), "three": T(W, dtype="float32", grad=True), "n": 1.0}
    found = diff_document(compared(tmp_path, a, b))
    rows = {row["path"]: row for row in found["changed"]}
    assert (rows["one"]["a"], rows["one"]["b"]) == ("cuda:0", "cpu")
    assert rows["two"]["a"] == {"device": "cuda:0", "shape": [2, 2], "requires_grad": False}
    assert rows["module.three"]["b_path"] == "three"
    assert (rows["n"]["what"], rows["n"]["types"]) == (["value", "type"], ["int", "float"])
    assert rows["one"]["max_abs"] is None
    assert found["renamed"] == [{"a": "module.three", "b": "three", "how": "prefix"}]
    assert found["rules"] == [{"a": "module.", "b": "", "tensors": 1, "how": "prefix"}]
    json.dumps(found, allow_nan=False)


def test_nothing_that_json_lacks_is_written(tmp_path: Path) -> None:
    inf = float("inf")
    found = diff_document(
        compared(tmp_path, {"w": T([inf, 1.0]), "v": inf}, {"w": T([1.0, inf]), "v": 1.0}, NUMBERS)
    )
    json.dumps(found, allow_nan=False)
    assert found["changed"][0]["not_finite"] == 2


def test_values_that_moved_have_both_paths(tmp_path: Path) -> None:
    a = {"w": T(W), "v": T(V), "lr": 1}
    found = diff_document(compared(tmp_path, a, {"all": {"w": T(W), "v": T(V), "lr": 2}}))
    assert found["changed"][0]["b_path"] == "all/lr"

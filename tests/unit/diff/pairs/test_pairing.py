from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.diff.pairing import Pairing
from inspector.diff.records import Rule
from inspector.diff.side import open_side
from inspector.progress import Progress
from tests.builders.states import T, save_zip

W, V = [1.0, 2.0], [3.0, 4.0]


def paired(tmp_path: Path, a: Any, b: Any) -> Pairing:
    paths = [save_zip(tmp_path / f"{name}.pt", value) for name, value in (("a", a), ("b", b))]
    with open_side(paths[0], Progress()) as one, open_side(paths[1], Progress()) as other:
        pairing = Pairing(one, other, Progress())
        pairing.run()
        return pairing


def trained(prefix: str, *order: str) -> dict[str, Any]:
    return {
        "model": {f"{prefix}w": T(W), f"{prefix}v": T(V, (2, 1))},
        "optimizer": {
            "state": {
                number: {"exp_avg": T(W if name == "w" else V, (2,) if name == "w" else (2, 1))}
                for number, name in enumerate(order)
            },
            "param_groups": [{"params": [0, 1], "param_names": [f"{prefix}{name}" for name in order]}],
        },
    }


def test_rules_of_names_hold_for_the_slots_of_their_parameters(tmp_path: Path) -> None:
    pairing = paired(tmp_path, trained("module.", "w", "v"), trained("", "v", "w"))
    assert pairing.left == ([], [])
    assert pairing.rules()[0] == Rule("module.", "", 2, "prefix")
    assert {(rule.a, rule.b, rule.how) for rule in pairing.rules()[1:]} == {
        ("0/", "1/", "parameter"),
        ("1/", "0/", "parameter"),
    }


def test_model_and_average_are_told_apart_by_what_they_are_for(tmp_path: Path) -> None:
    names = {"a.w": T(W), "a.v": T(V)}
    both = {"model": dict(names), "ema": dict(names)}
    pairing = paired(tmp_path, both, {"state_dict": dict(names)})
    assert pairing.rules() == (Rule("model/", "state_dict/", 2, "prefix"),)
    assert len(pairing.left.a) == 2


def test_two_slots_at_one_place_are_of_two_parameters(tmp_path: Path) -> None:
    first = trained("", "w", "v")
    second = trained("", "w", "v")
    second["optimizer"]["param_groups"][0]["param_names"] = ["w", "other"]
    second["model"]["other"] = T(V, (2, 1))
    pairing = paired(tmp_path, first, second)
    assert len(pairing.left.a) == 1
    assert len(pairing.left.b) == 2


def test_a_tensor_that_is_all_of_a_file_is_paired(tmp_path: Path) -> None:
    assert paired(tmp_path, T(W), T(V)).pairs == [(0, 0, "path")]

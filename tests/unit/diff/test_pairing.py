from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.diff import pairing
from inspector.diff.pairing import (
    Left,
    Pairing,
    pair_contents,
    pair_moved,
    pair_names,
)
from inspector.diff.records import Rule
from inspector.diff.side import open_side
from inspector.errors import CancelledError
from inspector.progress import Progress
from tests.builders.states import T, save_zip


def test_of_a_name_that_stands_twice_the_last_is_paired_first() -> None:
    assert pair_names(["w", "w", "w"], ["w", "w"], Left([0, 1, 2], [0, 1])) == (
        [(1, 0), (2, 1)],
        Left([0], []),
    )
    assert pair_names(["w"], ["w", "w"], Left([0], [0, 1])) == ([(0, 1)], Left([], [0]))


def moved(a: list[str], b: list[str], *, alike: bool = True) -> list[tuple[str, str]]:
    pairs, left = pair_moved(a, b, Left(list(range(len(a))), list(range(len(b)))), lambda *_: alike)
    assert len(pairs) + len(left.a) == len(a)
    assert len(pairs) + len(left.b) == len(b)
    return [(a[one], b[other]) for one, other in pairs]


def test_a_prefix_is_believed_where_it_explains_several_names_or_all() -> None:
    assert moved(["m/a.w", "m/b.w"], ["a.w", "b.w"]) == [("m/a.w", "a.w"), ("m/b.w", "b.w")]
    assert moved(["m/a.w"], ["n/x/a.w"]) == [("m/a.w", "n/x/a.w")]
    assert moved(["a.w", "b.w"], ["t.a.w", "t.b.w"]) == [("a.w", "t.a.w"), ("b.w", "t.b.w")]
    assert moved(["m/a.w", "q.z"], ["a.w", "r.y"]) == []
    assert moved(["enc.w", "enc.v"], ["dec.w", "dec.v"]) == []
    assert moved(["m/a.w", "m/b.w"], ["a.w", "b.w"], alike=False) == []
    assert moved(["x.w", "y.w"], ["w"]) == []
    assert moved(["w"], ["x.w", "y.w"]) == []
    assert moved(["a.b.c.d.e.f.g.h.w"], ["w"]) == []
    assert moved(["", "a"], ["b"]) == []


def test_rules_that_each_explain_a_pair_are_not_tried_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    a = [f"p{number}.{leaf}{number}" for number in range(50) for leaf in "xy"]
    b = [name.partition(".")[2] for name in a]
    looks: list[object] = []
    explained = pairing._explained
    monkeypatch.setattr(pairing, "_explained", lambda *given: (looks.append(1), explained(*given))[1])
    assert len(moved(a, b)) == 64
    assert len(looks) == 32


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


def test_model_and_average_are_told_apart_by_what_they_are_for(tmp_path: Path) -> None:
    names = {"a.w": T(W), "a.v": T(V)}
    both = {"model": dict(names), "ema": dict(names)}
    pairing = paired(tmp_path, both, {"state_dict": dict(names)})
    assert pairing.rules() == (Rule("model/", "state_dict/", 2, "prefix"),)
    assert len(pairing.left.a) == 2


def test_a_tensor_that_is_all_of_a_file_is_paired(tmp_path: Path) -> None:
    assert paired(tmp_path, T(W), T(V)).pairs == [(0, 0, "path")]


LONG = [float(number) for number in range(64)]


def by_bytes(tmp_path: Path, a: Any, b: Any, progress: Progress | None = None) -> list[tuple[int, int]]:
    paths = [save_zip(tmp_path / f"{name}.pt", value) for name, value in (("a", a), ("b", b))]
    with open_side(paths[0], Progress()) as one, open_side(paths[1], Progress()) as other:
        left = Left(list(range(len(a))), list(range(len(b))))
        return pair_contents(one, other, left, progress or Progress())


def test_bytes_are_the_same_however_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_HEAD_NBYTES", 64)
    turned = [LONG[8 * column + row] for row in range(8) for column in range(8)]
    a = {"x": T(LONG, (8, 8)), "y": T([*LONG[:63], 7.0], (8, 8)), "i": T(list(range(64)), dtype="int64")}
    b = {
        "p": T([*LONG[:63], 7.0], (8, 8)),
        "q": T(turned, (8, 8), stride=(1, 8)),
        "r": T([*LONG[:63], 9.0], (8, 8)),
    }
    assert by_bytes(tmp_path, a, b) == [(0, 1), (1, 0)]


def test_what_proves_nothing_is_not_asked(tmp_path: Path) -> None:
    single, zeros = T([7.0]), T([0.0] * 4)
    false = T(LONG, (100, 100))
    meta = T(LONG, device="meta")
    state = {"a": single, "b": zeros, "c": false, "d": meta, "e": {"f": 1}}
    assert by_bytes(tmp_path, {key: state[key] for key in "abcd"}, {key: state[key] for key in "abcd"}) == []


def test_bytes_that_cannot_be_read_prove_nothing(tmp_path: Path) -> None:
    path = Path(save_zip(tmp_path / "a.pt", {"a": T(LONG), "b": T(LONG[::-1])}))
    path.write_bytes(path.read_bytes().replace(b"archive/data/auto1", b"archive/gone/auto1"))
    with open_side(str(path), Progress()) as one, open_side(str(path), Progress()) as other:
        assert pair_contents(one, other, Left([0, 1], [0, 1]), Progress()) == [(0, 0)]
        progress = Progress()
        progress.cancel()
        with pytest.raises(CancelledError):
            pair_contents(one, other, Left([0, 1], [0, 1]), progress)

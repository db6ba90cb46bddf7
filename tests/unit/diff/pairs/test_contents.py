from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.diff import pairing
from inspector.diff.pairing import Left, pair_contents
from inspector.diff.side import open_side
from inspector.errors import CancelledError
from inspector.progress import Progress
from tests.builders.states import T, save_zip

LONG = [float(number) for number in range(64)]


def paired(tmp_path: Path, a: Any, b: Any, progress: Progress | None = None) -> list[tuple[int, int]]:
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
    assert paired(tmp_path, a, b) == [(0, 1), (1, 0)]


def test_what_proves_nothing_is_not_asked(tmp_path: Path) -> None:
    single, zeros = T([7.0]), T([0.0] * 4)
    false = T(LONG, (100, 100))
    meta = T(LONG, device="meta")
    state = {"a": single, "b": zeros, "c": false, "d": meta, "e": {"f": 1}}
    assert paired(tmp_path, {key: state[key] for key in "abcd"}, {key: state[key] for key in "abcd"}) == []


def test_bytes_that_cannot_be_read_prove_nothing(tmp_path: Path) -> None:
    path = Path(save_zip(tmp_path / "a.pt", {"a": T(LONG), "b": T(LONG[::-1])}))
    path.write_bytes(path.read_bytes().replace(b"archive/data/auto1", b"archive/gone/auto1"))
    with open_side(str(path), Progress()) as one, open_side(str(path), Progress()) as other:
        assert pair_contents(one, other, Left([0, 1], [0, 1]), Progress()) == [(0, 0)]
        progress = Progress()
        progress.cancel()
        with pytest.raises(CancelledError):
            pair_contents(one, other, Left([0, 1], [0, 1]), progress)

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from inspector.diff import content
from inspector.diff.content import Equalities, side_by_side
from inspector.diff.side import open_side
from inspector.errors import CancelledError
from inspector.progress import Progress
from tests.builders.states import T, save_zip

MANY = [float(number) for number in range(64)]
TURNED = [MANY[8 * row + column] for column in range(8) for row in range(8)]


def answers(tmp_path: Path, a: dict[str, Any], b: dict[str, Any]) -> tuple[list[str], int]:
    paths = [save_zip(tmp_path / f"{name}.pt", value) for name, value in (("a", a), ("b", b))]
    with open_side(paths[0], Progress()) as one, open_side(paths[1], Progress()) as other:
        progress = Progress()
        found = Equalities(one, other, progress)
        rows = zip(one.checkpoint.tensors, other.checkpoint.tensors, strict=True)
        given = [found.compare(*pair).answer for pair in rows]
        assert progress.done == found.nbytes
        return given, found.nbytes


def test_large_tensors_are_compared_step_by_step_up_to_the_first_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (content, __import__("inspector.model.tensors.row_blocks", fromlist=["x"])):
        monkeypatch.setattr(module, "PLAIN_NBYTES", 64)
    zeros, other_zeros = [0.0] * 64, [-0.0] * 64
    a = {"same": T(MANY), "early": T(MANY), "bits": T(zeros), "late": T(zeros)}
    b = {
        "same": T(MANY),
        "early": T([9.0, *MANY[1:]]),
        "bits": T(other_zeros),
        "late": T([*other_zeros[:63], 1.0]),
    }
    assert answers(tmp_path, a, b) == (["equal", "differs", "bits", "differs"], 256 + 64 + 256 + 256)


def test_views_of_one_layout_are_compared_as_they_lie(tmp_path: Path) -> None:
    gaps, other_gaps = [1.0, 8.0, 2.0, 8.0, 3.0], [1.0, 9.0, 2.0, 9.0, 3.0]
    a = {
        "t": T(TURNED, (8, 8), stride=(1, 8)),
        "u": T(TURNED, (8, 8), stride=(1, 8)),
        "g": T(gaps, (3,), stride=(2,)),
    }
    b = {
        "t": T(TURNED, (8, 8), stride=(1, 8)),
        "u": T([*TURNED[:63], 1.0], (8, 8), stride=(1, 8)),
        "g": T(other_gaps, (3,), stride=(2,)),
    }
    assert answers(tmp_path, a, b) == (["equal", "differs", "equal"], 256 + 256 + 20 + 12)


def test_views_of_other_layouts_are_compared_by_rows(tmp_path: Path) -> None:
    a = {"t": T(MANY, (8, 8)), "e": T([], (0, 3)), "x": T([1.0, 2.0], (3, 2), stride=(0, 1))}
    b = {"t": T(TURNED, (8, 8), stride=(1, 8)), "e": T([], (0, 3)), "x": T([1.0, 2.0], (3, 2), stride=(0, 1))}
    assert answers(tmp_path, a, b)[0] == ["equal", "equal", "equal"]


def test_tied_tensors_are_read_once(tmp_path: Path) -> None:
    state = {name: T(MANY, key="x") for name in "abc"}
    assert answers(tmp_path, state, state) == (["equal"] * 3, 256)


def test_streams_of_any_steps_are_brought_side_by_side() -> None:
    rng = random.Random(1)
    for sizes in ((1, 1), (4, 2), (2, 8)):
        count = 240
        streams = [rng.randbytes(count * size) for size in sizes]

        def steps(data: bytes, size: int) -> Any:
            pos = 0
            while pos < len(data):
                step = size * rng.randint(1, 30)
                yield data[pos : pos + step]
                pos += step

        pairs = list(side_by_side(*(steps(*given) for given in zip(streams, sizes, strict=True)), sizes))
        assert [b"".join(parts) for parts in zip(*pairs, strict=True)] == streams
        assert all(len(one) // sizes[0] == len(other) // sizes[1] for one, other in pairs)


def test_comparing_can_be_cancelled(tmp_path: Path) -> None:
    path = save_zip(tmp_path / "a.pt", {"w": T(MANY)})
    with open_side(path, Progress()) as one, open_side(path, Progress()) as other:
        progress = Progress()
        found = Equalities(one, other, progress)
        progress.cancel()
        with pytest.raises(CancelledError):
            found.compare(one.checkpoint.tensors[0], other.checkpoint.tensors[0])

from __future__ import annotations

from inspector.report.outline import node as shared
from inspector.report.outline.node import shared_runs
from tests.unit.report.rows import checkpoint, storage, tensor


def view(name: str, offset: int, count: int, **fields: object) -> object:
    return tensor(
        name, storage="0", storage_offset=offset, **{"shape": (count,), "nbytes": 4 * count, **fields}
    )


def runs(*views: object, tensors: int = 2) -> list[tuple[int, list[int]]]:
    rows = checkpoint(*views, storage("0", nbytes=4000, tensors=tensors))
    return sorted((run.nbytes, list(run.tensors)) for run in shared_runs(rows))


def test_what_one_tensor_views_is_shared_with_nobody() -> None:
    assert runs(view("a", 0, 4), tensors=1) == []
    assert runs(view("a", 0, 4), view("b", 4, 4)) == []
    assert runs(view("a", 0, 4), view("b", 0, 0)) == []


def test_tied_and_transposed_tensors_share_all() -> None:
    tied = view("a", 0, 6, shape=(2, 3), stride=(3, 1)), view("b", 0, 6, shape=(3, 2), stride=(1, 3))
    assert runs(*tied) == [(24, [0, 1])]


def test_views_of_a_flat_tensor_share_their_part_with_it() -> None:
    flat = view("flat", 0, 10), view("w", 0, 6), view("b", 6, 4)
    assert runs(*flat) == [(16, [0, 2]), (24, [0, 1])]


def test_views_with_gaps_share_with_the_very_same_alone() -> None:
    even, odd = {"stride": (2,), "shape": (3,), "nbytes": 12}, {"stride": (2,), "shape": (3,), "nbytes": 12}
    rows = view("a", 0, 3, **even), view("b", 1, 3, **odd), view("c", 0, 3, **even)
    assert runs(*rows) == [(12, [0, 2])]
    expanded = {"stride": (0,), "shape": (5,), "nbytes": 20}
    assert runs(view("a", 0, 5, **expanded), view("b", 0, 5, **expanded)) == [(20, [0, 1])]
    bare = {"stride": None, "storage_offset": None}
    assert runs(*(tensor(name, storage="0", **bare) for name in "ab")) == [(16, [0, 1])]
    bits = {"nbytes": 2, "shape": (4,)}
    assert runs(view("a", 0, 4, **bits), view("b", 0, 4, **bits)) == [(2, [0, 1])]


def test_views_that_overlap_in_countless_ways_are_not_cut() -> None:
    many = [view(f"t{place}", place, 100) for place in range(40)]
    assert runs(*many, view("same", 3, 100)) == [(400, [3, 40])]


def test_a_file_of_views_that_all_overlap_is_not_cut_without_end(monkeypatch) -> None:
    views = view("flat", 0, 10), view("w", 0, 6), view("same", 0, 6)
    assert runs(*views, tensors=3) == [(24, [0, 1, 2])]
    monkeypatch.setattr(shared, "_MOST_WORK", 8)
    assert runs(*views, tensors=3) == [(24, [1, 2])]

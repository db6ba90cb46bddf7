from __future__ import annotations

from inspector.diff.facts import compare_sharing
from inspector.diff.records import Pair, Sharing
from inspector.model.checkpoint import Tensor
from tests.unit.diff.facts.test_tensors import ROW


def rows(*storages: str | None) -> list[Tensor]:
    return [ROW._replace(path=f"t{number}", storage=key) for number, key in enumerate(storages)]


def test_ties_of_one_file_alone_are_found() -> None:
    pairs = [Pair(0, 0), Pair(1, 1), Pair(2, 2)]
    assert compare_sharing(rows("x", "x", "y"), rows("1", "1", "2"), pairs) == ()
    assert compare_sharing(rows("x", "x", "y"), rows("1", "2", "2"), pairs) == (
        Sharing(("t0", "t1"), "a"),
        Sharing(("t1", "t2"), "b"),
    )
    assert compare_sharing(rows("x", None, "x"), rows("1", "2", "2"), pairs[:2]) == ()


def test_neighbors_in_one_storage_are_not_tied() -> None:
    one = rows("x", "x")
    one[1] = one[1]._replace(storage_offset=6)
    assert compare_sharing(one, rows("1", "2"), [Pair(0, 0), Pair(1, 1)]) == ()
    for change in ({"nbytes": 0}, {"layout": "storage"}):
        other = [row._replace(**change) for row in rows("x", "x")]
        assert compare_sharing(other, rows("1", "2"), [Pair(0, 0), Pair(1, 1)]) == ()


def test_views_that_overlap_in_one_file_alone_are_found() -> None:
    pairs = [Pair(0, 0), Pair(1, 1), Pair(2, 2)]
    apart = rows("1", "2", "3")
    one = rows("x", "x", "x")
    # Six elements each: the second begins within the first, the third behind both.
    for place, offset in ((1, 3), (2, 9)):
        one[place] = one[place]._replace(storage_offset=offset, stride=None if place == 1 else ROW.stride)
    assert compare_sharing(one, apart, pairs) == (Sharing(("t0", "t1"), "a"),)
    assert compare_sharing(apart, one, pairs) == (Sharing(("t0", "t1"), "b"),)
    assert compare_sharing(one, one, pairs) == ()
    # Every other element: two such views can stand between each other.
    one[1] = one[1]._replace(shape=(6,), stride=(2,), storage_offset=1)
    assert compare_sharing(one, apart, pairs) == ()

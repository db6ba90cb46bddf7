from __future__ import annotations

from inspector.report.charts.bars import filter_for
from inspector.report.query import matching_nodes, parse_query, searchable
from tests.unit.report.charts.maps import areas_of
from tests.unit.report.rows import checkpoint, tensor

DTYPES = ("float8_e4m3fn", "float8_e4m3fnuz", "float32", "int8", "int")
DEVICES = ("cuda:1", "cuda:10", "cpu", "cuda", "none", "a b")


def test_a_search_finds_what_the_part_stands_for_and_nothing_else() -> None:
    for field, values in (("dtype", DTYPES), ("device", DEVICES), ("role", ("rng", "other"))):
        file = checkpoint(*(tensor(str(n), **{field: value}) for n, value in enumerate(values)))
        tree = areas_of(file).tree
        for place, one in enumerate(values):
            query = parse_query(filter_for(field, one, values))
            assert matching_nodes(query, searchable(file), tree) == (tree.tensor_nodes[place],), (field, one)


def test_what_cannot_be_searched() -> None:
    for odd in (None, "", 'a"b', "a\nb"):
        assert filter_for("device", odd) == ""

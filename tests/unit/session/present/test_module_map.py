from __future__ import annotations

from inspector.session.present.compose import module_map_of
from tests.unit.session.documents import saved_on


def test_a_file_is_measured_once() -> None:
    file = saved_on("cuda:0", "cpu")
    assert module_map_of(file, None, 0) is None
    one, other = module_map_of(file, "device", 0), module_map_of(file, "dtype", 0)
    assert one.areas is other.areas
    assert one is module_map_of(file, "device", 0)
    assert one.coloring is not other.coloring

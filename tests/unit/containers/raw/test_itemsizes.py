from __future__ import annotations

from inspector.containers.element_types import ITEMSIZES
from inspector.containers.persistent_ids import STORAGE_DTYPES


def test_storages_have_the_sizes_of_their_elements() -> None:
    assert all(ITEMSIZES[dtype] == itemsize for dtype, itemsize in STORAGE_DTYPES.values())

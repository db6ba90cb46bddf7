from __future__ import annotations

from inspector.containers.container import Chunk, Gathered


def test_sizes_are_those_of_elements() -> None:
    chunk = Chunk((0, 2), (3, 4), 0, 0, 100)
    assert chunk.numel == 12
    assert Gathered("t", "float32", 4, (3, 6), (chunk,)).nbytes == 72
    assert Gathered("t", "float32", 4, (), ()).nbytes == 4
